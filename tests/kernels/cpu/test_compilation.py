"""Machine code on disk: found again, not found after an edit, and replaced where it is damaged."""

import ast
import logging
import shutil
import time
from pathlib import Path

import pytest
import torch
from llvmlite import binding

from strategies.kernels.cpu import compilation
from strategies.kernels.cpu.inspection import inverse_order

LOOP = "inspection.inverse_order", torch.float64


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch, tmp_path):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path / "cache"))
    _forget()
    yield
    _forget()


def _forget():
    compilation.entry.cache_clear()
    compilation._folder.cache_clear()
    compilation._shipped.cache_clear()


def _call():
    """A kernel that compiles in a moment, as the first call of a process."""
    _forget()
    order = torch.empty(3, dtype=torch.int64)
    inverse_order(torch.tensor([3, 3, 3], dtype=torch.int32), order)
    assert order.tolist() == [1, 2, 0]


def _files(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def _refuse_to_compile(monkeypatch):
    from numba.core.ccallback import CFunc

    monkeypatch.setattr(CFunc, "_compile_uncached", lambda _: pytest.fail("compiled again"))


def test_a_second_process_finds_the_code(tmp_path, monkeypatch):
    _call()
    (file,) = _files(tmp_path)
    assert file.name == "inspection.inverse_order.float64"
    _refuse_to_compile(monkeypatch)
    _call()


def test_a_damaged_file_is_silently_replaced(tmp_path, monkeypatch, recwarn, capfd):
    _call()
    (file,) = _files(tmp_path)
    whole = file.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (b"", whole[:10], whole[:-1], flipped, b"x" * 1000):
        file.write_bytes(damaged)
        _call()
        assert compilation._read(file)
    _refuse_to_compile(monkeypatch)
    _call()
    assert not recwarn
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("source", ["loops/grouped.py", "allocation.py", "blas.py"])
def test_an_edit_of_any_source_makes_another_folder(source, tmp_path, monkeypatch):
    _call()
    (first,) = _files(tmp_path)
    copies = tmp_path / "sources"
    copies.mkdir()
    for each in compilation.SOURCES:
        (shutil.copytree if each.is_dir() else shutil.copy)(each, copies / each.name)
    sources = tuple(copies / each.name for each in compilation.SOURCES)
    monkeypatch.setattr(compilation, "SOURCES", sources)
    _call()
    assert _files(tmp_path) == [first]
    edited = copies / source
    edited.write_text(edited.read_text() + "\n")
    _call()
    second = set(_files(tmp_path)) - {first}
    assert {path.parent for path in second} != {first.parent}
    assert len(second) == 1


def test_what_loops_import_is_among_the_sources():
    loops, *others = compilation.SOURCES
    known = {"strategies.kernels.cpu.loops"} | {
        f"strategies.{'' if path.stem == 'allocation' else 'kernels.cpu.'}{path.stem}"
        for path in others
    }
    for path in (*loops.glob("*.py"), *others):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and path.stem != "compilation":
                module = str(node.module)
                inside = module.startswith("strategies.kernels.cpu.loops")
                assert not module.startswith("strategies") or inside or module in known, path


def test_the_folders_not_used_for_longest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "_FOLDERS_KEPT", 2)
    for source in "abc":
        monkeypatch.setattr(compilation, "_fingerprint", lambda *_, name=source: name)
        _call()
    assert sorted(path.parent.name for path in _files(tmp_path)) == ["b", "c"]


def test_a_folder_that_cannot_be_written_or_is_not_known_costs_no_result(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path / "file" / "cache"))
    _call()

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("BACKWARD_STRATEGIES_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    _call()


def test_a_full_disk_leaves_no_draft_behind(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    _call()
    assert _files(tmp_path) == []


def test_only_a_call_that_waits_for_the_compiler_says_so(monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG, "strategies")
    monkeypatch.setattr(compilation, "_SECONDS_OF_SILENCE", 1000)  # on however busy a machine
    _call()
    assert not caplog.records
    monkeypatch.setattr(compilation, "_SECONDS_OF_SILENCE", 0)
    with compilation._announced("the kernel"):
        _wait_for(lambda: caplog.records)
    (record,) = caplog.records
    assert record.getMessage().startswith("strategies: compiling the kernel; strategies.warmup()")
    assert "\n" not in record.getMessage()
    assert capfd.readouterr().out == ""


def _wait_for(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("nothing came")


def test_is_kept_tells_what_a_call_has_left_behind():
    _forget()
    assert not compilation.is_kept(*LOOP)
    _call()
    assert compilation.is_kept(*LOOP)


def test_shipped_code_is_found_first(tmp_path, monkeypatch):
    _call()
    (file,) = _files(tmp_path)
    monkeypatch.setattr(compilation, "SHIPPED", tmp_path / "compiled")
    monkeypatch.setattr(compilation, "BASELINE", ("of-here", "+sse2"))
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: {"sse2": True})
    processor = compilation._processor()[0], *compilation.BASELINE
    baseline = compilation._fingerprint(processor)
    shutil.move(file.parent, tmp_path / "compiled" / baseline)
    _refuse_to_compile(monkeypatch)
    _call()
    assert _files(tmp_path) == []


def test_shipped_code_is_left_alone_where_the_processor_lacks_a_feature(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "SHIPPED", tmp_path)
    monkeypatch.setattr(compilation, "BASELINE", ("of-tomorrow", "+unheard-of"))
    _forget()
    processor = compilation._processor()[0], *compilation.BASELINE
    (tmp_path / compilation._fingerprint(processor)).mkdir()
    assert compilation._shipped() is None

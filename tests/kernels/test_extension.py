"""The fast path in C++: built once, found again, and left out where it cannot be."""

import os
import signal
import threading
import time

import pytest

from strategies.errors import UnusableFileError
from strategies.files.folders import cache_directory
from strategies.kernels import extension
from strategies.kernels.cpu import openmp
from tests.process import run_python

BUILT, CACHE = extension._file(), cache_directory()
LEAVE_A_TEXT = f"import sys; open(sys.argv[3] + '/{extension._FILE}', 'w').write('x')"


@pytest.fixture(autouse=True)
def _nothing_is_built_yet(monkeypatch, tmp_path):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path / "cache"))
    extension.load.cache_clear()
    yield
    extension.load.cache_clear()


def test_what_was_not_built_is_not_there_and_how_to_build_it_is_said_once(caplog):
    assert extension.is_missing()
    assert extension.load() is None
    assert extension.load() is None
    assert caplog.text.count("`backward-strategies warmup` builds it") == 1


def test_without_a_compiler_nothing_is_said(monkeypatch, caplog):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert extension.load() is None
    assert not caplog.text


def test_a_machine_without_a_compiler_keeps_the_fast_path_in_python(monkeypatch, caplog):
    monkeypatch.setattr(extension, "_BUILD", "raise RuntimeError('no compiler here')")
    assert not extension.warmup()
    assert "stays in Python" in caplog.text
    assert "no compiler here" in caplog.text
    assert not list(extension.folder(extension.cache_directory()).rglob("*"))


def test_the_ninja_of_an_environment_that_is_not_activated_is_found(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))  # which has neither Ninja nor a compiler
    assert not extension.warmup()
    assert "c++: not found" in caplog.text  # says Ninja


def test_a_file_that_is_no_module_counts_as_missing(monkeypatch, caplog):
    monkeypatch.setattr(extension, "_BUILD", LEAVE_A_TEXT)
    assert not extension.warmup()
    assert "cannot be loaded" in caplog.text
    assert not extension.is_missing()


def test_a_file_that_is_cut_off_counts_as_missing(caplog):
    path = extension._file()
    path.parent.mkdir(parents=True)
    path.write_bytes(extension._source().read_bytes()[:1000])
    assert extension.is_missing()
    assert extension.load() is None
    assert "is not built" in caplog.text


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setattr(extension, "_BUILD", LEAVE_A_TEXT)
    with pytest.raises(UnusableFileError, match="cannot be written"):
        extension.warmup()


def test_where_torch_has_another_team_of_threads_there_is_none(monkeypatch):
    monkeypatch.setattr(openmp, "team", lambda: None)
    assert not extension.is_missing()
    assert not extension.warmup()
    assert extension.load() is None


def test_a_forked_process_takes_the_fast_path_in_one_thread():
    code = """
import os, torch, strategies
from strategies import linalg
torch.set_num_threads(2)
A = torch.eye(8, dtype=torch.float64).repeat(4096, 1, 1).requires_grad_()
G = torch.ones_like(A)
def gradient():  # of torch itself, nothing may run in several threads of a forked process
    return torch.autograd.grad(linalg.inv(A, strategy="fused"), A, G)[0].numpy()
due = gradient()
if os.fork() == 0:
    os._exit(not (gradient() == due).all())
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    run_python(code, BACKWARD_STRATEGIES_CACHE=str(CACHE))


@pytest.mark.skipif(extension.is_missing(), reason="nothing was built: strategies.warmup() does so")
def test_a_process_that_began_without_one_takes_what_it_has_built(tmp_path):
    with_copy = (
        f"import shutil, sys; shutil.copy({str(BUILT)!r}, sys.argv[3] + '/{extension._FILE}')"
    )
    code = f"""
import torch, strategies
from strategies.kernels import extension
A = torch.eye(3)
strategies.linalg.inv(A)
extension._BUILD = {with_copy!r}
assert strategies.warmup()
with strategies.install(["linalg_inv"]):
    torch.linalg.inv(A)
"""
    run_python(code, BACKWARD_STRATEGIES_CACHE=str(tmp_path))


@pytest.mark.skipif(extension.is_missing(), reason="nothing was built: strategies.warmup() does so")
def test_threads_whose_first_calls_coincide_load_it_once():
    code = """
import threading, torch
from strategies import linalg
barrier = threading.Barrier(8)
def call():
    A = torch.eye(3, requires_grad=True)
    barrier.wait()
    linalg.pinv(A).sum().backward()
threads = [threading.Thread(target=call) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
"""
    assert not run_python(code, BACKWARD_STRATEGIES_CACHE=str(CACHE)).stderr


def test_a_build_that_is_interrupted_leaves_no_process_behind(monkeypatch, tmp_path):
    # As Ninja and its compilers, a process of the process.
    build = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    monkeypatch.setattr(extension, "_BUILD", build)
    killed, kill = [], os.killpg
    monkeypatch.setattr(os, "killpg", lambda *group: (killed.append(group), kill(*group)))
    main = threading.main_thread().ident
    timer = threading.Timer(1, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    # A shell has its background jobs ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            extension.warmup()
    finally:
        signal.signal(signal.SIGINT, before)
    ((group, _),) = killed
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            kill(group, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process is left")
    assert not extension._file().exists()

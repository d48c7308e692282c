import errno
import gzip
import io
import os
import pathlib

import msgspec
import platformdirs
import pytest

from strategies.files import (
    UnusableFileError,
    cache_directory,
    configuration_directory,
    json_text,
    read,
    require_writable,
    says,
    write_text,
)


class Note(msgspec.Struct):
    text: str


def of(text):
    return f'{{"format": "note", "version": 1, "text": "{text}"}}'.encode()


@pytest.mark.parametrize(
    ("name", "kept"),
    [("note.json", of("κ" * 100)), ("note.json.gz", gzip.compress(of("κ" * 100), mtime=0))],
    ids=["plain", "packed"],
)
def test_what_was_written_is_read_and_packed_where_it_is_called_gz(tmp_path, name, kept):
    path = tmp_path / name
    write_text(path, of("κ" * 100).decode())
    assert path.read_bytes() == kept
    assert read(path, Note, "note", 1) == Note("κ" * 100)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not valid JSON, or cut off"),
        (of("x")[:-3], "is not valid JSON, or cut off"),
        (b"\xff\xfe", "is not valid JSON, or cut off"),
        (b"[" * 100_000, "is not a note file"),
        (b'{"format": "note", "version": 1, "text":' + b"[" * 100_000, "is not valid JSON"),
        (b"[1]", "is not a note file"),
        (of("x").replace(b"note", b"novel"), "is not a note file"),
        (of("x").replace(b"1", b"2"), "has version 2; this package reads 1: upgrade the package"),
        (of("x").replace(b"1", b"0"), "has version 0; this package reads 1: make the file anew"),
        (of("x").replace(b'"x"', b"3"), "is damaged: Expected `str`, got `int` - at `$.text`"),
        (gzip.compress(of("x"), mtime=0)[:-9], "cannot be unpacked"),
        (b"\x1f\x8b\x08", "cannot be unpacked"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_that_names_it(tmp_path, data, said):
    path = tmp_path / "note.json"
    path.write_bytes(data)
    with pytest.raises(UnusableFileError) as caught:
        read(path, Note, "note", 1)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path}: ")
    assert said in line


def test_a_file_that_is_missing_or_cannot_be_written_is_named(tmp_path):
    nowhere = tmp_path / "nowhere" / "note.json"
    with pytest.raises(UnusableFileError, match=r"note\.json: cannot be read"):
        read(nowhere, Note, "note", 1)
    with pytest.raises(UnusableFileError, match=r"note\.json: cannot be written"):
        write_text(nowhere, "")
    for path in (nowhere, tmp_path):
        with pytest.raises(UnusableFileError, match="cannot be written"):
            require_writable(path)
    require_writable(tmp_path / "note.json")
    assert not list(tmp_path.iterdir())


def test_what_fits_a_line_is_on_one():
    lines = json_text({"short": [1, 2], "long": [{"name": "x" * 90}] * 4}).splitlines()
    assert lines[1] == ' "short": [1, 2],'
    assert len(lines) == 9


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Full(io.FileIO):
    """A file on a disk that is full."""

    write = full


@pytest.mark.parametrize(
    ("owner", "step", "fails"),
    [(os, "fdopen", lambda handle, _: Full(handle, "wb")), (pathlib.Path, "replace", full)],
    ids=["write", "replace"],
)
def test_a_full_disk_leaves_neither_a_draft_nor_half_a_file(
    tmp_path, monkeypatch, owner, step, fails
):
    path = tmp_path / "note.json"
    write_text(path, "before")
    monkeypatch.setattr(owner, step, fails)
    with pytest.raises(UnusableFileError, match=r"note\.json: cannot be written \(No space left"):
        write_text(path, "after")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"format": "a", "version": 9}', True),
        ('{"format": "b", "version": 1}', False),
        ("{", False),
    ],
)
def test_a_format_is_recognized_whatever_else_is_wrong(tmp_path, text, expected):
    path = tmp_path / "file.json"
    path.write_text(text)
    assert says(path, "a") is expected
    assert not says(tmp_path / "nowhere", "a")


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("BACKWARD_STRATEGIES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "backward-strategies"


def test_the_folder_of_a_user_is_where_the_environment_says_or_the_platforms(monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CONFIG", "somewhere")
    assert configuration_directory() == pathlib.Path("somewhere")
    monkeypatch.delenv("BACKWARD_STRATEGIES_CONFIG")
    found = configuration_directory()
    assert found.name == "backward-strategies"
    assert found.parent == platformdirs.user_config_path()

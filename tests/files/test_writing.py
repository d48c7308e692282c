import errno
import io
import os
import pathlib

import pytest

from strategies.errors import UnusableFileError
from strategies.files.writing import require_writable, write_text


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    nowhere = tmp_path / "nowhere" / "note.json"
    with pytest.raises(UnusableFileError, match=r"note\.json: cannot be written"):
        write_text(nowhere, "")
    for path in (nowhere, tmp_path):
        with pytest.raises(UnusableFileError, match="cannot be written"):
            require_writable(path)
    require_writable(tmp_path / "note.json")
    assert not list(tmp_path.iterdir())


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

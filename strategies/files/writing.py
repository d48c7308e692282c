"""Writing files in one step.

What is written is packed by gzip where the name ends in .gz: equal texts make equal files, as
`gzip -n FILE` does.
"""

import contextlib
import errno
import gzip
import os
import tempfile
from pathlib import Path

from strategies.errors import UnusableFileError

DRAFT = ".tmp"
"""What the name of a file that is being written ends in."""


def write_text(path: Path, text: str, *, parents: bool = False) -> None:
    """Writes a text as `write` does, packed if the file's name ends in .gz."""
    content = text.encode()
    packed = gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
    write(path, packed, parents=parents)


def write(path: Path, content: bytes, *, parents: bool = False) -> None:
    """Writes a file as `write_bytes` does, and makes its folder if wanted.

    UnusableFileError if it cannot be written.
    """
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    except OSError as error:
        raise UnusableFileError(path, f"cannot be written ({error.strerror})") from error


def require_writable(path: Path) -> None:
    """UnusableFileError if a file cannot be written there, which is better known before long work."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UnusableFileError(path, f"cannot be written ({error.strerror})") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file in one step; one that ends in OSError leaves neither part nor draft behind."""
    handle, name = tempfile.mkstemp(DRAFT, f".{path.name}.", path.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or a loss of power could leave the name without the content
        # A temporary file is private to its owner; a result is not.
        draft.chmod(0o644)
        draft.replace(path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)

"""JSON files that name their format and version, and JSON for people.

What is read may be packed by gzip.
"""

import gzip
import zlib
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from strategies.errors import UnusableFileError
from strategies.files.writing import write_text

LINE_LENGTH = 320
"""What a cell of a policy or of a result file fits in, so that a difference of files is readable."""

_GZIP = b"\x1f\x8b"

Content = TypeVar("Content")


class _Head(msgspec.Struct):
    format: str
    version: int


def decoded(path: Path, kind: type[Content]) -> Content:
    """The content of a JSON file, as a msgspec type; UnusableFileError if it is missing or damaged."""
    return _decoded(path, unpacked(path), kind)


def _decoded(path: Path, data: bytes, kind: type[Content]) -> Content:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise UnusableFileError(path, f"is damaged: {error}") from error


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a JSON file that names its format and version, for both of which it has defaults.

    The version is raised when a field changes its meaning or goes away.
    """

    format: str
    version: int

    @classmethod
    def read(cls, file: str | Path) -> Self:
        """The content of a file.

        UnusableFileError if it cannot be read, is damaged, of another format or of another version.
        """
        path = Path(file)
        data = unpacked(path)
        format_name, version, *_ = (each.default for each in msgspec.structs.fields(cls))
        try:
            head = msgspec.json.decode(data, type=_Head)
        except msgspec.ValidationError as error:
            raise UnusableFileError(path, f"is not a {format_name} file") from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise UnusableFileError(path, f"is not valid JSON, or cut off ({error})") from error
        if head.format != format_name:
            raise UnusableFileError(path, f"is not a {format_name} file")
        if head.version != version:
            advice = "upgrade the package" if head.version > version else "make the file anew"
            raise UnusableFileError(
                path, f"has version {head.version}; this package reads {version}: {advice}"
            )
        return _decoded(path, data, cls)

    def save(self, path: str | Path, *, parents: bool = False) -> None:
        """Writes the file, in one step; UnusableFileError if it cannot be written."""
        write_text(Path(path), json_text(self), parents=parents)


def unpacked(path: Path) -> bytes:
    """The bytes of a file, or those that were packed in it; UnusableFileError if there are none."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UnusableFileError(path, f"cannot be unpacked ({error})") from error
    except OSError as error:
        raise UnusableFileError(path, f"cannot be read ({error.strerror})") from error


def json_files(folder: Path, pattern: str = "*") -> list[Path]:
    """The JSON files of a folder whose names match but for the ending, packed or not, in order."""
    return sorted([*folder.glob(f"{pattern}.json"), *folder.glob(f"{pattern}.json.gz")])


def says(path: Path, format_name: str) -> bool:
    """Whether a JSON file names a format, whatever else is wrong with it."""
    try:
        return decoded(path, _Head).format == format_name
    except UnusableFileError:
        return False


def json_text(value: Any) -> str:
    """Anything that msgspec encodes, as JSON for people: what fits a line is on one."""
    return _text(msgspec.to_builtins(value), 0) + "\n"


def _text(value: Any, depth: int) -> str:
    line = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    if depth + len(line) <= LINE_LENGTH or not isinstance(value, dict | list | tuple):
        return line
    if isinstance(value, dict):
        items = [f"{_text(str(key), 0)}: {_text(item, depth + 1)}" for key, item in value.items()]
    else:
        items = [_text(item, depth + 1) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    indent = " " * (depth + 1)
    return f"{first}\n{indent}" + f",\n{indent}".join(items) + f"\n{indent[1:]}{last}"

"""Reading and writing the files that results, recommendations and policies live in."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

LINE_LENGTH = 320
"""A cell of a policy, and a case's times, fit in a line."""


class UnusableFileError(ValueError):
    """A file that is missing, corrupt, truncated, foreign or of a newer version.

    The message is one line that names the file and what is wrong with it.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def read_json(path: Path) -> Any:
    """The parsed content of a JSON file; NaN and Infinity tokens are understood.

    Raises:
        UnusableFileError: the file cannot be read, or is not JSON (cut off, for example).
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnusableFileError(path, f"cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise UnusableFileError(path, f"is not valid JSON, or cut off ({error})") from error


def read_versioned(
    path: Path,
    format_name: str,
    newest: int,
    *,
    oldest: int = 1,
    schema: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of one of our own JSON files, whose format, version and schema are checked.

    Raises:
        UnusableFileError: unreadable, of another format, or of a version that this package does
            not read: newer than `newest`, or older than `oldest`; or damaged, by its JSON Schema.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != format_name:
        raise UnusableFileError(path, f"is not a {format_name} file")
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise UnusableFileError(path, f"has no valid version, but {version!r}")
    if version > newest:
        raise UnusableFileError(
            path, f"has version {version}; this package reads up to {newest}: upgrade it"
        )
    if version < oldest:
        raise UnusableFileError(
            path, f"has version {version}; this package reads {oldest} and later: make it anew"
        )
    try:
        jsonschema.validate(content, schema or {})
    except jsonschema.ValidationError as error:
        raise UnusableFileError(
            path, f"is damaged at {error.json_path}: {error.message}"
        ) from error
    return content


def require_same(path: Path, kept: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Checks that what determines a run is what determined the one that left the file.

    Raises:
        UnusableFileError: something differs; it is named, with both values.
    """
    for name, value in now.items():
        if kept.get(name) != value:
            raise UnusableFileError(
                path,
                f"was measured with {name} {kept.get(name)}, not {value}: "
                "move it, or give another file",
            )


def write_json(path: Path, content: Any) -> None:
    """Writes strict JSON in one step: a reader sees the old file or the new one, never a part.

    Raises:
        UnusableFileError: the folder is missing or cannot be written to.
    """
    text = _text(_without_nan(content)) + "\n"
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as draft:
            draft.write(text)
        # A temporary file is private to its owner; a result is not.
        Path(draft.name).chmod(0o644)
        Path(draft.name).replace(path)
    except OSError as error:
        raise UnusableFileError(path, f"cannot be written ({error.strerror})") from error


def _without_nan(value: Any) -> Any:
    """JSON knows no NaN: an undefined number is null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _text(value: Any, depth: int = 0) -> str:
    """JSON for people: what fits in a line is on one, the rest is indented."""
    line = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if depth + len(line) <= LINE_LENGTH or not isinstance(value, dict | list):
        return line
    if isinstance(value, dict):
        items = [f"{json.dumps(str(k))}: {_text(v, depth + 1)}" for k, v in value.items()]
    else:
        items = [_text(item, depth + 1) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    indent = " " * (depth + 1)
    return f"{first}\n{indent}" + f",\n{indent}".join(items) + f"\n{indent[1:]}{last}"

"""The file in which `python -m benchmarks.rounds` keeps cells whose strategies were timed in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strategies.selection.files import UnusableFileError, read_versioned

FORMAT = "backward-strategies rounds"
VERSION = 1


def is_rounds(content: Any) -> bool:
    """Whether a parsed JSON file says of itself that it holds such cells."""
    return isinstance(content, dict) and content.get("format") == FORMAT


def rounds_records(path: Path) -> list[dict[str, Any]]:
    """One record for every case and strategy.

    Raises:
        UnusableFileError: the file is corrupt, foreign or newer.
    """
    content = read_versioned(path, FORMAT, VERSION)
    try:
        return [
            case["cell"] | strategy | content["provenance"]
            for case in content["cases"]
            for strategy in case["strategies"]
        ]
    except (KeyError, TypeError) as error:
        raise UnusableFileError(
            path, f"is not a file of rounds ({type(error).__name__}: {error})"
        ) from error

"""The file in which `python -m benchmarks.peers` keeps its comparison with other libraries.

Native and our best strategy are in it as well, measured in turn with the others. All of its rows
are marked `is_peer`: they are shown beside the verdicts, and none of them counts in one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strategies.selection.files import UnusableFileError, read_versioned

FORMAT = "backward-strategies peers"
VERSION = 1


def is_peers(content: Any) -> bool:
    """Whether a parsed JSON file says of itself that it is such a comparison."""
    return isinstance(content, dict) and content.get("format") == FORMAT


def peers_records(path: Path) -> list[dict[str, Any]]:
    """One record for every case and library; `torch` names the other libraries' versions as well.

    Raises:
        UnusableFileError: the file is corrupt, foreign or newer.
    """
    content = read_versioned(path, FORMAT, VERSION)
    try:
        run = dict(content["provenance"])
        others = [f"{name} {version}" for name, version in run.pop("libraries", {}).items()]
        run |= {"torch": ", ".join([run["torch"], *others]), "is_peer": True}
        return [row | run for row in content["rows"]]
    except (KeyError, TypeError) as error:
        raise UnusableFileError(
            path, f"is not a comparison with peers ({type(error).__name__}: {error})"
        ) from error

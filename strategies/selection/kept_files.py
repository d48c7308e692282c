"""The files in which `benchmarks.peers` and `benchmarks.rounds` keep a grid, case by case.

A file says with which arguments, where and with what it was measured, and is gone on with by the same
run only. Peers hold a row for every case and library. Native and our best strategies are among them,
measured in turn with the others. All of these rows are marked `is_peer`: they are shown beside the
verdicts, and none of them counts in one. Rounds hold the strategies of a cell, timed in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strategies.selection.files import read_versioned, require_same


@dataclass(frozen=True)
class Kind:
    """One kind of these files.

    Attributes:
        format: what such a file says that it is.
        version: that is written; all up to it are read.
        cases: the name of the list that grows.
        case: the JSON Schema of each of its entries.
    """

    format: str
    version: int
    cases: str
    case: dict[str, Any]

    def read(self, path: Path) -> dict[str, Any]:
        """The content of a file.

        Raises:
            UnusableFileError: the file is damaged, foreign or newer.
        """
        properties = {
            "arguments": _OBJECT,
            "provenance": _OBJECT | {"required": ["torch"]},
            self.cases: {"type": "array", "items": self.case},
        }
        schema = {"required": list(properties), "properties": properties}
        return read_versioned(path, self.format, self.version, schema=schema)

    def begun(
        self, path: Path, arguments: dict[str, Any], provenance: dict[str, Any]
    ) -> dict[str, Any]:
        """What an earlier run with the same arguments left in a file, or how its content begins.

        Args:
            path: of the file; it need not exist.
            arguments: of the command.
            provenance: where and with what is measured; only `started_at` may have changed.

        Raises:
            UnusableFileError: the file is damaged, foreign, newer, or of another run.
        """
        head = {"format": self.format, "version": self.version}
        if not path.exists():
            return {**head, "arguments": arguments, "provenance": provenance, self.cases: []}
        content = self.read(path)
        kept = {**content, **content["arguments"], **content["provenance"]}
        now = {**head, **arguments, **provenance, "started_at": kept.get("started_at")}
        require_same(path, kept, now)
        return content


_OBJECT = {"type": "object"}
_ROW = ["operation", "m", "n", "rhs", "batch", "dtype", "device", "strategy", "status"]
_CELL = {"cell": _OBJECT, "strategies": {"type": "array", "items": _OBJECT}}
_CASE = _OBJECT | {"required": list(_CELL), "properties": _CELL}

PEERS = Kind("backward-strategies peers", 2, "rows", _OBJECT | {"required": _ROW})
ROUNDS = Kind("backward-strategies rounds", 1, "cases", _CASE)


def is_kept(content: Any) -> bool:
    """Whether a parsed JSON file says of itself that it is one of these."""
    return isinstance(content, dict) and content.get("format") in (PEERS.format, ROUNDS.format)


def kept_records(path: Path, content: dict[str, Any]) -> list[dict[str, Any]]:
    """One record for every case and strategy or library; peers name the libraries in `torch`.

    Raises:
        UnusableFileError: the content, which `is_kept`, is damaged or newer.
    """
    kind = ROUNDS if content["format"] == ROUNDS.format else PEERS
    content = kind.read(path)
    run = dict(content["provenance"])
    if kind is ROUNDS:
        cases = content["cases"]
        return [case["cell"] | each | run for case in cases for each in case["strategies"]]
    others = [f"{name} {version}" for name, version in run.pop("libraries", {}).items()]
    run |= {"torch": ", ".join([run["torch"], *others]), "is_peer": True}
    return [row | run for row in content["rows"]]

"""The file of cells timed in turn: what is not one is refused in a line."""

import json

import pytest

from strategies.selection import rows
from strategies.selection.files import UnusableFileError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": "backward-strategies rounds", "version": 99}, "upgrade it"),
        ({"format": "backward-strategies rounds", "version": 1}, "is not a file of rounds"),
        (
            {
                "format": "backward-strategies rounds",
                "version": 1,
                "provenance": {},
                "cases": [{"strategies": [{}]}],
            },
            "is not a file of rounds",
        ),
        ({"format": "something else"}, "is not a result file"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path, content, message):
    path = tmp_path / "rounds.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UnusableFileError, match=message) as refusal:
        rows.load(tmp_path)
    assert "rounds.json" in str(refusal.value)

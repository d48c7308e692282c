"""The files of peers and of rounds: what is not one, or of another run, is refused in a line."""

import json

import pytest

from strategies.selection import rows
from strategies.selection.files import UnusableFileError, write_json
from strategies.selection.kept_files import PEERS, ROUNDS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": "backward-strategies rounds", "version": 99}, "upgrade it"),
        ({"format": "backward-strategies rounds", "version": 1}, "is damaged at"),
        (
            {
                "format": "backward-strategies rounds",
                "version": 1,
                "arguments": {},
                "provenance": {"torch": "2.13.0"},
                "cases": [{"strategies": [{}]}],
            },
            r"is damaged at \$\.cases\[0\]: 'cell' is a required property",
        ),
        (
            {
                "format": "backward-strategies peers",
                "version": 1,
                "arguments": {},
                "provenance": {"torch": "2.13.0"},
                "rows": [{"strategy": "jax"}],
            },
            r"is damaged at \$\.rows\[0\]: 'operation' is a required property",
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


ARGUMENTS = {"grid": "quick"}
WHERE = {"torch": "2.13.0", "commit": "abc", "started_at": 1}


def test_a_run_goes_on_with_what_is_there(tmp_path):
    path = tmp_path / "rounds.json"
    content = ROUNDS.begun(path, ARGUMENTS, WHERE)
    assert content["cases"] == []
    content["cases"].append({"cell": {}, "strategies": []})
    write_json(path, content)
    assert ROUNDS.begun(path, ARGUMENTS, WHERE | {"started_at": 2}) == content


@pytest.mark.parametrize(
    ("arguments", "where", "said"),
    [
        ({"grid": "full"}, WHERE, "grid quick, not full"),
        (ARGUMENTS, WHERE | {"commit": "def"}, "commit abc, not def"),
        (ARGUMENTS, WHERE | {"libraries": {"jax": "0.11"}}, "libraries None, not {'jax'"),
    ],
)
def test_a_file_of_another_run_is_not_gone_on_with(tmp_path, arguments, where, said):
    path = tmp_path / "rounds.json"
    write_json(path, ROUNDS.begun(path, ARGUMENTS, WHERE))
    with pytest.raises(UnusableFileError, match=said):
        ROUNDS.begun(path, arguments, where)


def test_what_an_older_version_wrote_is_read_but_not_gone_on_with(tmp_path):
    path = tmp_path / "peers.json"
    row = {"operation": "inv", "m": 3, "n": 3, "rhs": 1, "batch": 0, "dtype": "float64"}
    row |= {"device": "cpu", "strategy": "jax", "status": "ok", "backward_seconds": 1.0}
    write_json(path, PEERS.begun(path, ARGUMENTS, WHERE) | {"version": 1, "rows": [row]})
    assert rows.load(tmp_path)["backward_seconds"].item() == 1.0
    with pytest.raises(UnusableFileError, match="version 1, not 2"):
        PEERS.begun(path, ARGUMENTS, WHERE)

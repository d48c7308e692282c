import json

import msgspec
import pytest

from strategies.oracle.report import Report

ADAPTER = """
import numpy as np
def value(operation, inputs):
    if operation != "inv":
        raise NotImplementedError
    return [{sign}np.linalg.inv(inputs[0])]
"""


@pytest.mark.parametrize(("sign", "code", "verdict"), [("", 0, "right"), ("-", 1, "wrong")])
def test_the_exit_code_says_whether_a_library_fails(sign, code, verdict, few, tmp_path, invoke):
    adapter, out = tmp_path / "adapter.py", tmp_path / "report.json"
    adapter.write_text(ADAPTER.format(sign=sign))
    done = invoke("oracle", "grade", adapter, "--set", few, "--out", out, code=code)
    found = msgspec.json.decode(out.read_bytes(), type=Report)
    entry = next(e for e in found.entries if (e.operation, e.quantity) == ("inv", "value"))
    assert entry.verdict == verdict
    assert "inv" in done.output
    assert "…" not in done.output


def test_what_cannot_be_asked_is_one_line(fails, tmp_path):
    fails(["oracle", "grade", "nothing"], "no adapter nothing")
    grade = ["oracle", "grade", "pytorch"]
    fails([*grade, "--python", "/no/python"], "/no/python cannot be run: No such file")
    bad = tmp_path / "bad.jsonl"
    fails([*grade, "--set", bad], "bad.jsonl cannot be read as an oracle set")
    for content in ("", "{", "[1]", "{}", "\x1f\x8b"):
        bad.write_bytes(content.encode("latin-1"))
        fails([*grade, "--set", bad], "bad.jsonl cannot be read as an oracle set")
    for command in ([*grade, "--out"], ["oracle", "write"]):
        fails([*command, tmp_path / "none" / "x.json"], "x.json: cannot be written")


def test_the_schema_is_json(invoke):
    assert "CaseRecord" in json.loads(invoke("oracle", "schema").output)["$defs"]

"""The adapters of what is installed, and how a library is asked."""

import json

import pytest

from strategies.oracle import grader
from strategies.oracle.asking import CORE, adapter, adapters, ask
from strategies.oracle.report import report


def entries(library, few, tmp_path):
    answers = tmp_path / "answers.jsonl"
    ask(library, few, answers)
    return {(entry.operation, entry.quantity): entry for entry in report(few, answers).entries}


def test_ours_is_right_in_plain_cases(few, tmp_path):
    found = entries("ours", few, tmp_path)
    assert {entry.verdict for entry in found.values()} == {"right"}


def test_pytorch_is_wrong_where_its_issue_tracker_says_so(few, tmp_path):
    import torch

    if torch.__version__.split("+")[0] != "2.13.0":
        pytest.skip("said of 2.13")
    found = entries("pytorch", few, tmp_path)
    assert found["solve", "hvp.reverse_over_forward"].verdict == "wrong"
    assert found["cholesky_inverse", "jvp"].verdict == "wrong"
    assert found["solve", "vjp"].verdict == "right"


def test_a_case_that_ends_the_process_is_refused(few, tmp_path):
    path = tmp_path / "deadly.py"
    path.write_text(
        "import os, numpy as np\n"
        "def value(operation, inputs):\n"
        "    if operation == 'det':\n        os._exit(3)\n"
        "    return [np.linalg.inv(inputs[0])]\n"
    )
    found = entries(str(path), few, tmp_path)
    assert found["det", "value"].verdict == "refuses"
    assert found["det", "value"].note == "the process ended with exit code 3"
    assert found["inv", "value"].verdict == "right"
    assert found["inv", "vjp"].verdict == "missing"


def test_an_interpreter_without_the_library_is_told(few, tmp_path):
    (tmp_path / "absent.py").write_text("import no_such_library\n")
    with pytest.raises(ValueError, match=r"cannot ask .*no_such_library"):
        entries(str(tmp_path / "absent.py"), few, tmp_path)


def test_unknown_libraries_are_told_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"no adapter numpy; there is autograd, .*pytorch"):
        adapter("numpy")
    assert "ours" in adapters()


def test_a_report_names_the_smallest_case_that_fails(tmp_path):
    header, *lines = grader.lines(CORE)
    lines = [line for line in lines if '"id":"inv/plain/' in line]
    of, answers = tmp_path / "set.jsonl", tmp_path / "answers.jsonl"
    of.write_text("\n".join([header, *lines]), encoding="utf-8")
    cases = [*map(json.loads, lines)]
    wrong = [json.dumps({"id": case["id"], "value": ["nan"]}) for case in cases]
    answers.write_text("\n".join(wrong), encoding="utf-8")
    (value, *_) = report(of, answers).entries
    sizes = {case["id"]: case["inputs"][0]["shape"] for case in cases}
    assert sizes[value.smallest] == min(sizes.values())
    assert value.counts["wrong"] == len(cases)

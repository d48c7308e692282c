import json

import pytest

from strategies.selection import files


def test_a_number_that_is_undefined_is_written_as_null(tmp_path):
    files.write_json(tmp_path / "f.json", {"a": [float("nan"), float("inf"), 1.5]})
    assert json.loads((tmp_path / "f.json").read_text()) == {"a": [None, None, 1.5]}


def test_writing_leaves_no_draft_behind(tmp_path):
    files.write_json(tmp_path / "f.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.json"
    files.write_json(path, {"old": True})
    with pytest.raises(TypeError):
        files.write_json(path, {"new": object()})
    assert json.loads(path.read_text()) == {"old": True}


def test_writing_to_a_missing_folder_names_the_file(tmp_path):
    with pytest.raises(files.UnusableFileError, match=r"nowhere/f\.json: cannot be written"):
        files.write_json(tmp_path / "nowhere" / "f.json", {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not valid JSON"),
        ('{"format": "ours", "versi', "cut off"),
        ("[]", "is not a ours file"),
        ('{"format": "theirs", "version": 1}', "is not a ours file"),
        ('{"format": "ours"}', "no valid version"),
        ('{"format": "ours", "version": 3}', "version 3; this package reads up to 2"),
    ],
)
def test_an_unusable_file_is_named_with_its_problem(tmp_path, text, problem):
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(files.UnusableFileError, match=problem) as caught:
        files.read_versioned(path, "ours", 2)
    assert str(path) in str(caught.value)
    assert path.read_text() == text


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(files.UnusableFileError, match="missing"):
        files.read_json(tmp_path / "missing.json")


def test_a_file_of_an_older_version_is_named(tmp_path):
    path = tmp_path / "f.json"
    path.write_text('{"format": "ours", "version": 1}')
    with pytest.raises(files.UnusableFileError, match="version 1; this package reads 2 and later"):
        files.read_versioned(path, "ours", 3, oldest=2)


def test_what_a_schema_does_not_allow_is_named_with_its_place(tmp_path):
    path = tmp_path / "f.json"
    path.write_text('{"format": "ours", "version": 1, "cells": [{}]}')
    schema = {"properties": {"cells": {"items": {"required": ["m"]}}}}
    with pytest.raises(files.UnusableFileError, match=r"at \$\.cells\[0\]: 'm' is a required"):
        files.read_versioned(path, "ours", 1, schema=schema)


def test_what_differs_between_two_runs_is_named_with_both_values(tmp_path):
    path = tmp_path / "f.json"
    files.require_same(path, {"seed": 1, "started_at": 5}, {"seed": 1})
    with pytest.raises(
        files.UnusableFileError, match=r"f\.json: was measured with cpu None, not x"
    ):
        files.require_same(path, {"seed": 1}, {"seed": 1, "cpu": "x"})


def test_what_fits_in_a_line_is_written_in_one(tmp_path):
    content = {"cells": [{"m": 4, "times": {"native": 1.0}}] * 20, "empty": [], "name": "é"}
    files.write_json(tmp_path / "f.json", content)
    text = (tmp_path / "f.json").read_text()
    assert json.loads(text) == content
    assert text.splitlines()[2] == '  {"m": 4, "times": {"native": 1.0}},'

import json

import msgspec
import pytest
from by_hand import part_using

from strategies import policy as policies
from strategies.measuring import store
from strategies.policy import calibration, validators
from strategies.policy.calibration import Calibration


@pytest.fixture
def built(invoke, results, tmp_path):
    path = tmp_path / "policy.json"
    assert "cells written to" in invoke("policy", "build", path, "--results", results).stdout
    return path


def test_a_policy_is_built_shown_and_compared(invoke, built):
    shown = invoke("policy", "show", built)
    assert "If only one may be kept" in shown.stdout
    assert "rank=" in shown.stdout
    assert ", 0 differ;" in invoke("policy", "diff", built, built).stdout


def test_of_several_machines_one_is_to_be_named(invoke, fails, results, tmp_path):
    folder, out = tmp_path / "results", tmp_path / "policy.json"
    (run,) = store.load(results / "all.json.gz")
    cells = tuple(cell for cell in run.cells if cell.case.operation == "det")
    for name in ("epyc", "elsewhere"):
        machine = msgspec.structs.replace(run.machine, name=name, threads=64)
        few = msgspec.structs.replace(run, machine=machine, cells=cells)
        store.write(folder / f"{name}.json", few)
    build = "policy", "build", out, "--results", folder
    fails(build, "elsewhere, epyc", "--base")
    fails([*build, "--base", "nowhere"], "no results of a machine nowhere")
    built = invoke(*build, "--base", "epyc")
    assert "beside it elsewhere (cpu)" in built.stdout
    shown = invoke("policy", "show", out).stdout
    assert "Other machines" in shown
    assert "the nearest machine (epyc, 64 threads, torch 2.13.0" in shown
    assert ", 0 differ;" in invoke("policy", "diff", out, out).stdout


def test_policies_that_differ_give_exit_code_one(invoke, built, tmp_path):
    content = json.loads(built.read_text())
    cell = content["operations"]["lu_factor"]["cells"]["cpu"]["float64"][0]
    cell[5:7] = "somebody_elses", []
    new = tmp_path / "new.json"
    new.write_text(json.dumps(content))
    assert "somebody_elses" in invoke("policy", "diff", built, new, code=1).stdout


def test_a_foreign_policy_is_named_and_kept(invoke, fails, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text('{"format": "something else"}')
    for command in (("policy", "show", path), ("policy", "diff", path, path), ("regret", path)):
        fails(command, "policy.json", "is not a backward-strategies policy")
    assert path.read_text() == '{"format": "something else"}'


def test_a_place_that_cannot_be_written_is_named(invoke, fails, results, tmp_path):
    out = tmp_path / "nowhere" / "policy.json"
    fails(["policy", "build", out, "--results", results], "nowhere", "cannot be written")


@pytest.fixture
def calibrated(configuration):
    """A part of this machine and one of another, in the user's file."""
    elsewhere = msgspec.structs.replace(validators.here(), cpu="another processor")
    parts = part_using("qr_pinv"), part_using("qr_pinv", validators=elsewhere)
    Calibration(parts=parts).save(calibration.location(), parents=True)
    return parts


def test_without_a_file_it_shows_what_is_in_force_and_why(invoke, calibrated):
    policies.refresh()
    shown = " ".join(invoke("policy", "show").stdout.split())
    assert '"auto" follows the calibration' in shown
    assert "another processor" in shown
    assert "not another processor" in shown


def test_where_nothing_was_calibrated_it_says_so(invoke, fails, configuration, tmp_path):
    shown = invoke("policy", "show").stdout
    assert '"auto" follows the shipped policy' in shown
    assert "Nothing was calibrated" in shown
    assert "nothing was calibrated" in invoke("policy", "clear").stdout
    fails(["policy", "export", tmp_path / "out.json"], "nothing was calibrated", "policy.json")


def test_what_was_exported_is_imported_on_a_machine_of_the_same_kind(invoke, calibrated, tmp_path):
    out = tmp_path / "exported.json.gz"
    invoke("policy", "export", out)
    assert "another processor" in invoke("policy", "show", out).stdout
    invoke("policy", "clear")
    imported = invoke("policy", "import", out)
    assert "1 part imported" in imported.stdout
    assert "1 part of other machines left out" in " ".join(imported.stdout.split())
    (part,) = Calibration.read(calibration.location()).parts
    assert part.validators == validators.here()


def test_a_foreign_calibration_is_refused_with_the_reasons(invoke, fails, calibrated, tmp_path):
    foreign = tmp_path / "foreign.json"
    Calibration(parts=calibrated[1:]).save(foreign)
    invoke("policy", "clear")
    fails(["policy", "import", foreign], "foreign.json", "not another processor")
    assert not calibration.location().exists()
    fails(["policy", "import", policies.SHIPPED], "is not a backward-strategies calibration")

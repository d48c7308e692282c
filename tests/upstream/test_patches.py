"""The diffs for PyTorch are whole, apply, and hold the code that is compiled and checked here."""

import re
import shutil
from pathlib import Path
from unittest import mock

import pytest
import torch
import torchgen

import upstream
from tests.process import run
from upstream import check, patch

ROOT = Path(upstream.__file__).parent
PAGE = ROOT.parent / "docs" / "upstream.md"
DEFINITIONS = "torch/csrc/autograd/FunctionsManual.cpp"
DECLARATIONS = "torch/csrc/autograd/FunctionsManual.h"
FORMULAS = "tools/autograd/derivatives.yaml"
CHANGED_IN_2_15 = {"det"}
"""Patches of a line that older releases do not have."""
END = "} // namespace torch::autograd::generated::details\n"


@pytest.fixture(params=patch.NAMES)
def name(request):
    return request.param


def added(name, file):
    """What a diff adds to a file."""
    diff = (ROOT / name / f"{name}.diff").read_text(encoding="utf-8")
    (part,) = (each for each in diff.split("diff --git ") if each.startswith(f"a/{file} "))
    lines = part.splitlines(keepends=True)
    return "".join(line[1:] for line in lines if re.match(r"\+(?!\+\+ )", line))


def derivative(name):
    """The functions in a patch's header."""
    text = (ROOT / name / "derivative.h").read_text(encoding="utf-8")
    return text.split("generated::details {\n")[1].removesuffix(END).strip()


def test_a_folder_has_all_that_a_reviewer_wants_and_its_page_is_one_page(name):
    wanted = ["README.md", "cases.py", "derivative.h", "extension.cpp", f"{name}.diff"]
    assert [file for file in wanted if not (ROOT / name / file).is_file()] == []
    assert len((ROOT / name / "README.md").read_text(encoding="utf-8").splitlines()) <= 60


def test_the_documentation_tells_every_patch():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(patch.NAMES)


def test_a_diff_adds_the_derivative_that_is_checked(name):
    assert added(name, DEFINITIONS).strip() == derivative(name)


def test_a_diff_declares_and_uses_what_it_defines(name):
    for declared in added(name, DECLARATIONS).strip().removesuffix(";").split(";\n"):
        assert f"{declared} {{" in derivative(name)
        function = re.search(r"(\w+)\(", declared)[1]
        assert f"{function}(" in added(name, FORMULAS)


def test_a_diff_applies(name, tmp_path):
    """To what an installed PyTorch has of its sources, and to the end of the file that it has not."""
    if name in CHANGED_IN_2_15 and torch.__version__ < "2.15":
        pytest.skip("the diff is against 2.15, where the line of forward mode is another")
    of_torchgen, of_torch = Path(torchgen.__file__).parent, Path(torch.__file__).parent
    for file, source in {
        FORMULAS: of_torchgen / "packaged/autograd/derivatives.yaml",
        DECLARATIONS: of_torch / "include/torch/csrc/autograd/FunctionsManual.h",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tmp_path / file)
    (tmp_path / DEFINITIONS).write_text(f"\n{END}", encoding="utf-8")
    done = run("git", "apply", ROOT / name / f"{name}.diff", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    applied = (tmp_path / DEFINITIONS).read_text(encoding="utf-8")
    assert applied.strip() == f"{derivative(name)}\n\n{END}".strip()


def test_an_unknown_patch_is_refused():
    with pytest.raises(ValueError, match=r"there is no patch 'svd': there is .*cholesky"):
        patch.enabled("svd").__enter__()


@pytest.mark.slow
def test_samples_fail_before_and_pass_after(name):
    for label, figure, limit in patch.cases(name).samples():
        assert not figure() <= limit, label
        with patch.enabled(name):
            assert figure() <= limit, label
        assert not figure() <= limit, label


@pytest.mark.slow
def test_derivatives_of_three_orders(name):
    assert [*check.derivatives(name)] == []


@pytest.mark.slow
def test_the_samples_of_pytorch(name):
    pytest.importorskip("expecttest", reason="PyTorch's list of operations imports it")
    with mock.patch.object(torch.backends, "disable_global_flags"):  # which other tests set
        assert [*check.derivatives_of_samples(name)] == []

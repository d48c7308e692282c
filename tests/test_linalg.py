"""The namespace over the records."""

from pathlib import Path

import pytest
import torch

from strategies import linalg, operations


def test_it_has_what_the_modules_of_operations_offer():
    for module in operations.modules():
        assert all(getattr(linalg, name) is getattr(module, name) for name in module.__all__)


def test_other_names_are_those_of_torch():
    assert linalg.eigh is torch.linalg.eigh
    with pytest.raises(AttributeError, match=r"neither strategies\.linalg nor torch\.linalg"):
        linalg.no_such_function  # noqa: B018


def test_the_stub_for_type_checkers_names_the_same():
    stub = Path(linalg.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    expected = [f"from {module.__name__} import *" for module in operations.modules()]
    assert [line for line in stub.splitlines() if "*" in line] == expected

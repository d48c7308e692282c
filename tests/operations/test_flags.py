"""Flags of the functions are bools."""

import numpy as np
import pytest
import torch
from arguments import ARGUMENTS, OPTIONS

from strategies import linalg
from strategies.operations.traceable import flags_of

FLAGS = [(name, flag) for name in linalg.__all__ for flag, _ in flags_of(getattr(linalg, name))]


def test_there_are_flags():
    assert ("solve_triangular", "upper") in FLAGS
    assert ("lu", "pivot") in FLAGS


@pytest.mark.parametrize("value", ["lower", 1, None, np.True_])
@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_what_is_no_bool_is_refused(name, flag, value):
    options = OPTIONS.get(name, {}) | {flag: value}
    with pytest.raises(TypeError, match=f"linalg.{name}: {flag} must be a bool, not"):
        getattr(linalg, name)(*ARGUMENTS[name], **options)


def test_flags_by_position_are_checked():
    with pytest.raises(TypeError, match="upper must be a bool"):
        linalg.cholesky_solve(torch.eye(2), torch.eye(2), "lower")

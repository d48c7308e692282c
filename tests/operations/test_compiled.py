"""Functions that take no part in measurements compile in one graph, with the gradients of eager mode."""

import pytest
import torch
from arguments import ARGUMENTS, leaves_of, ours_and_torchs
from comparison import require_alike
from operations import compiled

from strategies import operations

CASES = [
    *((name, {}) for name in ARGUMENTS if name not in operations.names()),
    ("lu_solve", {"adjoint": True}),
    *(("qr", {"mode": mode}) for mode in ("complete", "r")),
]


@pytest.mark.parametrize("strategy", ["auto", "explicit_inverse"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_gradients_are_those_of_eager_mode(name, options, strategy):
    call, _ = ours_and_torchs(name, **options, strategy=strategy)

    def loss(*arguments):
        found = call(*arguments)
        parts = found if isinstance(found, tuple) else (found,)
        # Of eigenvectors the phases are left alone; and squares of unit columns are constant.
        return sum((part.abs() ** 3).sum() for part in parts if part.requires_grad)

    require_alike(compiled(loss), loss, *leaves_of(name))


@pytest.mark.parametrize("name", ["inv_ex", "solve_ex"])
def test_singular_matrices_are_reported_as_by_torch(name):
    A, *rest = ARGUMENTS[name]
    A = A.clone()
    A[1, 2] = 0
    ours, of_torch = ours_and_torchs(name)
    assert torch.equal(compiled(ours)(A, *rest).info, of_torch(A, *rest).info)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("name", ["lu_solve", "solve_triangular"])
def test_gradients_of_systems_from_the_right(name, is_complex):
    *others, B = (
        each.to(torch.complex128) if is_complex and each.is_floating_point() else each
        for each in leaves_of(name)
    )
    call, _ = ours_and_torchs(name, left=False)

    def loss(*arguments):
        return (call(*arguments).abs() ** 3).sum()

    require_alike(compiled(loss), loss, *others, B.mT.detach().requires_grad_())

"""The block reverse, compiled and in torch's operations, against the formula with full solves."""

import pytest
import torch

from strategies import registry
from strategies.builtin import blocked_lu
from strategies.factors.pivots import inverse_order
from strategies.kernels.cpu import has_blas

DTYPES = [torch.float64, torch.float32, torch.complex128, torch.complex64]

# One small block, the blocks of a wide one, wide blocks and a rest; square, tall and wide.
SHAPES = [
    (1, 1),
    (48, 48),
    (49, 49),
    (97, 97),
    (250, 250),
    (130, 50),
    (50, 130),
    (250, 150),
    (7, 1),
]

_strategy = registry.get("blocked_lu")
_reference = registry.get("triangular_solve")


def _problem(*shape, dtype=torch.float64):
    """Factors, the order of rows and a cotangent."""
    generator = torch.Generator().manual_seed(0)
    A, cotangent = (torch.randn(*shape, dtype=dtype, generator=generator) for _ in range(2))
    LU, pivots = torch.linalg.lu_factor(A)
    return LU, inverse_order(pivots, shape[-2]), cotangent


def _require_close(gradient, expected):
    error = torch.linalg.vector_norm(gradient - expected)
    roundoff = torch.finfo(gradient.dtype).eps * gradient.shape[-1]
    assert error <= 30 * roundoff * torch.linalg.vector_norm(expected)


@pytest.fixture(params=["compiled", "in torch's operations"])
def way(request, monkeypatch):
    if request.param != "compiled":
        monkeypatch.setattr(blocked_lu, "has_blas", lambda: False)
    elif not has_blas():
        pytest.skip("this build of torch does not show its BLAS")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_arrangement_of_blocks_gives_the_gradient(shape, dtype):
    problem = _problem(*shape, dtype=dtype)
    _require_close(_strategy.lu_backward(*problem), _reference.lu_backward(*problem))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("batch", [(1,), (2, 3), (40,), (0,)])
def test_batches_give_the_gradients_of_their_matrices(batch):
    LU, order, cotangent = _problem(*batch, 60, 70)
    gradient = _strategy.lu_backward(LU, order, cotangent)
    assert gradient.shape == LU.shape
    for index in torch.cartesian_prod(*map(torch.arange, batch)).view(-1, len(batch)).tolist():
        i = tuple(index)
        _require_close(gradient[i], _strategy.lu_backward(LU[i], order[i], cotangent[i]))


@pytest.mark.usefixtures("way")
def test_fewer_matrices_than_threads_take_turns():
    problem = _problem(3, 100, 100)
    expected = _strategy.lu_backward(*problem)
    torch.set_num_threads(4)
    try:
        gradient = _strategy.lu_backward(*problem)
    finally:
        torch.set_num_threads(1)
    _require_close(gradient, expected)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "rearranged",
    [
        lambda LU: LU.contiguous(),
        lambda LU: LU[:1].expand(LU.shape),
        lambda LU: LU.repeat_interleave(2, dim=-2)[..., ::2, :],
        lambda LU: LU.conj().resolve_conj().conj(),
    ],
    ids=["rows in order", "one matrix for all", "every other row", "conjugated lazily"],
)
def test_factors_may_have_any_strides(rearranged):
    LU, order, cotangent = _problem(3, 60, 60, dtype=torch.complex128)
    LU = rearranged(LU)
    expected = _reference.lu_backward(LU.clone(), order, cotangent)
    _require_close(_strategy.lu_backward(LU, order, cotangent), expected)


@pytest.mark.usefixtures("way")
def test_what_is_given_is_left_as_it_was():
    problem = _problem(100, 100)
    before = [tensor.clone() for tensor in problem]
    _strategy.lu_backward(*problem)
    assert all(map(torch.equal, problem, before))

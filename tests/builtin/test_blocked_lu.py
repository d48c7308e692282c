"""The block reverse, compiled and in torch's operations, against the formula with full solves."""

import pytest
import torch
from comparison import drawn

from strategies import registry
from strategies.factors import PackedLU, Triangular
from strategies.factors.pivots import inverse_order
from strategies.formulas import lu as formula
from strategies.kernels.cpu.calls import Call, reverse_lu
from strategies.testing.global_state import preserved

# One small block, the blocks of a wide one, wide blocks and a rest; square, tall and wide.
SQUARE = [(n, n) for n in (1, 48, 49, 97, 250)]
SHAPES = [*SQUARE, (130, 50), (50, 130), (250, 150), (7, 1)]

reverse = registry.get("blocked_lu").lu_backward


@pytest.fixture(params=["compiled", "in torch's operations"], autouse=True)
def _way(request, monkeypatch):
    if request.param != "compiled":
        monkeypatch.setattr(Call, "supports", lambda *_: False)
    elif not reverse_lu.supports(*[torch.eye(1)] * 3):
        pytest.skip("this build of torch does not export its BLAS")


def _problem(*shape, dtype=torch.float64):
    """Factors and a cotangent."""
    A, cotangent = drawn(2, *shape, dtype=dtype)
    LU, pivots = torch.linalg.lu_factor(A)
    return PackedLU(LU, inverse_order(pivots, shape[-2])), cotangent


def _expected(factors, cotangent):
    rows = formula.backward(Triangular, factors.LU, cotangent)
    return formula.permute_rows(rows, factors.inverse_order)


def _require_close(gradient, expected):
    error = torch.linalg.vector_norm(gradient - expected)
    roundoff = torch.finfo(gradient.dtype).eps * gradient.shape[-1]
    assert error <= 30 * roundoff * torch.linalg.vector_norm(expected)


def test_every_arrangement_of_blocks_gives_the_gradient():
    for dtype in (torch.float64, torch.float32, torch.complex128, torch.complex64):
        for shape in SHAPES:
            problem = _problem(*shape, dtype=dtype)
            _require_close(reverse(*problem), _expected(*problem))


def test_batches_give_the_gradients_of_their_matrices():
    for batch in ((1,), (2, 3), (40,), (0,)):
        (LU, order), cotangent = _problem(*batch, 60, 70)
        gradient = reverse(PackedLU(LU, order), cotangent)
        assert gradient.shape == LU.shape
        for index in torch.cartesian_prod(*map(torch.arange, batch)).view(-1, len(batch)).tolist():
            i = tuple(index)
            _require_close(gradient[i], reverse(PackedLU(LU[i], order[i]), cotangent[i]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_factors_may_be_repeated_in_memory_as_under_vmap(dtype):
    factors, _ = _problem(2, 60, 50, dtype=dtype)
    cotangents = torch.randn(3, 2, 60, 50, dtype=dtype)
    gradients = reverse(PackedLU(*[each.expand(3, *each.shape) for each in factors]), cotangents)
    for gradient, cotangent in zip(gradients, cotangents, strict=True):
        _require_close(gradient, _expected(factors, cotangent))


def test_fewer_matrices_than_threads_take_turns():
    problem = _problem(3, 100, 100)
    expected = reverse(*problem)
    with preserved():
        torch.set_num_threads(4)
        _require_close(reverse(*problem), expected)


def test_factors_may_have_any_strides():
    (LU, order), cotangent = _problem(3, 60, 60, dtype=torch.complex128)
    for given in (
        LU.contiguous(),
        LU[:1].expand(LU.shape),
        LU.repeat_interleave(2, dim=-2)[..., ::2, :],
        LU.conj().resolve_conj().conj(),
    ):
        expected = _expected(PackedLU(given.clone(), order), cotangent)
        _require_close(reverse(PackedLU(given, order), cotangent), expected)


def test_what_is_given_is_left_as_it_was():
    factors, cotangent = _problem(100, 100)
    before = [tensor.clone() for tensor in (*factors, cotangent)]
    reverse(factors, cotangent)
    assert all(map(torch.equal, (*factors, cotangent), before))

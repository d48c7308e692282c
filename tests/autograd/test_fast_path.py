"""Which calls take the fast path, and that all others give the same on the generic path."""

import contextlib
import functools
import itertools

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck, graph
from torch.utils.flop_counter import FlopCounterMode

import strategies
from strategies import linalg
from strategies.autograd import fast_path, fast_path_node
from strategies.autograd.cpp import is_ordinary
from strategies.autograd.fast_path import FastPath
from strategies.formulas.domains import hermitian_part
from strategies.kernels import extension
from strategies.linalg import (
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    det,
    inv,
    lstsq,
    lu,
    lu_factor,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
)

SQUARE = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TALL = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
RHS = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def rhs(A):
    return RHS[: A.shape[-2]].to(A.dtype).expand(*A.shape[:-2], -1, -1)


def positive(A):
    return A @ A.mH + torch.eye(4)


def factor(A):
    return A.tril(-1) + 2 * torch.eye(4)


def with_residuals(result):
    return torch.cat([result.solution, result.residuals.unsqueeze(-2)], dim=-2)


CALLS = {
    "inv": inv,
    "solve": lambda A, **s: solve(A, rhs(A), **s),
    "det": det,
    "slogdet": lambda A, **s: slogdet(A, **s).logabsdet,
    "lu_factor": lambda A, **s: lu_factor(A, **s).LU,
    "lu": lambda A, **s: lu(A, **s).U,
    "pinv": pinv,
    "lstsq": lambda A, **s: lstsq(A, rhs(A), **s).solution,
    "cholesky": lambda A, **s: cholesky(positive(A), **s),
    "cholesky_solve": lambda A, **s: cholesky_solve(rhs(A), factor(A), **s),
    "cholesky_inverse": lambda A, **s: cholesky_inverse(factor(A), **s),
    "qr": lambda A, **s: torch.cat(qr(A, **s), dim=-2),
    **{
        f"solve_triangular of {'unit ' * unit}{'upper' if upper else 'lower'}": functools.partial(
            lambda upper, unit, A, **s: solve_triangular(
                A + 2 * torch.eye(4), rhs(A), upper=upper, unitriangular=unit, **s
            ),
            upper,
            unit,
        )
        for upper, unit in itertools.product([False, True], repeat=2)
    },
    "solve from the right": lambda A, **s: solve(A, rhs(A).mT, left=False, **s),
    "solve_triangular from the right": lambda A, **s: solve_triangular(
        factor(A), rhs(A).mT, upper=False, left=False, **s
    ),
    "slogdet with its sign": lambda A, **s: functools.reduce(torch.add, slogdet(A, **s)),
    "pinv by a relative tolerance": lambda A, **s: pinv(A, rtol=1e-6, **s),
    "pinv by an absolute tolerance": lambda A, **s: pinv(A, atol=1e-6, **s),
    "lstsq by a tolerance": lambda A, **s: lstsq(A, rhs(A), 1e-6, **s).solution,
    "lstsq with residuals": lambda A, **s: with_residuals(lstsq(A, rhs(A), **s)),
    "lu_factor_ex": lambda A, **s: linalg.lu_factor_ex(A, **s).LU,
    "cholesky_ex": lambda A, **s: linalg.cholesky_ex(positive(A), **s).L,
    "cholesky of upper": lambda A, **s: cholesky(positive(A), upper=True, **s),
    "cholesky_solve of upper": lambda A, **s: cholesky_solve(rhs(A), factor(A).mT, True, **s),
    "cholesky_inverse of upper": lambda A, **s: cholesky_inverse(factor(A).mT, True, **s),
}


@pytest.fixture(params=["C++", "Python"])
def language(request, monkeypatch):
    """What the fast path is written in."""
    if request.param == "Python":
        monkeypatch.setattr(fast_path, "_compiled", lambda _: None)
    elif extension.load() is None:
        pytest.skip("the fast path was not built: strategies.warmup() does so")


@pytest.fixture
def taken(monkeypatch, language):
    """Whether calls took the fast path; and backwards that left it."""
    taken = []
    call, differentiated = FastPath.__call__, fast_path_node.differentiated

    def seen_call(self, *arguments):
        outputs = call(self, *arguments)
        taken.append(("forward", outputs is not None))
        return outputs

    def seen_backward(*arguments):
        taken.append(("backward", False))
        return differentiated(*arguments)

    monkeypatch.setattr(FastPath, "__call__", seen_call)
    monkeypatch.setattr(fast_path_node, "differentiated", seen_backward)
    return taken


def both(call, A):
    A = A.detach().requires_grad_()
    result = call(A, strategy="fused")
    (gradient,) = torch.autograd.grad(result.sum().abs(), A)
    return result, gradient


def matrix(operation):
    return TALL if operation.startswith(("lu", "pinv", "lstsq", "qr")) else SQUARE


@pytest.mark.parametrize("operation", CALLS)
def test_a_plain_call_takes_the_fast_path(operation, taken):
    result, gradient = both(CALLS[operation], matrix(operation))
    assert taken == [("forward", True)]
    A = matrix(operation).clone().requires_grad_()
    expected = CALLS[operation](A, strategy="qr_pinv")
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum().abs(), A)[0])


@pytest.mark.parametrize("operation", CALLS)
def test_a_batch_takes_the_fast_path(operation, taken):
    A = matrix(operation) + torch.arange(3.0, dtype=torch.float64).view(3, 1, 1) / 4
    result, gradient = both(CALLS[operation], A)
    assert taken == [("forward", True)]
    A = A.clone().requires_grad_()
    expected = CALLS[operation](A, strategy="qr_pinv")
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum().abs(), A)[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("operation", CALLS)
def test_second_derivatives_do_not_depend_on_whether_there_are_third_ones(
    operation, batch, dtype, language
):
    A = matrix(operation).to(dtype) * (1 + (0.3j if dtype.is_complex else 0))
    if batch:
        A = A + torch.arange(3.0, dtype=torch.float64).view(3, 1, 1) / 4
    A.requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    loss = (result.abs().square() * (1 + result.real)).sum()
    (gradient,) = torch.autograd.grad(loss, A, create_graph=True)
    direction = torch.linspace(-1, 1, A.numel(), dtype=torch.float64).view(A.shape).to(dtype)
    found, expected = (
        torch.autograd.grad(gradient, A, direction, create_graph=is_kept, retain_graph=True)[0]
        for is_kept in (False, True)
    )
    torch.testing.assert_close(found, expected.detach())


@pytest.mark.parametrize("operation", [name for name in CALLS if name != "qr"])  # as in PyTorch
def test_a_gradient_may_be_overwritten_before_it_is_differentiated(operation, language):
    A = matrix(operation).clone().requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    (gradient,) = torch.autograd.grad(result.pow(3).sum(), A, create_graph=True)
    (expected,) = torch.autograd.grad(gradient.sum(), A, retain_graph=True)
    with torch.no_grad():
        gradient.zero_()
    torch.testing.assert_close(torch.autograd.grad(gradient.sum(), A)[0], expected)


def test_there_is_one_info_for_each_matrix_of_a_batch(taken):
    found = linalg.lu_factor_ex(TALL.expand(3, 2, 6, 4), strategy="fused")
    assert taken == [("forward", True)]
    assert (found.info.shape, found.info.dtype) == ((3, 2), torch.int32)


@pytest.mark.parametrize(
    "along_random_directions", [True, pytest.param(False, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("operation", CALLS)
def test_derivatives_of_all_orders_are_right(operation, along_random_directions, language):
    options = {"fast_mode": along_random_directions, "check_batched_grad": True}
    for dtype in (torch.float64, torch.complex128):
        A = (matrix(operation).to(dtype) * (1 + (0.3j if dtype.is_complex else 0))).requires_grad_()

        def call(A):
            return CALLS[operation](A, strategy="fused")

        assert gradcheck(call, A, check_forward_ad=True, **options)
        assert gradgradcheck(call, A, check_fwd_over_rev=True, **options)


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
def test_both_languages_give_the_same_bits(operation, dtype, monkeypatch):
    if extension.load() is None:
        pytest.skip("the fast path was not built: strategies.warmup() does so")
    A = matrix(operation).to(dtype).expand(3, -1, -1).clone()
    of_cpp = both(CALLS[operation], A)
    monkeypatch.setattr(fast_path, "_compiled", lambda _: None)
    for found, expected in zip(of_cpp, both(CALLS[operation], A), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("operation", ["qr", "solve_triangular"])
def test_auto_takes_the_fast_path_of_what_no_policy_knows(operation, taken):
    A = SQUARE.clone().requires_grad_()
    B = () if operation == "qr" else (RHS[:4],)
    options = {} if operation == "qr" else {"upper": True}
    found, expected = (
        getattr(module, operation)(A, *B, **options) for module in (linalg, torch.linalg)
    )
    torch.testing.assert_close(tuple(found), tuple(expected))
    found, expected = (torch.autograd.grad(each[0].sum(), A)[0] for each in (found, expected))
    torch.testing.assert_close(found, expected)
    assert taken == [("forward", True)]


@pytest.mark.parametrize(
    "call",
    [
        lambda module, A: module.lu(A)[1:],
        lambda module, A: module.lstsq(A[:2], A[:2, :1]).solution,
    ],
    ids=["lu", "wide lstsq"],
)
def test_auto_takes_the_fast_path_where_packs_are_measured_and_have_no_kernel(call, taken):
    found, expected = (call(module, SQUARE) for module in (linalg, torch.linalg))
    torch.testing.assert_close(found, expected)
    assert taken == [("forward", True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("shape", [(7, 6, 3), (200, 6, 3), (5, 4, 4), (9, 4, 4)], ids=str)
def test_qr_of_graded_matrices_is_that_of_the_generic_path(shape, dtype, taken):
    A = torch.randn(*shape, dtype=dtype) * 10.0 ** torch.arange(0, -shape[-1], -1)
    A.requires_grad_()
    found, expected = (qr(A, strategy=name) for name in ("fused", "triangular_solve"))
    cotangents = [torch.randn_like(each) for each in expected]
    for one, other in zip(
        (*found, torch.autograd.grad(found, A, cotangents)[0] * A.detach()),
        (*expected, torch.autograd.grad(expected, A, cotangents)[0] * A.detach()),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert taken == [("forward", True), ("forward", False)]


def test_qr_of_dependent_columns_has_no_gradient(taken):
    A = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(torch.linalg.LinAlgError, match="full rank"):
        qr(A, strategy="fused").Q.sum().backward()
    assert taken == [("forward", True), ("backward", False)]


@pytest.mark.parametrize("operation", CALLS)
def test_transforms_take_the_generic_path(operation, taken):
    call, A = CALLS[operation], matrix(operation)

    def scalar(A):
        return call(A, strategy="fused").sum().abs()

    expected = both(call, A)[1]
    taken.clear()
    torch.testing.assert_close(torch.func.grad(scalar)(A), expected)
    batch = torch.func.vmap(torch.func.grad(scalar))(torch.stack([A, A]))
    torch.testing.assert_close(batch[1], expected)
    assert {done for _, done in taken} == {False}
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(
            scalar(forward_ad.make_dual(A, torch.ones_like(A)))
        ).tangent
    torch.testing.assert_close(tangent, expected.sum())


WITH_TANGENTS = [each for each in CALLS if each != "qr"]


@pytest.mark.parametrize("operation", WITH_TANGENTS)
def test_a_level_of_forward_mode_takes_the_fast_path_below(operation, taken):
    call, A = CALLS[operation], matrix(operation)
    torch.func.jvp(lambda A: call(A, strategy="fused"), (A,), (torch.ones_like(A),))
    assert {done for _, done in taken} == {True}


def test_tangents_of_residuals_are_differences(language):
    A, direction = TALL, torch.ones_like(TALL)

    def residuals(A):
        return lstsq(A, rhs(A), strategy="fused").residuals

    found = torch.func.jvp(residuals, (A,), (direction,))[1]
    near, far = residuals(A + 1e-6 * direction), residuals(A - 1e-6 * direction)
    torch.testing.assert_close(found, (near - far) / 2e-6, rtol=1e-6, atol=1e-8)


RANK_TWO = [(5, 4), (4, 5), (4, 4)]


def of_rank_two(shape, batch, dtype):
    generator = torch.Generator().manual_seed(5)
    m, n = shape
    sides = (m, 2), (2, n), (m, 3)
    return [torch.randn(*batch, *side, dtype=dtype, generator=generator) for side in sides]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("shape", RANK_TWO, ids=str)
def test_tangents_at_deficient_rank_are_along_the_matrices_of_that_rank(shape, batch, dtype, taken):
    left, right, rhs = of_rank_two(shape, batch, dtype)

    def along(t):
        A = (left + t * left.flip(-2)) @ (right - t * right.flip(-1))
        return torch.cat([pinv(A, strategy="fused"), lstsq(A, rhs, strategy="fused").solution], -1)

    step = 1e-5
    found = torch.func.jvp(along, (torch.zeros(()).to(left.real),), (torch.ones(()).to(left.real),))
    torch.testing.assert_close(
        found[1], (along(step) - along(-step)) / (2 * step), rtol=1e-6, atol=1e-6
    )
    assert {done for _, done in taken} == {True}


@pytest.mark.parametrize("shape", RANK_TWO, ids=str)
def test_second_derivatives_at_deficient_rank_are_those_among_matrices_of_that_rank(
    shape, language
):
    left, right, rhs = (each.requires_grad_() for each in of_rank_two(shape, (), torch.float64))
    assert gradgradcheck(lambda *sides: pinv(sides[0] @ sides[1], strategy="fused"), (left, right))
    assert gradgradcheck(
        lambda left, right, rhs: lstsq(left @ right, rhs, 1e-9, strategy="fused").solution,
        (left, right, rhs),
    )


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2, device="meta"),
        torch.ones(2).half(),
        [torch.ones(2)],
        torch.ones(2).to_sparse(),
    ],
    ids=["meta", "half", "list", "sparse"],
)
def test_what_takes_more_than_a_look_is_no_ordinary_call(value):
    assert not is_ordinary((torch.ones(2), value), {})
    assert not is_ordinary((torch.ones(2),), {"rtol": value})


@pytest.mark.skipif(
    extension.load() is None, reason="the fast path was not built: strategies.warmup()"
)
def test_a_call_that_something_beside_autograd_sees_is_not_ordinary():
    found = {}
    arguments = torch.ones(2), 1e-6, None
    found["plain"] = is_ordinary(arguments, {"upper": True})
    torch.func.vmap(lambda x: found.update(vmap=is_ordinary(arguments, {})) or x)(torch.ones(2))
    torch.jit.trace(
        lambda x: found.update(trace=is_ordinary((x,), {})) or x, torch.ones(2), check_trace=False
    )
    with torch.autocast("cpu", torch.bfloat16):
        found["autocast"] = is_ordinary(arguments, {})
    with FlopCounterMode(display=False):
        found["mode"] = is_ordinary(arguments, {})
    expected = dict.fromkeys(("vmap", "trace", "autocast", "mode"), False)
    assert found == {"plain": True, **expected}


def test_a_tangent_of_a_recorded_tensor_takes_the_generic_path(taken):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(SQUARE.detach().requires_grad_(), torch.ones_like(SQUARE))
        inv(dual, strategy="fused")
    assert ("forward", True) not in taken


def test_a_mode_of_torch_sees_the_generic_path(taken):
    expected = both(inv, SQUARE)
    taken.clear()
    for mode in (FlopCounterMode(display=False), torch.device("cpu")):
        with mode:
            found = both(inv, SQUARE)
        for value, due in zip(found, expected, strict=True):
            torch.testing.assert_close(value, due)
    assert {done for _, done in taken} == {False}


def test_forward_mode_of_another_thread_changes_no_path(taken):
    with forward_ad.dual_level():
        both(inv, SQUARE)
    assert taken == [("forward", True)]


class Subclass(torch.Tensor):
    """A tensor of a program's own."""


@pytest.mark.parametrize(
    "A",
    [SQUARE.to(torch.complex128).conj(), SQUARE.as_subclass(Subclass)],
    ids=["lazy conjugate", "subclass"],
)
def test_other_tensors_take_the_generic_path(A, taken):
    torch.testing.assert_close(inv(A, strategy="fused"), torch.linalg.inv(A))
    assert {done for _, done in taken} == {False}


def test_a_parameter_takes_the_fast_path(taken):
    inv(torch.nn.Parameter(SQUARE), strategy="fused").sum().backward()
    assert taken == [("forward", True)]


def test_auto_takes_the_fast_path_where_it_stands_for_the_strategy(taken):
    with strategies.use("fused"):
        result = inv(SQUARE.clone().requires_grad_())
    inv(SQUARE, strategy="triangular_solve")
    inv(SQUARE, strategy=strategies.get("fused"))
    result.sum().backward()
    assert taken == [("forward", True), ("forward", False), ("forward", True)]


def test_without_gradients_there_is_no_node(language):
    with torch.no_grad():
        assert inv(SQUARE.clone().requires_grad_(), strategy="fused").grad_fn is None
    with torch.inference_mode():
        assert inv(SQUARE, strategy="fused").is_inference()


def test_a_rank_deficient_matrix_has_a_fast_path_by_svd(taken):
    A = torch.ones(4, 3, dtype=torch.float64)
    torch.testing.assert_close(pinv(A, strategy="fused"), A.mT / 12)
    assert taken == [("forward", True)]


def test_a_rank_deficient_lu_takes_the_generic_path(taken):
    A = torch.ones(4, 3, dtype=torch.float64)
    torch.testing.assert_close(
        lu(A, strategy="fused").U, lu(A, strategy="triangular_solve").U, rtol=0, atol=0
    )
    assert {done for _, done in taken} == {False}


@pytest.mark.parametrize("operation", [each for each in CALLS if "residuals" not in each])
def test_cotangents_far_from_one_are_scaled_and_keep_to_the_fast_path(operation, taken):
    A = matrix(operation).to(torch.float32).expand(4, -1, -1).clone().requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    G = torch.randn(result.shape[1:]).expand_as(result)
    scales = torch.tensor([2.0**-40, 1.0, 0.0, 2.0**30])
    scaled = G * scales.view(-1, *[1] * (G.ndim - 1))
    (expected,) = torch.autograd.grad(result, A, G, retain_graph=True)
    (found,) = torch.autograd.grad(result, A, scaled)
    torch.testing.assert_close(found, expected * scales.view(-1, 1, 1), rtol=1e-5, atol=0)
    assert taken == [("forward", True)]


def out_of_sequence(X):
    """The same numbers, the second of two batch dimensions first."""
    return X.transpose(0, 1).contiguous().transpose(0, 1)


@pytest.mark.parametrize("operation", CALLS)
def test_a_batch_that_is_no_sequence_takes_the_fast_path(operation, taken):
    A = matrix(operation).expand(2, 3, -1, -1).clone()
    expected, found = both(CALLS[operation], A), both(CALLS[operation], out_of_sequence(A))
    torch.testing.assert_close(found, expected)
    assert all(done for _, done in taken)


@pytest.mark.parametrize("operation", CALLS)
def test_cotangents_of_batches_that_are_no_sequence_keep_to_the_fast_path(operation, taken):
    A = matrix(operation).expand(2, 3, -1, -1).clone().requires_grad_()
    result = CALLS[operation](A, strategy="fused")
    G = torch.randn(result.shape, dtype=result.dtype)
    found, expected = (
        torch.autograd.grad(result, A, each, retain_graph=True)[0]
        for each in (out_of_sequence(G), G)
    )
    torch.testing.assert_close(found, expected)
    assert all(done for _, done in taken)


def test_a_cotangent_at_the_end_of_the_range_has_the_scaled_gradient(taken):
    A = SQUARE.clone().requires_grad_()
    X = inv(A, strategy="fused")
    G = torch.ones_like(X)
    (expected,) = torch.autograd.grad(X, A, G, retain_graph=True)
    (found,) = torch.autograd.grad(X, A, G * 2.0**1000)
    torch.testing.assert_close(found * 2.0**-1000, expected)
    assert taken[-1] == ("backward", False)


def test_outputs_without_a_cotangent_count_as_zero(taken):
    A = SQUARE.to(torch.complex128).requires_grad_()
    _, L, U = lu(A, strategy="fused")
    both_parts = torch.autograd.grad(L.sum().abs(), A, retain_graph=True)[0]
    both_parts = both_parts + torch.autograd.grad(U.sum().abs(), A, retain_graph=True)[0]
    together = torch.autograd.grad(L.sum().abs() + U.sum().abs(), A)[0]
    torch.testing.assert_close(both_parts, together)
    assert all(done for _, done in taken)


def test_residuals_are_differentiable(language):
    A, B = TALL.clone().requires_grad_(), RHS.clone().requires_grad_()
    assert gradcheck(lambda A, B: lstsq(A, B, strategy="fused").residuals, (A, B))
    assert gradgradcheck(lambda A, B: lstsq(A, B, strategy="fused").residuals, (A, B))


@pytest.mark.parametrize("which", [0, 1])
def test_one_of_two_inputs_may_need_no_gradient(which, language):
    inputs = [SQUARE.clone(), RHS[:4].clone()]
    inputs[which].requires_grad_()
    found = torch.autograd.grad(solve(*inputs, strategy="fused").sum(), inputs[which])
    expected = torch.autograd.grad(torch.linalg.solve(*inputs).sum(), inputs[which])
    torch.testing.assert_close(found, expected)


def test_hooks_on_saved_tensors_may_return_other_tensors(taken):
    def offset(tensor):
        return torch.stack([tensor, tensor], -1)[..., 0]

    A = SQUARE.clone().requires_grad_()
    with graph.saved_tensors_hooks(lambda tensor: tensor.clone(), offset):
        X = inv(A, strategy="fused")
    (found,) = torch.autograd.grad(X.sum(), A)
    torch.testing.assert_close(found, both(inv, SQUARE)[1])


def test_overwriting_what_the_backward_reads_is_an_error(language):
    A = SQUARE.clone().requires_grad_()
    X = inv(A, strategy="fused")
    X.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        X.sum().backward()


def test_a_graph_is_used_once_unless_it_is_retained(language):
    A = SQUARE.clone().requires_grad_()
    X = inv(A, strategy="fused").sum()
    first = torch.autograd.grad(X, A, retain_graph=True)
    assert torch.equal(first[0], torch.autograd.grad(X, A)[0])
    with pytest.raises(RuntimeError, match="second time"):
        X.backward()


def test_gradients_have_memory_of_their_own(language):
    for operation, call in CALLS.items():
        A = matrix(operation).clone().requires_grad_()
        call(A, strategy="fused").sum().abs().backward()
        before = A.detach().clone()
        A.grad.zero_()
        assert torch.equal(A, before)


def test_what_is_no_strategy_is_the_same_error_as_elsewhere(language):
    for choice in (None, 3, ["fused"]):
        with pytest.raises(TypeError, match="strategy="):
            inv(SQUARE, strategy=choice)
    with pytest.raises(LookupError), contextlib.nullcontext():
        inv(SQUARE, strategy="fussed")


def test_lu_factor_ex_takes_the_fast_path_of_lu_factor(taken):
    LU, pivots, info = linalg.lu_factor_ex(SQUARE, strategy="fused")
    expected = torch.linalg.lu_factor_ex(SQUARE)
    torch.testing.assert_close(LU, expected.LU)
    assert torch.equal(pivots, expected.pivots)
    assert info == 0
    assert info.dtype == torch.int32
    assert taken == [("forward", True)]


@pytest.mark.parametrize("n", [2, 30, 130])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("operation", ["cholesky", "cholesky_solve", "cholesky_inverse"])
def test_cholesky_factors_of_any_size_give_the_gradient_of_torch(operation, n, dtype, taken):
    generator = torch.Generator().manual_seed(n)
    A, B, G = (torch.randn(2, n, n, dtype=dtype, generator=generator) for _ in range(3))
    A = A @ A.mH / n + torch.eye(n)
    A = A if operation == "cholesky" else torch.linalg.cholesky(A)
    inputs = (B[..., :3], A) if operation == "cholesky_solve" else (A,)
    G = G[..., :3] if operation == "cholesky_solve" else G
    of_torch = torch.linalg.cholesky if operation == "cholesky" else getattr(torch, operation)

    def gradients(function, **chosen):
        leaves = [each.clone().requires_grad_() for each in inputs]
        return torch.autograd.grad(function(*leaves, **chosen), leaves, G)

    found = gradients(getattr(linalg, operation), strategy="fused")
    assert taken == [("forward", True)]
    *rest, expected = gradients(of_torch)
    # PyTorch's is not Hermitian where the cotangent is complex.
    expected = hermitian_part(expected) if operation == "cholesky" else expected
    for gradient, due in zip(found, (*rest, expected), strict=True):
        torch.testing.assert_close(gradient, due)


def test_cholesky_reads_one_triangle(taken):
    A = positive(SQUARE)
    for upper in (False, True):
        triangle = (A.triu() if upper else A.tril()).requires_grad_()
        found = linalg.cholesky_ex(triangle, upper=upper, strategy="fused")
        expected = torch.linalg.cholesky_ex(triangle, upper=upper)
        torch.testing.assert_close(tuple(found), tuple(expected))
        torch.testing.assert_close(
            *(torch.autograd.grad(each.L.exp().sum(), triangle) for each in (found, expected))
        )
    assert all(done for _, done in taken)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("operation", ["cholesky", "cholesky_solve", "cholesky_inverse"])
def test_factors_far_from_one_take_the_generic_path(operation, scale, taken):
    A = (positive(SQUARE) if operation == "cholesky" else factor(SQUARE)) * scale
    inputs = (RHS[:4], A) if operation == "cholesky_solve" else (A,)
    results = [getattr(linalg, operation)(*inputs, strategy=s) for s in ("fused", "batch_last")]
    assert torch.equal(*results)
    assert {done for _, done in taken} == {False}


def test_a_matrix_without_a_factor_is_refused(taken):
    with pytest.raises(torch.linalg.LinAlgError, match="minor of order 2"):
        cholesky(torch.diag(torch.tensor([1.0, -1.0])), strategy="fused")
    assert linalg.cholesky_ex(-torch.eye(2), strategy="fused").info == 1
    with pytest.raises(torch.linalg.LinAlgError, match="element 2 is zero"):
        cholesky_inverse(torch.diag(torch.tensor([1.0, 0.0])), strategy="fused")
    assert {done for _, done in taken} == {False}


def test_a_subclass_that_may_compute_in_another_way_takes_the_generic_path(taken):
    class Mine(type(strategies.get("fused"))):
        name = "mine"

    torch.testing.assert_close(inv(SQUARE, strategy=Mine()), torch.linalg.inv(SQUARE))
    assert {done for _, done in taken} == {False}


def test_a_number_is_no_matrix_and_no_tolerance(language):
    for function, arguments in (
        (slogdet, (3.0,)),
        (pinv, (2.0,)),
        (solve, (SQUARE, 2.0)),
        (lstsq, (TALL, 1.0)),
        (cholesky_solve, (RHS, 1.0)),
    ):
        with pytest.raises(TypeError):
            function(*arguments)

"""Which calls take the fast path, and that all others give the same on the generic path."""

import functools

import pytest
import torch
from comparison import require_alike
from operations import each_dtype, function, reference
from torch.autograd import forward_ad, graph
from torch.utils.flop_counter import FlopCounterMode

import strategies
from strategies import linalg, operations
from strategies.autograd import fast_path
from strategies.autograd.cpp import is_ordinary, is_transformed
from strategies.linalg import inv
from strategies.measuring import Case
from strategies.operations import traceable
from tests.autograd.plain_calls import (
    CALLS,
    RHS,
    SQUARE,
    TALL,
    both,
    each_operation,
    each_operation_with_tangents,
    factor,
    matrix,
    needs_extension,
    positive,
)


@pytest.mark.parametrize("batch", [(), (3,)])
@each_operation
def test_a_plain_call_takes_the_fast_path(operation, batch, taken):
    call, A = CALLS[operation], matrix(operation, batch)
    found = both(call, A)
    assert taken == [True]
    torch.testing.assert_close(found, both(call, A, "qr_pinv"))


@each_operation
@needs_extension
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
def test_both_languages_give_the_same_bits(operation, dtype, monkeypatch):
    A = matrix(operation, (3,), dtype).to(dtype)
    of_cpp = both(CALLS[operation], A)
    monkeypatch.setattr(fast_path, "_compiled", lambda _: None)
    monkeypatch.setattr(traceable, "usual_calls", lambda _: None)
    assert all(map(torch.equal, of_cpp, both(CALLS[operation], A)))


@pytest.mark.parametrize("A", [SQUARE, TALL.expand(3, 2, 6, 4)], ids=["single", "batch"])
def test_there_is_one_info_for_each_matrix(A, taken):
    found = linalg.lu_factor_ex(A, strategy="fused")
    assert taken == [True]
    torch.testing.assert_close(tuple(found), tuple(torch.linalg.lu_factor_ex(A)))


@pytest.mark.parametrize(
    "call",
    [
        # Of the first two no policy knows; of the others packs are measured, and have no kernel.
        lambda module, A: module.qr(A),
        lambda module, A: module.solve_triangular(A, RHS[:4], upper=True),
        lambda module, A: module.lu(A)[1:],
        lambda module, A: module.lstsq(A[:2], A[:2, :1]).solution,
    ],
    ids=["qr", "solve_triangular", "lu", "wide lstsq"],
)
def test_auto_takes_the_fast_path_where_no_policy_says_otherwise(call, taken):
    ours, theirs = (functools.partial(call, module) for module in (linalg, torch.linalg))
    require_alike(ours, theirs, SQUARE.clone().requires_grad_())
    assert taken == [True]


def test_auto_takes_the_fast_path_where_it_stands_for_the_strategy(taken):
    with strategies.use("fused"):
        result = inv(SQUARE.clone().requires_grad_())
    inv(SQUARE, strategy="triangular_solve")
    inv(SQUARE, strategy=strategies.get("fused"))
    result.sum().backward()
    assert taken == [True, False, True]


def test_a_parameter_takes_the_fast_path(taken):
    inv(torch.nn.Parameter(SQUARE), strategy="fused").sum().backward()
    assert taken == [True]


def test_forward_mode_of_another_thread_changes_no_path(taken):
    with forward_ad.dual_level():
        both(inv, SQUARE)
    assert taken == [True]


@each_operation_with_tangents
def test_a_level_of_forward_mode_takes_the_fast_path_below(operation, taken):
    call, A = CALLS[operation], matrix(operation)
    torch.func.jvp(lambda A: call(A, strategy="fused"), (A,), (torch.ones_like(A),))
    assert set(taken) == {True}


@each_operation
def test_transforms_take_the_generic_path(operation, taken):
    call, A = CALLS[operation], matrix(operation)

    def scalar(A):
        return call(A, strategy="fused").sum().abs()

    expected = both(call, A)[1]
    taken.clear()
    torch.testing.assert_close(torch.func.grad(scalar)(A), expected)
    batch = torch.func.vmap(torch.func.grad(scalar))(torch.stack([A, A]))
    torch.testing.assert_close(batch[1], expected)
    assert set(taken) == {False}
    with forward_ad.dual_level():
        dual = scalar(forward_ad.make_dual(A, torch.ones_like(A)))
        torch.testing.assert_close(forward_ad.unpack_dual(dual).tangent, expected.sum())


def test_a_tangent_of_a_recorded_tensor_takes_the_generic_path(taken):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(SQUARE.detach().requires_grad_(), torch.ones_like(SQUARE))
        inv(dual, strategy="fused")
    assert True not in taken


def test_a_mode_of_torch_sees_the_generic_path(taken):
    expected = both(inv, SQUARE)
    taken.clear()
    for mode in (FlopCounterMode(display=False), torch.device("cpu")):
        with mode:
            found = both(inv, SQUARE)
        torch.testing.assert_close(found, expected)
    assert set(taken) == {False}


class Mine(type(strategies.get("fused"))):
    """A subclass, which may compute in another way."""

    name = "mine"


@pytest.mark.parametrize(
    ("A", "strategy"),
    [
        (SQUARE.as_subclass(type("Subclass", (torch.Tensor,), {})), "fused"),
        (SQUARE, Mine()),
    ],
    ids=["subclass", "strategy of a subclass"],
)
def test_other_tensors_and_strategies_take_the_generic_path(A, strategy, taken):
    torch.testing.assert_close(inv(A, strategy=strategy), torch.linalg.inv(A))
    assert set(taken) == {False}


@pytest.mark.parametrize(
    "pending", [torch.conj, lambda A: A.conj().imag], ids=["conjugate", "sign"]
)
def test_a_pending_conjugate_or_sign_is_applied(pending, taken):
    A = torch.complex(SQUARE, SQUARE.mT).requires_grad_()

    def with_gradient(inv):
        X = inv(pending(A)).mH  # whose cotangent is given to inv as a conjugate that is pending
        return X, *torch.autograd.grad(X, A, X.detach())

    found = with_gradient(functools.partial(linalg.inv, strategy="fused"))
    torch.testing.assert_close(found, with_gradient(torch.linalg.inv))
    assert set(taken) == {True}


def test_an_lu_whose_rank_is_not_determined_takes_the_generic_path(taken):
    A = torch.ones(4, 3, dtype=torch.float64)
    A[1, 2] = 0
    found, due = (linalg.lu(A, strategy=name).U for name in ("fused", "triangular_solve"))
    assert torch.equal(found, due)
    assert set(taken) == {False}


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


@needs_extension
def test_who_sees_a_call_beside_autograd():
    found = {}
    x, further = torch.ones(2), (torch.ones(2), 1e-6, None)

    def seen(name, x):
        arguments, options = (x, *further), {"upper": True}
        found[name] = is_ordinary(arguments, options), is_transformed(arguments, options)
        return x * 1

    seen("plain", x)
    torch.vmap(functools.partial(seen, "vmap"))(x)
    torch.func.jvp(functools.partial(seen, "jvp"), (x,), (x,))
    torch.func.grad(lambda x: seen("grad", x).sum())(x)
    torch.func.functionalize(functools.partial(seen, "functionalize"))(x)
    torch.vmap(lambda x: seen("vmap of a half type", x.half()))(x)
    torch.jit.trace(lambda x: seen("trace", x), x, check_trace=False)
    with torch.autocast("cpu", torch.bfloat16):
        seen("autocast", x)
    with FlopCounterMode(display=False):
        seen("mode", x)
        torch.vmap(functools.partial(seen, "vmap in a mode"))(x)
    others = "functionalize", "vmap of a half type", "trace", "autocast", "mode", "vmap in a mode"
    assert found == {
        "plain": (True, False),
        **dict.fromkeys(("vmap", "jvp", "grad"), (False, True)),
        **dict.fromkeys(others, (False, False)),
    }


def test_without_gradients_there_is_no_node(language):
    with torch.no_grad():
        assert inv(SQUARE.clone().requires_grad_(), strategy="fused").grad_fn is None
    with torch.inference_mode():
        assert inv(SQUARE, strategy="fused").is_inference()


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
        A = matrix(operation).requires_grad_()
        call(A, strategy="fused").sum().abs().backward()
        before = A.detach().clone()
        A.grad.zero_()
        assert torch.equal(A, before)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("slogdet", (3.0,)),
        ("pinv", (2.0,)),
        ("solve", (SQUARE, 2.0)),
        ("lstsq", (TALL, 1.0)),
        ("cholesky_solve", (RHS, 1.0)),
    ],
)
def test_a_number_is_no_matrix_and_no_tolerance(name, arguments, language):
    with pytest.raises(TypeError):
        getattr(linalg, name)(*arguments)


each_of_cholesky = pytest.mark.parametrize(
    "operation", ["cholesky", "cholesky_solve", "cholesky_inverse"]
)


@pytest.mark.parametrize("n", [2, 30, 130])
@each_dtype
@each_of_cholesky
def test_factors_of_any_size_give_the_gradient_of_torch(operation, n, dtype, taken):
    record = operations.get(operation)
    columns = 3 if record.arity == 2 else 1
    inputs = Case(operation, (n, n), 2, dtype, rhs=columns).inputs()
    require_alike(function(record, "fused"), reference(record), *inputs)
    assert taken == [True]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@each_of_cholesky
def test_factors_far_from_one_take_the_generic_path(operation, scale, taken):
    A = (positive(SQUARE) if operation == "cholesky" else factor(SQUARE)) * scale
    inputs = (RHS[:4], A) if operation == "cholesky_solve" else (A,)
    results = [getattr(linalg, operation)(*inputs, strategy=s) for s in ("fused", "batch_last")]
    assert torch.equal(*results)
    assert set(taken) == {False}

"""Half precision: every operation, computed in single precision and rounded once; and autocast."""

import math

import pytest
import torch
from operations import compiled, function, inputs_of
from torch.utils._pytree import tree_leaves

import strategies
from strategies import linalg, operations
from strategies.accuracy.stability import LIMIT, references
from strategies.autograd.half_precision import HALF

NAMES = operations.names()


def drawn(seed, dtype, name):
    """Random operands of up to 8 rows, condition numbers up to 1/u, and cotangents, in half precision."""
    record = operations.get(name)
    torch.manual_seed(seed)
    m, n = torch.randint(1, 9, (2,)).tolist()
    n = m if record.square else n
    k = min(m, n)
    largest = -math.log10(torch.finfo(dtype).eps)
    if record.needs_full_rank:
        largest /= 2  # of what is rounded to half precision nobody knows otherwise
    exponents = -largest * torch.rand(()) * torch.linspace(0, 1, k)
    U, V = (torch.linalg.qr(torch.randn(rows, k)).Q for rows in (m, n))
    A = record.domain.member(U * 10**exponents @ V.mT)
    rhs = [torch.randn(m, int(torch.randint(1, 4, ())))] * (record.arity - 1)
    shapes = record.output_shapes(*(tuple(each.shape) for each in (A, *rhs)))
    return (
        record,
        [each.to(dtype) for each in (A, *rhs)],
        [torch.randn(each).to(dtype) for each in shapes],
    )


def computed(record, inputs, cotangents):
    """Outputs and gradients by "auto"."""
    leaves = [each.clone().requires_grad_() for each in inputs]
    outputs = record.outputs(record.function(*leaves))
    used = [each.to(outputs[0].dtype) for each in cotangents[-len(outputs) :]]
    return outputs, torch.autograd.grad(outputs, leaves, used)


def ratios(seed, dtype, name):
    """The stability ratios of results and gradients."""
    record, inputs, cotangents = drawn(seed, dtype, name)
    results, gradients = references(name, inputs, cotangents)
    outputs, found = computed(record, inputs, cotangents)
    found = record.defined(found)
    pairs = [*zip(results, outputs, strict=False), *zip(gradients, found, strict=True)]
    assert all(each.dtype == dtype for _, each in pairs)
    return [max(exact.ratio(each)) for exact, each in pairs if exact.is_representable]


@pytest.mark.parametrize(
    "seeds", [[7], pytest.param(range(46), marks=pytest.mark.slow)], ids=["one", "a thousand cases"]
)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", NAMES)
def test_results_and_gradients_are_stable_in_the_roundoff_of_the_dtype(name, dtype, seeds):
    found = [ratio for seed in seeds for ratio in ratios(seed, dtype, name)]
    assert max(found, default=0.0) < LIMIT


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", NAMES)
def test_they_are_those_of_single_precision_rounded_once(name, dtype):
    record, inputs, cotangents = drawn(3, dtype, name)
    # With cotangents alike: those of the rounding are exact.
    found = (
        computed(record, each, cotangents) for each in (inputs, [each.float() for each in inputs])
    )
    require_rounded_once(dtype, *map(tree_leaves, found))


def require_rounded_once(dtype, found, of_single):
    for half, single in zip(found, of_single, strict=True):
        assert half.dtype == dtype
        assert torch.equal(half, single.to(dtype))


@pytest.mark.parametrize("dtype", HALF)
def test_composed_functions_round_once(dtype):
    A = (torch.eye(3) + 0.1 * torch.ones(3, 3)).to(dtype)
    calls = (
        linalg.logdet,
        lambda A: linalg.matrix_power(A, -3),
        lambda A: linalg.tensorinv(A, 1),
        lambda A: linalg.tensorsolve(A, A[0]),
        lambda A: linalg.inv_ex(A).inverse,
    )
    require_rounded_once(dtype, *([call(each) for call in calls] for each in (A, A.float())))


def test_eigenvalues_have_no_half_precision():
    values = linalg.eig(torch.eye(2, dtype=torch.float16)).eigenvalues
    assert values.dtype == torch.complex64


@pytest.mark.parametrize("dtype", HALF)
def test_under_autocast_results_are_of_single_precision_as_those_of_torch(dtype):
    A, b = (torch.eye(3) * 3 + 1).to(dtype).requires_grad_(), torch.ones(3, 1)
    with torch.autocast("cpu", torch.bfloat16):
        X = linalg.solve(A, b)
        assert X.dtype == torch.linalg.solve(A, b).dtype == torch.float32
        assert linalg.logdet(A).dtype == torch.float32
    X.sum().backward()
    assert A.grad.dtype == dtype
    assert torch.equal(X.detach(), linalg.solve(A.detach().float(), b))


@pytest.mark.parametrize("is_differentiated", [False, True])
@pytest.mark.parametrize("strategy", ["auto", "qr_pinv", "explicit_inverse"])
@pytest.mark.parametrize("name", NAMES)
def test_autocast_reaches_no_product(name, strategy, is_differentiated):
    record = operations.get(name)
    inputs = inputs_of(record, (6, 6) if record.square else (20, 6), dtype=torch.float32)
    found = []
    for enabled in (True, False):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            outputs = function(record, strategy)(*inputs)
            loss = sum(each.abs().square().sum() for each in outputs if each.requires_grad)
            gradients = torch.autograd.grad(loss, inputs, create_graph=is_differentiated)
            found.append([*outputs, *gradients])
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("dtype", HALF)
def test_compiled_calls_and_functions_that_are_replaced_give_what_eager_mode_gives(dtype):
    A = (torch.eye(3) * 3 + 1).to(dtype)
    due = linalg.inv(A)
    assert torch.equal(compiled(linalg.inv)(A), due)
    with strategies.replace_torch():
        assert torch.equal(torch.linalg.inv(A), due)
        assert torch.equal(A.inverse(), due)


@pytest.mark.parametrize("dtype", HALF)
def test_a_factor_rounds_results_and_gradients_once(dtype):
    A = (torch.eye(4) * 3 + 1).to(dtype)
    found = []
    for given in (A.requires_grad_(), A.detach().float().requires_grad_()):
        f = strategies.factor(given, "spd")
        outputs = [f.solve(torch.ones(4, 2, dtype=given.dtype)), f.logdet()]
        cotangents = [each.detach().to(dtype).to(each.dtype) for each in outputs]
        found.append([*outputs, *torch.autograd.grad(outputs, given, cotangents)])
    require_rounded_once(dtype, *found)


def test_a_factor_under_autocast_computes_in_single_precision():
    A, b = torch.eye(4) * 3 + torch.rand(4, 4), torch.rand(4, 1)
    with torch.autocast("cpu", torch.bfloat16):
        f = strategies.factor(A)
        assert torch.equal(f.solve(b), strategies.factor(A).solve(b))
        assert f.solve(b.bfloat16()).dtype == torch.float32
    torch.testing.assert_close(f.solve(b), torch.linalg.solve(A, b))


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_without_values_has_the_shapes_and_dtypes_of_that_with_values(name, dtype):
    record, inputs, _ = drawn(3, dtype, name)
    expected = record.outputs(record.function(*inputs))
    found = record.outputs(record.function(*[each.to("meta") for each in inputs]))
    assert [(x.shape, x.dtype) for x in found] == [(y.shape, y.dtype) for y in expected]

"""The kernels of small matrices against exact gradients, in every layout."""

import functools

import pytest
import torch
from comparison import drawn
from torch.utils._pytree import tree_leaves

from strategies.kernels.cpu.library import DTYPES
from tests.kernels.cpu.by_plan import (
    SHAPES,
    SQUARE,
    assert_exact,
    cases,
    computed,
    due_of,
    each_plan,
    inputs_of,
    plan_of,
)


@each_plan
def test_results_are_those_of_torch_and_gradients_the_exact_ones(of):
    for inputs in cases(of):
        found, cotangents, gradients = computed(of, inputs)
        limit = 500 * torch.finfo(inputs[0].dtype).eps * float(torch.linalg.cond(inputs[0]))
        torch.testing.assert_close([*found], [*due_of(of, inputs)], rtol=limit, atol=limit)
        if of[1] == "slogdet" and not inputs[0].is_complex():
            cotangents = [inputs[0].new_zeros(()), *cotangents]
        assert_exact(of[1], inputs, cotangents, gradients)


@each_plan
def test_inputs_and_cotangents_may_have_any_strides(of):
    m, n = (5, 3) if of in SHAPES else (4, 4)
    plain = inputs_of(of, m, n, torch.complex128)
    outputs, cotangents, expected = computed(of, plain)
    strided = tuple(torch.stack([each, each], -1)[..., 0] for each in plain)
    of_strided = [
        each.mT.contiguous().mT if each is not None and each.ndim == 2 else each
        for each in cotangents
    ]
    found, _, gradients = computed(of, strided, of_strided)
    # Factors are read where they lie: by rows, in another order of sums.
    close = functools.partial(torch.allclose, rtol=1e-12, atol=1e-12)
    same = close if of[1].startswith("cholesky_") else torch.equal
    assert all(map(same, found, outputs))
    assert all(map(same, gradients, expected))


@pytest.mark.parametrize("n", [3, 5, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_an_expanded_cotangent_is_read_as_its_copy_is(n, axis):
    of = "factors", "inv"
    inputs = inputs_of(of, n, n, torch.float64)
    expanded = drawn(n).unsqueeze(axis).expand(n, n)
    *_, (found,) = computed(of, inputs, [expanded])
    *_, (expected,) = computed(of, inputs, [expanded.contiguous()])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("operation", ["cholesky_solve", "cholesky_inverse"])
@pytest.mark.parametrize("axis", [0, 1])
def test_an_expanded_factor_is_read_as_its_copy_is(operation, axis):
    of = "factors", operation
    n = 40
    row = torch.linspace(1, 2, n, dtype=torch.float64)
    if axis == 0:  # of equal rows the triangle is singular only by its condition
        row = row * 2.0 ** torch.arange(n)
    expanded = row.unsqueeze(axis).expand(n, n)
    rest = () if operation == "cholesky_inverse" else (torch.ones(n, 6, dtype=torch.float64),)
    found, expected = (
        plan_of(of, L, *rest).forward((L, *rest)) for L in (expanded, expanded.contiguous())
    )
    assert (found is None) == (expected is None)
    if found is not None:
        assert torch.isfinite(found[0][0]).all()
        error = (found[0][0] - expected[0][0]).norm()
        assert error <= 1e-6 * expected[0][0].norm()


def test_gradients_of_a_tall_pinv_lie_as_those_of_torch():
    single = torch.linalg.qr(torch.randn(9, 4, dtype=torch.float64)).Q
    for A in (single, single.repeat(2, 1, 1)):
        *_, (gradient,) = computed(("factors", "pinv"), (A,))
        leaf = A.clone().requires_grad_()
        X = torch.linalg.pinv(leaf)
        (due,) = torch.autograd.grad(X, leaf, torch.ones_like(X))
        assert gradient.stride() == due.stride()


@pytest.mark.parametrize("operation", ["cholesky_solve", "cholesky_inverse"])
def test_a_factor_may_lie_by_rows_or_by_columns(operation):
    of = "factors", operation
    for dtype in DTYPES:
        L, *rest = inputs_of(of, 40, 40, dtype)
        by_columns, apart = L.mT.contiguous().mT, torch.stack([L, L], -1)[..., 0]
        cotangent = drawn(40, 2 if rest else 40, dtype=dtype, seed=1)
        due, *results = (
            computed(of, (layout, *rest), [cotangent]) for layout in (L, by_columns, apart)
        )
        limit = 100 * torch.finfo(dtype).eps * float(torch.linalg.cond(L)) ** 2
        for found in results:
            for one, other in zip(*map(tree_leaves, (found, due)), strict=True):
                assert (one - other).norm() <= limit * other.norm()


@each_plan
def test_matrices_of_a_batch_are_computed_as_they_are_alone(of):
    for m, n in SHAPES.get(of, SQUARE):
        each = [inputs_of(of, m, n, torch.complex64) for _ in range(6)]
        each = [(A + k * torch.eye(m, n), *rest) for k, (A, *rest) in enumerate(each)]
        inputs = [torch.stack(parts).unflatten(0, (2, 3)) for parts in zip(*each, strict=True)]
        outputs, cotangents, gradients = computed(of, inputs)
        for k, single in enumerate(each):
            place = divmod(k, 3)
            own = [None if each is None else each[place] for each in cotangents]
            due, _, due_gradients = computed(of, single, own)
            found = [out if out.numel() == 0 else out[place] for out in outputs]
            found += [gradient[place] for gradient in gradients]
            for one, other in zip(found, (*due, *due_gradients), strict=True):
                # To roundoff: LAPACK divides its work differently by threads and addresses.
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)

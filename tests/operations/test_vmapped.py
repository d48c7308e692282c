"""`vmap` of functions over samples of some of the arguments, beside one sample after the other."""

import functools
import itertools

import pytest
import torch
from torch.autograd.functional import jacobian

from strategies import linalg

SAMPLES = 3
MATRICES = torch.diag_embed(torch.tensor([[1.0, 0.1], [2.0, 0.3], [1.0, 0.4]]))
TOLERANCES = torch.tensor([[0.01, 0.2], [0.5, 0.05], [0.3, 0.6]])

CALLS = {
    "inv": (linalg.inv, (4, 4)),
    "inv_ex": (lambda A: linalg.inv_ex(A).inverse, (4, 4)),
    "lu": (lambda A: linalg.lu(A).U, (4, 4)),
    "pinv": (linalg.pinv, (6, 4)),
    "solve": (linalg.solve, (4, 4), (4, 2)),
    "solve a vector": (linalg.solve, (4, 4), (4,)),
    "solve from the right": (lambda A, B: linalg.solve(A, B, left=False), (4, 4), (2, 4)),
    "solve_ex": (lambda A, B: linalg.solve_ex(A, B).result, (4, 4), (4, 2)),
    "cholesky_solve": (lambda L, B: linalg.cholesky_solve(B, L), (4, 4), (4, 2)),
    "lstsq": (lambda A, B: linalg.lstsq(A, B).solution, (6, 4), (6, 2)),
    "lstsq of a vector": (lambda A, b: linalg.lstsq(A, b).solution, (6, 4), (6,)),
    "lstsq of a vector by PyTorch": (
        lambda A, b: linalg.lstsq(A, b, strategy="native").solution,
        (6, 4),
        (6,),
    ),
    "residuals of lstsq": (lambda A, B: linalg.lstsq(A, B).residuals, (6, 4), (6, 2)),
    "qr": (lambda A: torch.cat(linalg.qr(A), -2), (6, 4)),
    "complete qr": (lambda A: torch.cat(linalg.qr(A, "complete"), -1), (6, 4)),
    "R of qr": (lambda A: linalg.qr(A, "r").R, (6, 4)),
    "eig": (lambda A: linalg.eig(A).eigenvalues.abs(), (4, 4)),
}
CASES = [
    (name, dims)
    for name, (_, *sizes) in CALLS.items()
    for dims in itertools.product((0, -1, None), repeat=len(sizes))
    if dims.count(None) < len(sizes)
]


def _inputs(name, dims, *batch):
    """What is given to `vmap`, and each sample of it."""
    given, samples = [], []
    for size, dim in zip(CALLS[name][1:], dims, strict=True):
        every = torch.randn(SAMPLES, *batch, *size, dtype=torch.float64)
        every[..., : min(size[:2]), 0] += 2
        each = every if dim is not None else every[:1].expand_as(every)
        given.append(every[0] if dim is None else every.movedim(0, dim))
        samples.append(each)
    return given, list(zip(*samples, strict=True))


@pytest.mark.parametrize("batch", [(), (2,)], ids=["matrix", "batch"])
@pytest.mark.parametrize(("name", "dims"), CASES, ids=str)
def test_samples_are_a_batch(name, dims, batch):
    function = CALLS[name][0]
    given, samples = _inputs(name, dims, *batch)
    found = torch.vmap(function, in_dims=dims)(*given)
    torch.testing.assert_close(found, torch.stack([function(*each) for each in samples]))


@pytest.mark.parametrize(("name", "dims"), CASES, ids=str)
def test_gradients_of_samples_reach_what_is_given(name, dims):
    function = CALLS[name][0]
    given, samples = _inputs(name, dims)
    leaves = [each.clone().requires_grad_() for each in given]
    torch.vmap(function, in_dims=dims)(*leaves).sin().sum().backward()
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        gradients = torch.stack(
            [torch.func.grad(lambda *x: function(*x).sin().sum(), i)(*each) for each in samples]
        )
        expected = gradients.sum(0) if dim is None else gradients.movedim(0, dim)
        torch.testing.assert_close(leaf.grad, expected)


@pytest.mark.parametrize("name", CALLS)
def test_jacobians_by_tangents_are_those_by_cotangents(name):
    function, *sizes = CALLS[name]
    given, _ = _inputs(name, (None,) * len(sizes))
    found = torch.func.jacfwd(function, tuple(range(len(sizes))))(*given)
    torch.testing.assert_close(found, jacobian(function, tuple(given)))


def test_info_of_one_matrix_is_that_of_all_samples():
    A, B = torch.zeros(2, 2), torch.ones(5, 2, 1)
    assert torch.vmap(linalg.solve_ex, in_dims=(None, 0))(A, B).info.tolist() == [1] * 5


def test_a_matrix_of_right_hand_sides_for_a_batch_is_no_vector():
    A, B = torch.randn(5, 2, 2), torch.randn(3, 2, 4)
    found = torch.vmap(linalg.solve, in_dims=(None, 0))(A, B)
    torch.testing.assert_close(found, torch.stack([torch.linalg.solve(A, each) for each in B]))


@pytest.mark.parametrize("name", ["cholesky_solve", "solve_triangular"])
def test_where_no_right_hand_side_is_a_vector_none_is_taken_for_one(name):
    L, B = torch.randn(3, 3, 3, 3).tril() + 3 * torch.eye(3), torch.randn(3, 3, 3)

    def solution(of, L, B):
        is_triangular = name == "solve_triangular"
        return of.solve_triangular(L, B, upper=False) if is_triangular else of.cholesky_solve(B, L)

    ours = functools.partial(solution, linalg)
    theirs = functools.partial(solution, torch.linalg if name == "solve_triangular" else torch)
    gradients = [torch.func.grad(lambda L, B, X=X: X(L, B).sin().sum(), 1) for X in (ours, theirs)]
    for function, of_torch in ((ours, theirs), gradients):
        for mapped in (torch.vmap(function), torch.func.functionalize(torch.vmap(function))):
            torch.testing.assert_close(mapped(L, B), torch.stack([*map(of_torch, L, B)]))


def test_factors_by_columns_are_those_of_each_sample():
    LU, pivots, B = torch.eye(3).add(1).triu().T, torch.arange(1, 4).int(), torch.ones(2, 3, 1)
    found = torch.vmap(lambda scale: linalg.lu_solve(LU.T.contiguous().T * scale, pivots, B))(
        torch.tensor([1.0, 2.0])
    )
    expected = [torch.linalg.lu_solve(LU.contiguous() * scale, pivots, B) for scale in (1, 2)]
    torch.testing.assert_close(found, torch.stack(expected))


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dims", [*itertools.product((0, None), repeat=3)][:-1], ids=str)
def test_factors_pivots_and_right_hand_sides_have_samples_each(dims, left, adjoint):
    LU, pivots = torch.linalg.lu_factor(torch.randn(SAMPLES, 4, 4, dtype=torch.float64))
    B = torch.randn(SAMPLES, *((4, 2) if left else (2, 4)), dtype=torch.float64)
    given = [each if dim == 0 else each[0] for each, dim in zip((LU, pivots, B), dims, strict=True)]
    for function in (
        lambda of: functools.partial(of.lu_solve, left=left, adjoint=adjoint),
        lambda of: torch.func.grad(
            lambda *x: of.lu_solve(*x, left=left, adjoint=adjoint).sin().sum(), (0, 2)
        ),
    ):
        found = torch.vmap(function(linalg), in_dims=dims)(*given)
        expected = torch.vmap(function(torch.linalg), in_dims=dims)(*given)
        torch.testing.assert_close(found, expected)


def test_a_vectorized_jacobian_of_det_in_forward_mode_is_that_in_reverse_mode():
    A = torch.tensor([[2.0, 0.5], [0.3, 1.5]])
    found = jacobian(linalg.det, A, strategy="forward-mode", vectorize=True)
    torch.testing.assert_close(found, jacobian(linalg.det, A))


@pytest.mark.parametrize("dims", [(0, 0), (None, 0), (0, None)], ids=str)
@pytest.mark.parametrize("name", ["atol", "rtol"])
@pytest.mark.parametrize(
    "derivative",
    [lambda f: f, torch.func.jacrev, torch.func.jacfwd, torch.func.hessian],
    ids=["result", "jacrev", "jacfwd", "hessian"],
)
def test_samples_have_tolerances_of_their_own(derivative, name, dims):
    function = derivative(lambda A, tolerance: linalg.pinv(A, **{name: tolerance}))
    given = [x if dim == 0 else x[0] for x, dim in zip((MATRICES, TOLERANCES), dims, strict=True)]
    found = torch.vmap(function, in_dims=dims)(*given)
    samples = [
        function(*(x if dim is None else x[i] for x, dim in zip(given, dims, strict=True)))
        for i in range(SAMPLES)
    ]
    torch.testing.assert_close(found, torch.stack(samples))


@pytest.mark.parametrize(
    ("function", "of_torch"),
    [
        (lambda A: linalg.inv(A=A), torch.linalg.inv),
        (lambda A: linalg.solve(A, B=A.mT), lambda A: torch.linalg.solve(A, A.mT)),
    ],
    ids=["inv", "solve"],
)
def test_inputs_may_be_named_at_the_third_order(function, of_torch):
    def third(function):
        derivative = torch.func.grad(lambda A: function(A).sin().sum())
        for _ in range(2):
            derivative = torch.func.grad(lambda A, of=derivative: of(A).sin().sum())
        return torch.vmap(derivative)(MATRICES.double())

    torch.testing.assert_close(third(function), third(of_torch))


def test_the_tolerance_of_a_sample_is_for_its_whole_batch():
    batches, tolerances = MATRICES.expand(SAMPLES, *MATRICES.shape), torch.tensor([0.05, 0.2, 0.35])
    gradient = torch.func.grad(lambda A, atol: linalg.pinv(A, atol=atol).sin().sum())
    found = torch.vmap(gradient)(batches, tolerances)
    samples = zip(batches, tolerances, strict=True)
    torch.testing.assert_close(found, torch.stack([gradient(*each) for each in samples]))

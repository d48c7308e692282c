"""What a factor returns, refuses, keeps and counts."""

import copy
import io
import math
import pickle

import pytest
import torch

import strategies
from strategies import factor
from strategies.accuracy import gallery
from strategies.errors import LinAlgError, StrategyNotFoundError, UnsupportedError
from strategies.testing.spy import TorchSpy
from tests.factorization.cases import CASES, SHAPES, columns, matrix, operands, uses

close = torch.testing.assert_close


@pytest.mark.parametrize("strategy", ["auto", "explicit_inverse"])
@pytest.mark.parametrize("batch", [(), (3,), (0,), (2, 1, 2)], ids=str)
@pytest.mark.parametrize(("kind", "use"), CASES)
def test_values_and_gradients_are_those_of_torch(kind, use, batch, strategy):
    A, B, C = operands(kind, torch.complex128, batch)
    by_factor, by_torch = uses(kind)[use]
    A.requires_grad_()
    found = by_factor(factor(A, kind, strategy=strategy), B, C)
    close(found, by_torch(A, B, C))
    if kind != "svd" and found.requires_grad and use != "sign":
        cotangent = torch.randn(found.shape, dtype=found.dtype)
        (gradient,) = torch.autograd.grad(found, A, cotangent)
        (expected,) = torch.autograd.grad(by_torch(A, B, C), A, cotangent)
        close(gradient, (expected + expected.mH) / 2 if kind == "spd" else expected)


def _same_with_gradients(found, expected, *inputs):
    close(found, expected)
    close(*(torch.autograd.grad(each.sin().sum(), inputs) for each in (found, expected)))


@pytest.mark.parametrize("name", strategies.available())
def test_every_strategy_holds_a_factor(name):
    A = matrix("lu").requires_grad_()
    B = columns(A)
    f, expected = factor(A, strategy=name), torch.linalg.solve(A, B)
    close(f.solve(B), expected)
    _same_with_gradients(f.lstsq(B), expected, A)


@pytest.mark.parametrize(
    ("own", "others"),
    [((), (5,)), ((3,), ()), ((3, 1), (4,)), ((1, 3), (4, 1)), ((3,), (2, 1)), ((2, 1, 3), (4, 1))],
    ids=str,
)
def test_batches_are_broadcast(own, others):
    A, B = matrix("lu", batch=own).requires_grad_(), torch.randn(*others, 4, 2, dtype=torch.float64)
    B.requires_grad_()
    _same_with_gradients(factor(A).solve(B), torch.linalg.solve(A, B), A, B)


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_vectors_are_those_of_torch(batch):
    A = matrix("lu", batch=batch)
    for b in (torch.randn(*batch, 4, dtype=A.dtype), torch.randn(4, dtype=A.dtype)):
        close(factor(A).solve(b), torch.linalg.solve(A, b))
        close(factor(A).solve(b, adjoint=True), torch.linalg.solve(A.mH, b))


FACTORIZATIONS = ("linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_qr", "_linalg_svd", "geqrf")
INVERSIONS = ("cholesky_inverse", "linalg_inv_ex", "linalg_solve_ex", "_linalg_solve_ex")


@pytest.mark.parametrize("kind", SHAPES)
def test_there_is_one_factorization_forward_and_backward(kind):
    A = matrix(kind).requires_grad_()
    B = columns(A).requires_grad_()
    with torch.autograd.profiler.profile() as profile:
        f = factor(A, kind)
        loss = sum(f.lstsq(i * B).sin().sum() for i in range(10))
        if kind in ("lu", "spd"):
            loss = loss + f.logdet().nan_to_num() + sum(f.inv_quad_logdet(B))
        loss.backward()
    counts = {each.key: each.count for each in profile.key_averages()}
    # The singular values are those of R.
    assert sum(counts.get(f"aten::{name}", 0) for name in FACTORIZATIONS) == 1 + (kind == "svd")
    assert sum(counts.get(f"aten::{name}", 0) for name in INVERSIONS) == 0


@pytest.mark.parametrize("kind", ["lu", "spd"])
def test_all_uses_are_pulled_back_at_once(kind):
    n = 150
    A = matrix(kind, shape=(n, n)).requires_grad_()
    B = columns(A, 1)

    def sizes(count):
        """How many arrays of n×n numbers a backward makes."""
        f = factor(A, kind)
        loss = sum(f.solve(i * B).sin().sum() + f.slogdet().logabsdet for i in range(count))
        found = []

        def note(name, result):
            if type(result) is torch.Tensor and result.numel() == n * n and "transpose" not in name:
                found.append(name)

        with TorchSpy(note):
            loss.backward()
        return len(found)

    assert 0 < sizes(2) == sizes(7)


def test_many_columns_take_no_more_memory_than_the_matrix():
    A = matrix("lu").requires_grad_()
    f = factor(A)
    wide = [torch.randn(4, 3, dtype=A.dtype) for _ in range(5)]
    found, expected = (torch.cat([*map(solve, wide)]) for solve in (f.solve, A.inverse().matmul))
    _same_with_gradients(found, expected, A)


def test_the_gradient_of_a_positive_definite_matrix_is_hermitian_to_the_bit():
    A = matrix("spd", torch.complex128, shape=(200, 200)).requires_grad_()
    f = factor(A, "spd")
    (f.solve(columns(A)).abs().sum() + f.logdet()).backward()
    assert torch.equal(A.grad, A.grad.mH)


def test_of_a_positive_definite_matrix_the_lower_triangle_is_read():
    A = matrix("spd")
    close(factor(A.tril(), "spd").inverse(), A.inverse())


@pytest.mark.parametrize("rank", [1, 2])
def test_a_stated_rank_is_not_decided(rank):
    A = matrix("lu")
    U, s, Vh = torch.linalg.svd(A)
    nearest = U[:, :rank] * s[:rank] @ Vh[:rank]
    f = factor(A, rank=rank)
    assert (f.kind, f.rank.item()) == ("svd", rank)
    close(f.inverse(), torch.linalg.pinv(nearest, rtol=1e-8))


def test_a_rank_is_decided_as_by_pinv():
    A = torch.stack((matrix("svd"), torch.zeros(3, 5, dtype=torch.float64)))
    f = factor(A, "svd")
    assert f.rank.tolist() == [2, 0]
    close(f.inverse(), torch.linalg.pinv(A))


def test_a_rank_that_is_stated_for_qr_is_not_checked():
    A = torch.tensor([[1.0, 1.0], [1.0, 1.0 + 2e-7], [1.0, 1.0]])
    with pytest.raises(LinAlgError, match="no full rank"):
        factor(A, "qr")
    assert factor(A, "qr", rank=2).kind == "qr"


def test_auto_goes_on_to_qr_where_elements_grow():
    A = gallery.make("wilkinson_growth", (60, 60), torch.float64).matrix
    assert factor(A).kind == "qr"
    x = torch.ones(60, dtype=A.dtype)
    close(factor(A).solve(A @ x), x)
    with pytest.raises(LinAlgError, match="kind 'qr'"):
        factor(A, "lu")


EYE, TALL = torch.eye(2), torch.ones(3, 2)
REFUSED = {
    "singular": (lambda: factor(torch.zeros(2, 2), "lu"), LinAlgError, "column 1"),
    "indefinite": (lambda: factor(-EYE, "spd"), LinAlgError, "kind 'lu'"),
    "one of a batch": (
        lambda: factor(torch.stack((EYE, -EYE)), "spd"),
        LinAlgError,
        "Batch element 1",
    ),
    "kind": (lambda: factor(EYE, "ldl"), ValueError, "auto, lu, spd, qr, svd"),
    "wide": (lambda: factor(torch.ones(2, 3), "lu"), RuntimeError, "2×3; 'qr' takes"),
    "rank": (lambda: factor(EYE, rank=3), ValueError, "from 0 to 2, not 3"),
    "rank of lu": (lambda: factor(EYE, "lu", rank=1), ValueError, "'svd' takes"),
    "strategy": (lambda: factor(EYE, strategy="x"), StrategyNotFoundError, "'x'"),
    "kind of strategy": (
        lambda: factor(EYE, "lu", strategy="qr_pinv"),
        ValueError,
        "stands for kind 'qr'",
    ),
    "integers": (lambda: factor(EYE.int()), RuntimeError, "torch.int32"),
    "vector": (lambda: factor(torch.ones(2)), RuntimeError, r"\(2,\)"),
    "rows": (lambda: factor(EYE).solve(torch.ones(3, 1)), RuntimeError, "do not have 2 rows"),
    "dtype": (lambda: factor(EYE).solve(EYE.double()), RuntimeError, "torch.float64"),
    "solve": (lambda: factor(TALL, "svd").solve(TALL), UnsupportedError, "lstsq takes any"),
    "det": (lambda: factor(EYE, "qr").det(), UnsupportedError, "'lu' and 'spd' have one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_what_would_work(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("use", ["solve", "det", "inverse"])
def test_a_use_after_the_matrix_was_changed_in_place_is_an_error(use, dtype):
    A = torch.eye(4, dtype=dtype)
    f = factor(A)
    A.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        uses("lu")[use][0](f, torch.ones(4, 1, dtype=dtype), None)


def test_a_backward_after_the_matrix_was_changed_in_place_is_an_error():
    A = matrix("lu").requires_grad_()
    loss = factor(A).logdet()
    with torch.no_grad():
        A.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_what_is_factored_without_gradients_is_constant():
    A, B = matrix("lu").requires_grad_(), columns(matrix("lu")).requires_grad_()
    with torch.no_grad():
        f = factor(A)
    assert not f.logdet().requires_grad
    f.solve(B).sum().backward()
    assert A.grad is None
    close(B.grad, torch.linalg.solve(A.mT, torch.ones_like(B)))


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("copied", ["pickle", "deepcopy", "torch.save"])
def test_a_copy_is_the_factor_of_a_constant(kind, copied):
    A = matrix(kind).requires_grad_()
    f = factor(A, kind)
    if copied == "torch.save":
        torch.save(f, file := io.BytesIO())
        file.seek(0)
        other = torch.load(file, weights_only=False)
    else:
        other = copy.deepcopy(f) if copied == "deepcopy" else pickle.loads(pickle.dumps(f))  # noqa: S301
    assert repr(other) == repr(f)
    B = columns(A.detach()).requires_grad_()
    assert torch.equal(other.lstsq(B), f.lstsq(B))
    gradients = (torch.autograd.grad(each.lstsq(B).sin().sum(), B)[0] for each in (other, f))
    assert torch.equal(*gradients)
    assert torch.autograd.grad(other.lstsq(B).sum(), A, allow_unused=True) == (None,)


def test_backwards_of_one_graph_do_not_mix():
    A, B = matrix("lu").requires_grad_(), columns(matrix("lu"))
    f = factor(A)
    losses = f.solve(B).sin().sum(), f.slogdet().logabsdet
    apart = [torch.autograd.grad(each, A, retain_graph=True)[0] for each in losses]
    (together,) = torch.autograd.grad(sum(losses), A)
    close(together, sum(apart))


def test_checkpoints_and_hooks_of_saved_tensors_see_a_factor():
    A, B = matrix("spd").requires_grad_(), columns(matrix("spd"))

    def step(A):
        f = factor(A, "spd")
        return f.logdet() + f.solve(B).sin().sum()

    losses = step(A), torch.utils.checkpoint.checkpoint(step, A, use_reentrant=False)
    assert torch.equal(*(torch.autograd.grad(each, A)[0] for each in losses))


def test_anomaly_mode_looks_at_cotangents():
    A = matrix("lu").requires_grad_()
    with torch.autograd.detect_anomaly():
        factor(A).solve(columns(A.detach())).sum().backward()
    assert A.grad.isfinite().all()


def test_a_determinant_out_of_range_has_a_logarithm():
    A = 1e-200 * torch.eye(4, dtype=torch.float64)
    f = factor(A)
    assert f.det() == 0
    close(f.logdet().item(), -800 * math.log(10))


def test_a_matrix_of_no_rows():
    f = factor(torch.empty(0, 0))
    assert (f.det(), f.logdet(), f.solve(torch.empty(0, 2)).shape) == (1, 0, (0, 2))


def test_inference_mode_has_no_versions_to_look_at():
    with torch.inference_mode():
        A = matrix("lu")
        f = factor(A)
        close(f.solve(A), torch.eye(4, dtype=A.dtype))


def test_a_strategy_that_nobody_registered_solves_with_the_factor():
    class Own(type(strategies.get("triangular_solve"))):
        name = "own"

    A = matrix("lu")
    close(factor(A, strategy=Own()).inverse(), A.inverse())


def test_cotangents_in_batches_are_of_the_stated_rank():
    A = matrix("lu").requires_grad_()
    X = factor(A, rank=2).lstsq(columns(A.detach(), 1))
    eye = torch.eye(4, dtype=A.dtype).unsqueeze(-1)
    rows = torch.stack([torch.autograd.grad(X, A, each, retain_graph=True)[0] for each in eye])
    close(torch.autograd.grad(X, A, eye, is_grads_batched=True)[0], rows)

"""Plans for CUDA, in Triton's interpreter where there is no GPU, against PyTorch on the CPU."""

import pytest
import torch

from strategies import policy
from strategies.accuracy import gallery
from strategies.autograd.fast_path_node import FoundPlan, apply
from strategies.kernels.cuda.plan import plan
from strategies.operations import cholesky, det, inv, lu

pytest.importorskip("triton")

DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
DTYPES = [torch.float32, torch.float64]


OPERATIONS = {
    "lu_factor": lambda A: torch.linalg.lu_factor(A)[:1],
    "inv": lambda A: (torch.linalg.inv(A),),
    "det": lambda A: (torch.linalg.det(A),),
    "slogdet": torch.linalg.slogdet,
    "cholesky": lambda A: (torch.linalg.cholesky(A),),
    "solve": lambda A, B: (torch.linalg.solve(A, B),),
}


def operands(operation, shape, dtype, columns=(2,)):
    A = torch.randn(*shape, dtype=dtype)
    if operation == "solve":
        return A, torch.randn(*shape[:-1], *columns, dtype=dtype)
    if operation == "cholesky":
        A = A @ A.mT + shape[-1] * torch.eye(shape[-1], dtype=dtype)
    return (A,)


def computed(operation, inputs):
    """The plan, and outputs and what is kept by it."""
    found = plan(operation, DEVICE, inputs[0].dtype, *(each.shape for each in inputs))
    return found, found.forward(tuple(each.to(DEVICE) for each in inputs))


def pulled_back(found, inputs, outputs, kept, cotangent):
    saved = [*(each.to(DEVICE) for each in inputs), *(outputs[i] for i in found.saved), *kept]
    return found.backward(saved, (cotangent.to(DEVICE),))


def agrees(operation, inputs):
    leaves = [each.clone().requires_grad_() for each in inputs]
    found, (outputs, kept) = computed(operation, inputs)
    expected = OPERATIONS[operation](*leaves)
    (which,) = found.cotangents
    cotangent = torch.randn_like(outputs[which], device="cpu")
    gradients = pulled_back(found, inputs, outputs, kept, cotangent)
    of_torch = torch.autograd.grad(expected[which], leaves, cotangent)
    tolerance = 1e4 * torch.finfo(inputs[0].dtype).eps
    pairs = [*zip(outputs, expected, strict=False), *zip(gradients, of_torch, strict=True)]
    for each, other in pairs:
        assert each.is_contiguous()
        assert each.shape == other.shape
        assert (each.cpu() - other).abs().max() <= tolerance * other.abs().max()


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float32, marks=pytest.mark.slow), torch.float64], ids=str
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_results_and_gradients_are_those_of_torch(operation, dtype):
    for shape in ((5, 1, 1), (130, 3, 3), (2, 1, 8, 8), (4, 4), (2, 7, 7)):
        agrees(operation, operands(operation, shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lu_of_tall_and_wide_matrices(dtype):
    for shape in ((3, 8, 4), (3, 3, 7), (6, 1), (1, 6)):
        agrees("lu_factor", operands("lu_factor", shape, dtype))


def test_pivots_are_those_of_lapack():
    A = torch.randn(70, 7, 5, dtype=torch.float64)
    _, ((_, pivots), _) = computed("lu_factor", (A,))
    assert torch.equal(pivots.cpu(), torch.linalg.lu_factor(A).pivots)


def test_right_hand_sides_that_are_vectors_and_inputs_and_cotangents_of_any_strides():
    agrees("solve", operands("solve", (3, 4, 4), torch.float64, columns=()))
    A = torch.randn(4, 4, 3, dtype=torch.float64).permute(2, 1, 0)
    agrees("inv", (A,))
    agrees("solve", (A, torch.randn(3, 4, 6, dtype=torch.float64)[..., ::3]))


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("factor", [2.0**-60, 2.0**60])
def test_cotangents_of_any_size(operation, factor):
    """Of single precision, whose squares would leave the range."""
    inputs = operands(operation, (3, 5, 5), torch.float32)
    found, (outputs, kept) = computed(operation, inputs)
    (which,) = found.cotangents
    cotangent = torch.randn_like(outputs[which])
    gradients, scaled = (
        pulled_back(found, inputs, outputs, kept, each) for each in (cotangent, cotangent * factor)
    )
    for one, other in zip(gradients, scaled, strict=True):
        torch.testing.assert_close(other / factor, one)


UNUSUAL = {
    "zero": torch.zeros(4, 4),
    "NaN": torch.full((4, 4), torch.nan),
    "infinite": torch.eye(4).fill_diagonal_(torch.inf),
    "huge": torch.eye(4) * 1e30,
    "tiny": torch.eye(4) * 1e-30,
    "of deficient rank": torch.ones(4, 4),
}


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_unusual_matrix_is_told(operation, kind):
    inputs = operands(operation, (3, 4, 4), torch.float32)
    inputs[0][1] = UNUSUAL[kind]
    assert computed(operation, inputs)[1] is None


@pytest.mark.parametrize("operation", ["inv", "solve", "det"])
def test_growth_is_told(operation):
    inputs = operands(operation, (8, 8), torch.float64)
    assert computed(operation, inputs)[1] is not None
    inputs[0][:] = gallery.make("wilkinson_growth", (8, 8), torch.float64).matrix
    assert computed(operation, inputs)[1] is None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pivots_that_may_be_roundoff_are_told_from_small_ones(dtype):
    """Bounds do not tell for either; deviations do."""
    basis = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64)).Q
    regular, roundoff = ({torch.float32: 1e-4, torch.float64: 1e-12}[dtype], 0.0)
    for smallest, is_usual in ((regular, True), (roundoff, False)):
        values = torch.tensor([1.0] * 5 + [smallest], dtype=torch.float64)
        A = (basis * values @ basis.mT.roll(1, 0)).to(dtype)
        assert (computed("lu_factor", (A.expand(3, 6, 6),))[1] is not None) is is_usual


def test_there_is_no_plan_for_what_no_kernel_takes():
    square = (3, 4, 4)
    assert plan("inv", DEVICE, torch.float32, square) is not None
    assert plan("inv", DEVICE, torch.complex64, square) is None
    assert plan("pinv", DEVICE, torch.float32, square) is None
    assert plan("inv", DEVICE, torch.float32, (3, 4, 5)) is None
    assert plan("inv", DEVICE, torch.float32, (3, 9, 9)) is None
    assert plan("inv", DEVICE, torch.float32, (0, 4, 4)) is None
    assert plan("solve", DEVICE, torch.float32, square, (4, 2)) is None


FAST_PATHS = {
    calls.operator.removeprefix("linalg_"): calls.fast_path
    for module in (cholesky, det, inv, lu)
    for calls in module.ATEN
}


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "solve"])
def test_second_derivatives_are_those_of_torch(operation):
    (A,) = operands(operation, (3, 5, 5), torch.float64)
    A.requires_grad_()
    key = ("det", 5, 5, 1, 3, "float64", "cuda")
    candidates = policy.ranked("fused", key, any_rank=True)
    found, given = computed(operation, (A.detach(),))
    outputs = apply(
        (FoundPlan(found, False, FAST_PATHS[operation], candidates), *given), A.to(DEVICE)
    )
    (which,) = found.cotangents
    second = []
    for output in (outputs[which], OPERATIONS[operation](A)[which]):
        (gradient,) = torch.autograd.grad(output.pow(3).sum(), A, create_graph=True)
        second += torch.autograd.grad(gradient.sum(), A)
    torch.testing.assert_close(*second)

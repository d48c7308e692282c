"""What installed operators do, where PyTorch's own compute, and that nothing is left behind."""

import functools
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from comparison import with_gradients
from installable import OVERLOADS, general, inputs, outputs, rhs, smooth, triangle
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.linalg import inv as bound_before
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import strategies
from strategies import linalg
from strategies.errors import UnsupportedError
from strategies.integration import installation
from strategies.testing.spy import TorchSpy, graph_of
from tests.autograd.plain_calls import needs_extension

pytestmark = needs_extension


def is_ours(tensor):
    """Whether the gradient is by the fast path, wherever in the graph."""
    return any("FastPath" in node.name() for node in graph_of(tensor))


def leaves(*given):
    return [each.detach().requires_grad_() for each in given]


def strides(tensor):
    """Those that say where an entry lies."""
    return [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


@pytest.fixture
def installed():
    """All operators, and what has plans for all of them."""
    with strategies.use("fused"), strategies.install() as done:
        yield done


DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str
)
DOUBLE = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
EVERY = pytest.mark.parametrize("overload", OVERLOADS)


@DTYPES
@EVERY
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=["matrix", "batch"])
def test_outputs_are_those_of_pytorch_in_value_and_form(overload, batch, dtype):
    # Of lstsq PyTorch's solution is a part of its workspace.
    has_strides = overload != "linalg_lstsq"
    single = dtype in (torch.float32, torch.complex64)
    tolerances = {"rtol": 1e-4, "atol": 1e-4} if single else {"rtol": 1e-10, "atol": 1e-10}
    for layout in ("rows", "columns"):
        given = inputs(overload, dtype, *batch)
        if layout == "columns":
            given = [each.mT.contiguous().mT for each in given]
        due = outputs(overload, *given)
        with strategies.use("fused"), strategies.install():
            found = outputs(overload, *leaves(*given))
            constant = outputs(overload, *given)
        assert any(map(is_ours, found))
        for results in ([each.detach() for each in found], constant):
            assert_close(results, due, **tolerances)
            if has_strides:
                assert [*map(strides, results)] == [*map(strides, due)]


@DOUBLE
@EVERY
@pytest.mark.parametrize("batch", [(), (3,)], ids=["matrix", "batch"])
def test_derivatives_are_right_in_two_orders(overload, batch, dtype, installed):
    given = leaves(*inputs(overload, dtype, *batch))
    function = functools.partial(smooth, overload)
    assert gradcheck(function, given, fast_mode=True)
    assert gradgradcheck(function, given, fast_mode=True)


@pytest.mark.parametrize(
    ("left", "unit", "upper"), itertools.product([False, True], repeat=3), ids=str
)
def test_every_kind_of_triangular_system(left, unit, upper):
    A, B = triangle(torch.complex128, 2), rhs(torch.complex128, 2)
    given = leaves(A.mT if upper else A, B if left else B.mT)
    options = {"upper": upper, "left": left, "unitriangular": unit}
    solve = functools.partial(torch.linalg.solve_triangular, **options)
    due = with_gradients(solve, *given)
    with strategies.install(["linalg_solve_triangular"]):
        found = with_gradients(solve, *given)
    assert [is_ours(due[0]), is_ours(found[0])] == [False, True]
    assert found[0].stride() == due[0].stride()
    assert_close(found, due)


def test_one_matrix_of_right_hand_sides_for_a_batch_of_factors_is_no_batch_of_vectors(installed):
    L, B = triangle(torch.float64, 5), rhs(torch.float64, columns=5)
    assert_close(torch.cholesky_solve(B, L), torch.stack([torch.cholesky_solve(B, X) for X in L]))


@pytest.mark.parametrize("batch", [(), (4,)], ids=["vector", "vectors"])
@pytest.mark.parametrize("name", ["solve", "lstsq"])
def test_right_hand_sides_may_be_vectors(name, batch):
    given = leaves(general(torch.float64, *batch), torch.randn(*batch, 5, dtype=torch.float64))
    due = tree_leaves(getattr(torch.linalg, name)(*given))[0]
    with strategies.install():
        found = tree_leaves(getattr(torch.linalg, name)(*given))[0]
    assert is_ours(found)
    assert found.stride() == due.stride()
    assert_close(found, due)


def inverse(A):
    return torch.linalg.inv(A)


@pytest.mark.parametrize(
    "call",
    [
        lambda A, B: torch.linalg.pinv(A[:, :3]),
        lambda A, B: torch.linalg.pinv(A, rtol=1e-8),
        lambda A, B: torch.linalg.pinv(A, atol=torch.tensor(0.0), rtol=torch.tensor(1e-8)),
        lambda A, B: torch.pinverse(A),
        lambda A, B: torch.linalg.qr(A).R,
        lambda A, B: torch.linalg.lu_factor(A).LU,
        lambda A, B: torch.linalg.lu(A).L,
        lambda A, B: torch.linalg.lstsq(A[:, :3], B).solution,
        torch.linalg.solve,
        lambda A, B: torch.cholesky_solve(B, torch.linalg.cholesky(A @ A.mT).detach()),
        lambda A, B: bound_before(A),
        lambda A, B: torch.inverse(A),
        lambda A, B: A.inverse(),
        lambda A, B: torch.linalg.matrix_power(A, -2),
        lambda A, B: torch.linalg.tensorinv(A.reshape(5, 1, 5), ind=1),
        lambda A, B: torch.logdet(A),
        lambda A, B: torch.jit.script(inverse)(A),
        lambda A, B: torch.jit.trace(inverse, (A.detach(),))(A),
    ],
)
def test_whoever_calls_an_operator_comes_to_it(call, installed):
    assert is_ours(call(*leaves(general(), rhs(torch.float64))))


@pytest.mark.parametrize("shape", [(3, 5), (5, 5), (9, 3, 5)], ids=str)
def test_pseudo_inverses_lie_by_rows_as_in_pytorch(shape, installed):
    A = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    found = torch.linalg.pinv(A)
    assert is_ours(found)
    assert found.is_contiguous()
    assert_close(A @ found @ A, A)


def test_tolerances_of_pinv_are_those_of_pytorch(installed):
    nearly = torch.diag(torch.tensor([1.0, 1e-5], dtype=torch.float64)).requires_grad_()
    assert torch.linalg.pinv(nearly, rtol=1e-4).tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert torch.linalg.pinv(nearly, atol=1e-6)[1, 1] > 9e4
    assert torch.pinverse(nearly, 1e-4)[1, 1] == 0
    batched = torch.tensor([1e-4, 1e-6], dtype=torch.float64)
    assert torch.linalg.pinv(nearly, rtol=batched)[:, 1, 1].round().tolist() == [0, 100000]


def test_a_trace_holds_pytorchs_operators(installed):
    traced = torch.jit.trace(torch.linalg.inv, (general(),))
    assert "aten::linalg_inv" in str(traced.graph)
    A = general()
    assert_close(traced(A) @ A, torch.eye(5, dtype=A.dtype))


def test_uninstalled_operators_are_pytorchs():
    A = general().requires_grad_()
    strategies.install(["linalg_inv"])
    outer = strategies.install("linalg_det")
    assert is_ours(torch.linalg.inv(A))
    assert is_ours(torch.linalg.det(A))
    assert not is_ours(torch.linalg.slogdet(A).logabsdet)
    outer.undo()
    outer.undo()
    assert not is_ours(torch.linalg.det(A))
    assert strategies.is_installed("linalg_inv")
    strategies.uninstall()
    assert not strategies.is_installed()
    assert not is_ours(torch.linalg.inv(A))
    assert torch.linalg.inv(A).grad_fn.name() == "LinalgInvExBackward0"


def test_installations_nest_in_any_order():
    A = general().requires_grad_()
    outer = strategies.install(["linalg_inv"])
    with strategies.install() as inner:
        outer.undo()
        assert is_ours(torch.linalg.inv(A))
        assert "linalg_inv" in repr(inner)
        assert repr(inner).endswith("in force>")
    assert not is_ours(torch.linalg.inv(A))


def test_an_operator_without_kernels_is_refused():
    with pytest.raises(ValueError, match=r"no operator linalg_eig: there is .*linalg_det"):
        strategies.install(["linalg_eig"])


def test_without_the_fast_path_in_cpp_it_says_how_to_build_it(monkeypatch):
    monkeypatch.setattr(installation, "_operators", lambda _: [None])
    with pytest.raises(UnsupportedError, match="warmup"):
        strategies.install()
    assert not strategies.is_installed()


def test_this_package_and_strategies_that_compute_are_given_pytorchs(installed):
    A = general().requires_grad_()
    assert not is_ours(linalg.inv(A, strategy="native"))

    class Own(type(strategies.get("triangular_solve"))):
        name = "own"

        def factor_square(self, matrix):
            seen.append(is_ours(torch.linalg.inv(matrix.detach().requires_grad_())))
            return super().factor_square(matrix)

    seen = []
    with torch.enable_grad():
        linalg.inv(A, strategy=Own())
    assert seen == [False]


class Kept(torch.Tensor):
    """A subclass that leaves everything as it is."""


def test_tensors_that_are_not_plain_go_to_pytorch(installed):
    A = general()
    with FakeTensorMode() as mode:
        assert torch.linalg.inv(mode.from_tensor(A)).stride() == (1, 5)
    assert torch.linalg.inv(A.to("meta")).is_meta
    kept = torch.linalg.inv(A.as_subclass(Kept).requires_grad_())
    assert type(kept) is Kept
    assert not is_ours(kept)
    assert is_ours(torch.linalg.inv(torch.nn.Parameter(A)))
    conjugate = general(torch.complex128).conj()
    for pending in (conjugate, conjugate.imag):
        assert pending.is_conj() or pending.is_neg()
        inverse = torch.linalg.inv(pending)
        assert_close(inverse @ pending, torch.eye(5, dtype=pending.dtype))


def test_transforms_and_forward_mode_are_pytorchs(installed):
    A, V = general(torch.float64, 3), torch.randn(3, 5, 5, dtype=torch.float64)
    due = torch.stack([torch.linalg.inv(each) for each in A])
    assert_close(torch.vmap(torch.linalg.inv)(A), due)
    tangent = -due @ V @ due
    assert_close(torch.func.jvp(torch.linalg.inv, (A,), (V,))[1], tangent)
    with forward_ad.dual_level():
        dual = torch.linalg.inv(forward_ad.make_dual(A, V))
        assert_close(forward_ad.unpack_dual(dual).tangent, tangent)
    gradient = torch.func.grad(lambda A: torch.linalg.inv(A).sum())
    assert_close(gradient(A), -(due.mT @ torch.ones_like(A) @ due.mT))
    assert_close(torch.vmap(gradient)(A), gradient(A))


def test_a_gradient_within_vmap_is_right(installed):
    A = general().requires_grad_()
    factors = torch.arange(1.0, 4.0, dtype=torch.float64)
    torch.vmap(lambda each: torch.linalg.inv(A * each))(factors).sum().backward()
    due = sum(
        torch.func.grad(lambda A, each=each: torch.linalg.inv(A * each).sum())(A.detach())
        for each in factors
    )
    assert_close(A.grad, due)


def test_modes_see_what_they_see_without(installed):
    names = []
    with TorchSpy(lambda name, _: names.append(name)):
        torch.linalg.inv(general())
    assert "aten.linalg_inv_ex" in names


def test_results_are_written_where_out_says(installed):
    A = general()
    out = torch.empty(5, 5, dtype=A.dtype)
    assert torch.linalg.inv(A, out=out) is out
    assert_close(out @ A, torch.eye(5, dtype=A.dtype))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.linalg.inv(A.requires_grad_(), out=out)


def test_inference_and_no_grad(installed):
    A = general().requires_grad_()
    with torch.no_grad():
        assert torch.linalg.inv(A).grad_fn is None
    with torch.inference_mode():
        assert torch.linalg.inv(A).is_inference()


def test_errors_are_pytorchs(installed):
    singular = torch.zeros(2, 3, 3, dtype=torch.float64)
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 1 is zero"):
        torch.linalg.inv(singular)
    assert torch.linalg.inv_ex(singular).info.tolist() == [1, 1]
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv_ex(singular, check_errors=True)
    with pytest.raises(RuntimeError, match="must be batches of square matrices"):
        torch.linalg.inv(torch.ones(2, 3))
    assert is_ours(torch.linalg.inv(general().requires_grad_()))


def test_what_auto_is_holds(installed):
    A = general().requires_grad_()
    with strategies.use("native"):
        assert not is_ours(torch.linalg.inv(A))
    with strategies.use("fused"):
        assert is_ours(torch.linalg.inv(A))


def test_threads_compute_alike_while_operators_come_and_go():
    A, G = general(torch.float64, 8), torch.randn(8, 5, 5, dtype=torch.float64)
    stop = threading.Event()

    def gradient(_):
        given = A.detach().requires_grad_()
        return torch.autograd.grad(torch.linalg.inv(given), given, G)[0]

    def come_and_go():
        while not stop.is_set():
            with strategies.install(["linalg_inv", "linalg_inv_ex"]):
                pass

    due = gradient(None)
    with ThreadPoolExecutor(4) as threads:
        changing = threads.submit(come_and_go)
        for found in threads.map(gradient, range(300)):
            assert_close(found, due)
        stop.set()
        changing.result()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_are_one_graph_with_pytorchs_gradients(installed):
    def loss(A):
        return torch.linalg.inv(A).sum() + torch.linalg.det(A)

    A = general()
    due = torch.func.grad(loss)(A)
    given = A.clone().requires_grad_()
    torch.compile(loss, backend="aot_eager", fullgraph=True)(given).backward()
    assert_close(given.grad, due)
    module = type("Module", (torch.nn.Module,), {"forward": lambda _, A: torch.linalg.inv(A)})()
    exported = torch.export.export(module, (A,))
    assert_close(exported.module()(A) @ A, torch.eye(5, dtype=A.dtype))

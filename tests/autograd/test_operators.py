"""Operations where tensors have no values: compiled in one graph, exported, fake and meta."""

import pytest
import torch
from comparison import require_alike
from operations import OPERATIONS, compiled, function, inputs_of, needs_compiler
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

import strategies
from strategies import linalg
from tests.autograd.plain_calls import matrices
from tests.process import run_python

CHOICES = ["auto", *strategies.available()]
# A graph holds an operator and the name of a strategy: PyTorch's own formulas, a plan in C++, factors, and
# factors that show a rank take ways of their own there, and other strategies one of these.
KINDS = ("auto", "native", "fused", "triangular_solve", "svd_truncated_pinv")
each_kind = pytest.mark.parametrize(
    "strategy", [pytest.param(x, marks=[] if x in KINDS else pytest.mark.slow) for x in CHOICES]
)
OPERATORS = torch.ops.backward_strategies


def every_call(strategy):
    """All functions in all their forms, of those matrices."""

    def call(A, C, B, D):
        tolerance = torch.full(A.shape[:-2], 1e-5, dtype=A.real.dtype, device=A.device)
        return (
            linalg.inv(A, strategy=strategy),
            linalg.solve(A, B, strategy=strategy),
            linalg.solve(A, B[..., 0], strategy=strategy),
            linalg.solve(A, B.mT, left=False, strategy=strategy),
            linalg.det(A, strategy=strategy),
            *linalg.slogdet(A, strategy=strategy),
            *linalg.lu_factor(C, strategy=strategy),
            *linalg.lu_factor_ex(C.mT, strategy=strategy),
            *linalg.lu(C, strategy=strategy),
            linalg.pinv(C.mT, strategy=strategy),
            linalg.pinv(C, atol=1e-5, strategy=strategy),
            linalg.pinv(C, rtol=tolerance, strategy=strategy),
            linalg.pinv(A + A.mH, hermitian=True, strategy=strategy),
            *linalg.lstsq(C, D, strategy=strategy)[::2],
            *linalg.lstsq(C, D[..., 0], strategy=strategy)[::2],
        )

    return call


def loss(outputs):
    outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
    floats = (each for each in outputs if each.is_floating_point() or each.is_complex())
    return sum(each.abs().square().sum() for each in floats)


def loss_of(call):
    return lambda *inputs: loss(call(*inputs))


def leaves(tensors):
    return [each.requires_grad_() for each in tensors]


@each_kind
def test_a_graph_without_breaks_has_the_values_and_gradients_of_eager_mode(strategy):
    call = every_call(strategy)
    require_alike(compiled(call), call, *leaves(matrices(2, dtype=torch.complex128)))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
@pytest.mark.parametrize("strategy", CHOICES)
def test_the_default_backend_gives_the_gradients_of_eager_mode(operation, strategy):
    loss = loss_of(function(operation, strategy))
    for dtype in (torch.float32, torch.complex64):  # single matrices in double: docs/modes.md
        inputs = inputs_of(operation, (4, 4), (3,), dtype)
        torch.compiler.reset()
        require_alike(torch.compile(loss, fullgraph=True), loss, *inputs)


@each_kind
def test_an_exported_program_takes_batches_of_any_size(strategy):
    class Module(torch.nn.Module):
        # By name: in PyTorch 2.9 no program takes *inputs whose sizes are dynamic.
        def forward(self, A, C, B, D):
            return every_call(strategy)(A, C, B, D)

    batch = torch.export.Dim("batch")
    program = torch.export.export(Module(), matrices(4), dynamic_shapes=({0: batch},) * 4)
    for size in (4, 7, 1, 0):
        inputs = matrices(size)
        torch.testing.assert_close(program.module()(*inputs), every_call(strategy)(*inputs))
    assert "backward_strategies" in str(program.run_decompositions().graph)


@pytest.mark.parametrize("strategy", CHOICES)
def test_fake_and_meta_tensors_have_the_shapes_of_eager_mode(strategy):
    call = every_call(strategy)
    mode = FakeTensorMode()
    for dtype in (torch.float64, torch.complex64):
        inputs = matrices(2, dtype=dtype)
        metas = tuple(each.to("meta") for each in inputs)
        with mode:
            fakes = call(*map(mode.from_tensor, inputs))
        for fake, meta, real in zip(fakes, call(*metas), call(*inputs), strict=True):
            assert fake.shape == meta.shape == real.shape
            assert fake.dtype == meta.dtype == real.dtype
        gradients = torch.autograd.grad(loss_of(call)(*leaves(metas)), metas)
        assert [each.shape for each in gradients] == [each.shape for each in inputs]


def test_one_graph_serves_matrices_of_all_sizes():
    def both(A, B):
        return linalg.lstsq(A, B).solution.square().sum() + linalg.pinv(A, rtol=1e-9).sum()

    graphs = []

    def counting(graph, _):
        graphs.append(graph)
        return graph

    counted = torch.compile(both, fullgraph=True, backend=counting, dynamic=True)
    for batch, m, n, k in ((4, 6, 3, 2), (2, 7, 4, 3), (9, 8, 5, 3)):
        inputs = (torch.randn(batch, m, each, dtype=torch.float64) for each in (n, k))
        require_alike(counted, both, *leaves(inputs))
    assert len(graphs) == 1


def test_a_marked_dimension_is_not_fixed_by_any_operation():
    of_all = loss_of(every_call("auto"))
    call = compiled(of_all)
    for batch in (3, 4, 7):
        inputs = leaves(matrices(batch))
        for each in inputs:
            torch._dynamo.mark_dynamic(each, 0)
        require_alike(call, of_all, *inputs)


def arguments():
    A, C, B, D = leaves(matrices(2))
    tolerance = torch.full((2,), 1e-9, dtype=torch.float64)
    X, kept, used = OPERATORS.solve(A, B, "qr_pinv")
    linalg.solve(A, B)  # loads the fast path, which the operators know from then on
    by_plan = OPERATORS.solve(A, B, "fused")
    constants = C.detach(), D.detach()
    square = A.detach()
    of_inv = OPERATORS.inv(square, "qr_pinv")
    of_lstsq = OPERATORS.lstsq(*constants, None, None, "qr_pinv")
    calls = {
        "inv": (A, "auto"),
        "solve": (A, B, "qr_pinv"),
        "det": (A, "auto"),
        "slogdet": (A, "native"),
        "lu_factor_ex": (C, True, False, "blocked_lu"),
        "pinv": (C, None, None, None, tolerance, False, "auto"),
        "lstsq": (C, D, None, None, "svd_truncated_pinv"),
        "solve_backward": ([A, B, B], X, kept, used, [True, True]),
        "inv_backward_backward": ([square] * 4, *of_inv, [True], [True, True]),
        "solve_backward by plan": ([A, B, B], *by_plan, [True, True]),
        "pinv_backward": ([C, C.mT], C.mT, kept, None, None, 1e-9, None, False, used, [True]),
        "lstsq_forward": (
            [*constants, constants[0]],
            *of_lstsq[:-1],
            *(None, None, of_lstsq[-1]),
            [True, False],
        ),
    }
    return [pytest.param(name, call, id=name) for name, call in calls.items()]


@pytest.mark.parametrize(("name", "call"), arguments())
def test_torch_finds_no_fault_with_an_operator(name, call):
    opcheck(getattr(OPERATORS, name.removesuffix(" by plan")).default, call)


def test_graphs_on_disk_are_those_of_this_revision_of_the_operators():
    assert "backward_strategies" in torch.compiler.config.cache_key_tag


def test_what_has_no_operator_says_so():
    A = matrices()[0]
    of_third_order = torch.func.jacrev(torch.func.jacrev(torch.func.jacrev(linalg.det)))
    with pytest.raises(Exception, match="eager mode has all orders"):
        compiled(of_third_order)(A)


def test_a_matrix_is_refused_at_run_time_in_the_words_of_eager_mode():
    singular = torch.zeros(3, 3, requires_grad=True)
    inverse = compiled(lambda A: 2 * linalg.inv(A, strategy="triangular_solve"))
    logarithm = compiled(lambda A: 2 * linalg.slogdet(A, strategy="qr_pinv").logabsdet)
    with pytest.raises(torch.linalg.LinAlgError, match="'triangular_solve' needs full rank"):
        inverse(singular)
    with pytest.raises(torch.linalg.LinAlgError, match=r"the backward of slogdet: .* has no grad"):
        logarithm(singular).backward()


def test_auto_goes_on_to_a_strategy_that_takes_the_matrix_and_back_by_it():
    deficient = torch.randn(6, 2, dtype=torch.float64) @ torch.randn(2, 4, dtype=torch.float64)
    of_pinv = loss_of(linalg.pinv)
    require_alike(compiled(of_pinv), of_pinv, deficient.requires_grad_())


@pytest.mark.parametrize("name", ["qr_pinv", "svd_truncated_pinv"])
def test_use_around_a_compiled_call_holds_for_its_backward(name, monkeypatch):
    A = matrices()[0].requires_grad_()
    inverse = compiled(linalg.inv)
    inverse(A)
    factored, kind = [], type(strategies.get(name))
    factor = kind.factor_square

    def seen(self, matrix):
        factored.append(self.name)
        return factor(self, matrix)

    monkeypatch.setattr(kind, "factor_square", seen)
    with strategies.use(name):
        result = inverse(A)
    assert factored == [name]
    result.square().sum().backward()
    assert factored == [name, name]


def test_a_registered_instance_stands_for_its_name():
    A = matrices()[0]
    strategy = strategies.get("qr_pinv")
    found = compiled(lambda A: linalg.inv(A, strategy=strategy))(A)
    assert torch.equal(found, linalg.inv(A, strategy=strategy))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("qr_pinw", "there is qr_pinv"),
        (type("Own", (type(strategies.get("qr_pinv")),), {})(), "is not registered"),
    ],
    ids=["unknown", "unregistered"],
)
def test_a_choice_that_no_graph_can_hold_is_named(choice, said):
    with pytest.raises(Exception, match=said):
        compiled(lambda A: linalg.inv(A, strategy=choice))(matrices()[0])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda A: linalg.inv(A[:2]), "batches of square matrices"),
        (lambda A: linalg.pinv(A.long()), "floating"),
        (lambda A: linalg.solve(A, A[:2]), "Incompatible"),
        (lambda A: linalg.lstsq(A, A[:2]), "does not fit A of shape"),
    ],
    ids=["inv", "pinv", "solve", "lstsq"],
)
def test_inputs_that_do_not_fit_are_errors_of_tracing(call, said):
    with pytest.raises(Exception, match=said):
        compiled(call)(matrices()[0])


def test_vectors_from_the_right_are_refused_as_in_eager_mode():
    def solve(A):
        return linalg.solve(A.expand(3, 3, 3), A, left=False)

    for call in (solve, compiled(solve)):
        with pytest.raises(RuntimeError, match="Incompatible shapes"):
            call(torch.eye(3))


def test_residuals_follow_from_shapes_and_singular_values_are_left_out():
    deficient = torch.ones(4, 2, dtype=torch.float64)
    B = torch.randn(4, 3, dtype=torch.float64)
    call = compiled(lambda A, B: linalg.lstsq(A, B, strategy="svd_truncated_pinv"))
    found = call(deficient, B)
    expected = (B - deficient @ found.solution).square().sum(0)
    torch.testing.assert_close(found.residuals, expected)
    assert found.rank == 1
    assert found.singular_values.shape == (0,)
    assert call(deficient.mT.clone(), B[:2]).residuals.shape == (0,)


def test_no_grad_and_inference_mode_around_and_inside():
    A = matrices()[0].requires_grad_()
    inverse = compiled(linalg.inv)

    def half(A):
        with torch.no_grad():
            constant = linalg.inv(A)
        return (constant * A).sum()

    with torch.no_grad():
        assert not inverse(A).requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(inverse(A), linalg.inv(A))
    require_alike(compiled(half), half, A)


def test_permutations_and_pivots_carry_no_gradient():
    factors = compiled(linalg.lu)(matrices()[0].requires_grad_())
    assert [each.requires_grad for each in factors] == [False, True, True]


def test_conjugate_views_are_not_taken_for_their_tensors():
    A = matrices(dtype=torch.complex128)[0]
    call = compiled(lambda A: linalg.pinv(A.conj(), strategy="native"))
    torch.testing.assert_close(call(A), torch.linalg.pinv(A.conj()))


def test_an_exported_program_runs_where_nothing_else_was_computed(tmp_path):
    class Module(torch.nn.Module):
        def forward(self, A):
            return linalg.inv(A, strategy="qr_pinv")

    torch.export.save(torch.export.export(Module(), matrices()[:1]), tmp_path / "inverse.pt2")
    code = f"""
import torch, strategies
program = torch.export.load({str(tmp_path / "inverse.pt2")!r})
print(program.module()(2 * torch.eye(3, dtype=torch.float64)).diagonal().tolist())
"""
    assert run_python(code).stdout.split("\n")[0] == "[0.5, 0.5, 0.5]"

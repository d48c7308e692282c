"""What replaced functions do, and that they leave no trace."""

import copy
import functools
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from replaceable import A, called, there
from torch.fx import symbolic_trace
from torch.fx.operator_schemas import normalize_function
from torch.overrides import TorchFunctionMode
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import strategies
from strategies import linalg
from strategies.errors import LinAlgError
from strategies.integration import replacement
from strategies.testing.spy import graph_of
from tests.process import run_python

FUNCTIONS = replacement.functions()


def result(function, matrix=A):
    """What a program gets that calls the function now, as one tensor."""
    found = called(function, matrix)
    parts = [found] if isinstance(found, torch.Tensor) else list(found)
    return torch.cat([torch.view_as_real(part + 0j).flatten() for part in parts])


def is_ours(call):
    """Whether the gradient is that of a strategy, by the names of the graph's nodes."""
    found = call(A.clone().requires_grad_())  # which alone keeps the nodes in PyTorch 2.9
    ours = re.compile("FastPath|_EagerBackward|_PrimalBackward")
    return any(ours.search(node.name()) for node in graph_of(found))


@pytest.fixture
def replaced():
    with strategies.replace_torch() as replacement:
        yield replacement


def test_all_functions_of_linalg_are_replaced_wherever_torch_has_them():
    names = {name for name in linalg.__all__ if not isinstance(getattr(linalg, name), type)}
    assert {function.name for function in FUNCTIONS} == names
    assert {"torch.linalg.inv", "torch.inverse", "torch.Tensor.inverse"} <= set(map(str, FUNCTIONS))


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_a_replaced_function_computes_the_same_by_a_strategy(function):
    expected = result(function)
    assert not is_ours(functools.partial(result, function))
    with strategies.replace_torch([function.name]), strategies.use("qr_pinv"):
        assert there(function) is function
        assert_close(result(function), expected)
        assert is_ours(functools.partial(result, function))
    assert there(function) is function.original


def test_the_tolerance_of_pinverse_is_its_own(replaced):
    nearly = torch.diag(torch.tensor([1.0, 1e-14], dtype=torch.float64))
    assert torch.pinverse(nearly)[1, 1] > 1e13
    assert torch.pinverse(nearly, 1e-12)[1, 1] == 0


def test_nothing_is_left_behind():
    before = {(str(f), f.name in vars(f.owner)): there(f) for f in FUNCTIONS}
    replacement = strategies.replace_torch()
    assert strategies.is_replaced()
    assert strategies.is_replaced("pinv")
    replacement.undo()
    replacement.undo()
    assert not strategies.is_replaced()
    assert {(str(f), f.name in vars(f.owner)): there(f) for f in FUNCTIONS} == before


def test_a_list_of_names_replaces_no_other():
    with strategies.replace_torch(["inv", "det"]):
        assert strategies.is_replaced("inv")
        assert not strategies.is_replaced("solve")
        assert not is_ours(lambda M: torch.linalg.solve(M, A))
    with strategies.replace_torch("inv") as replacement:
        assert replacement.names == ("inv",)
    with pytest.raises(ValueError, match=r"no function svd: there is .*det, .*inv"):
        strategies.replace_torch(["inv", "svd"])


def test_replacements_nest_in_any_order():
    outer, inner = strategies.replace_torch(["inv"]), strategies.replace_torch()
    outer.undo()
    assert is_ours(torch.linalg.inv)
    inner.undo()
    assert not is_ours(torch.linalg.inv)


def test_the_extension_of_ipython_replaces_until_it_is_unloaded():
    strategies.load_ipython_extension(None)
    strategies.load_ipython_extension(None)  # as %reload_ext may
    assert strategies.is_replaced()
    strategies.unload_ipython_extension(None)
    assert not strategies.is_replaced()


def test_what_another_package_has_put_there_stays(monkeypatch):
    def another(matrix):
        return matrix

    with strategies.replace_torch():
        monkeypatch.setattr(torch.linalg, "inv", another)
    assert torch.linalg.inv is another


def test_a_function_that_was_looked_up_while_replaced_is_torchs_own_later(replaced):
    inv = torch.linalg.inv
    assert is_ours(inv)
    replaced.undo()
    assert not is_ours(inv)


# What goes to PyTorch


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: torch.linalg.inv(A, out=torch.empty_like(A)), "called with out="),
        (lambda: torch.linalg.pinv(A, 1e-3), "called with 2 arguments by position"),
        (lambda: torch.linalg.pinv(A, rcond=1e-3), "called with rcond="),
        (lambda: torch.linalg.inv(A.as_subclass(Own)), "Own may define what torch's functions do"),
    ],
)
def test_what_linalg_does_not_take_goes_to_torch_with_the_reason(call, reason, told):
    assert isinstance(call(), torch.Tensor)
    (message,) = told()
    assert reason in message
    assert f"{__file__}:" in message


class Own(torch.Tensor):
    pass


def test_a_place_in_the_program_is_told_of_once(told):
    for _ in range(3):
        torch.linalg.inv(A, out=torch.empty_like(A))
    assert len(told()) == 1


@pytest.mark.parametrize("matrix", [torch.zeros(2, 2), torch.ones(2, 3), torch.ones(2, 2).int()])
def test_errors_are_those_of_torch(matrix):
    with pytest.raises(RuntimeError) as native:
        torch.linalg.inv(matrix)
    with strategies.replace_torch(), pytest.raises(type(native.value)) as ours:
        torch.linalg.inv(matrix)
    assert str(ours.value) == str(native.value)


def test_a_strategy_that_fails_is_told_of(told, monkeypatch):
    with strategies.use(Failing()):
        assert_close(torch.linalg.inv(A), A.inverse())
    assert "does not do that" in told()[0]


class Failing(type(strategies.get("triangular_solve"))):
    name = "failing"

    def factor_square(self, matrix):
        raise LinAlgError("it does not do that")


def test_strategies_compute_by_torchs_own_functions(replaced):
    with strategies.use(OfReplaced()):
        matrix = A.clone().requires_grad_()
        torch.linalg.inv(matrix).sum().backward()
    inverse = A.inverse()
    assert_close(matrix.grad, -inverse.mT @ torch.ones_like(A) @ inverse.mT)
    with strategies.use("native"):
        assert not is_ours(torch.linalg.inv)
        assert not is_ours(linalg.inv)


class OfReplaced(type(strategies.get("explicit_inverse"))):
    """Calls the very function that it stands for."""

    name = "of_replaced"

    def factor_square(self, matrix):
        return super().factor_square(torch.linalg.inv(matrix).inverse())


# What programs do with functions


def test_it_holds_in_all_threads(replaced):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(is_ours, torch.linalg.inv).result()


def test_a_thread_may_have_no_other_caller(replaced):
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.linalg.inv(A)))
    thread.start()
    thread.join()
    assert_close(found[0] @ A, torch.eye(3, dtype=torch.float64))


def test_it_holds_in_forked_workers_of_a_data_loader(replaced):
    loader = torch.utils.data.DataLoader(
        [A, A + 1],
        num_workers=1,
        multiprocessing_context="fork",
        collate_fn=lambda found: (strategies.is_replaced("inv"), torch.linalg.inv(*found)),
    )
    for matrix, (is_replaced, inverse) in zip([A, A + 1], loader, strict=True):
        assert is_replaced
        assert_close(inverse, torch.linalg.inv(matrix))


def test_vmap_and_transforms_compose(replaced):
    batch = torch.stack((A, 2 * A))
    assert_close(torch.vmap(torch.linalg.inv)(batch), linalg.inv(batch))
    jacobian = torch.func.jacfwd(torch.func.jacrev(torch.linalg.det))(A)
    det = next(function.original for function in FUNCTIONS if function.name == "det")
    expected = torch.func.jacfwd(torch.func.jacrev(det))(A)
    assert_close(jacobian, expected)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints_recompute_by_the_same(replaced, use_reentrant):
    matrix = A.clone().requires_grad_()
    checkpoint(torch.linalg.inv, matrix, use_reentrant=use_reentrant).sum().backward()
    (expected,) = torch.autograd.grad(linalg.inv(matrix).sum(), matrix)
    assert_close(matrix.grad, expected)


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_pickles_and_copies_are_the_function_itself(function, replaced):
    assert copy.deepcopy(there(function)) is there(function)
    assert pickle.loads(pickle.dumps(there(function))) is there(function)  # noqa: S301 - our own


def test_a_pickle_is_torchs_own_function_in_a_process_that_replaces_nothing(replaced, tmp_path):
    kept = tmp_path / "inv"
    kept.write_bytes(pickle.dumps(torch.linalg.inv))
    code = f"""
import pickle, torch
inv = pickle.load(open({str(kept)!r}, "rb"))
print(inv(torch.eye(2, requires_grad=True)).grad_fn.name())"""
    assert run_python(code).stdout == "LinalgInvExBackward0\n"


class Seen(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_the_call_and_not_what_it_is_made_of(replaced):
    with Seen() as seen:
        inverse = torch.linalg.inv(A)
    assert seen.calls == [torch.linalg.inv]
    assert_close(inverse, linalg.inv(A))


def test_autocast_does_not_lower_the_precision(replaced):
    matrix = A.float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        inverse = torch.linalg.inv(matrix)
    inverse.sum().backward()
    exact = A.inverse()
    assert_close(inverse.double(), exact, rtol=1e-5, atol=1e-6)
    expected = -exact.mT @ torch.ones_like(A) @ exact.mT
    assert_close(matrix.grad.double(), expected, rtol=1e-5, atol=1e-6)


def test_a_default_device_does_not_bring_torch_back(replaced):
    with torch.device("cpu"):
        assert is_ours(torch.linalg.inv)


def test_programs_that_were_scripted_or_traced_by_symbols_run(replaced):
    scripted = torch.jit.script(inverse_and_det)
    assert_close(scripted(A), inverse_and_det(A))
    assert_close(symbolic_trace(inverse_and_det)(A), inverse_and_det(A))
    assert not is_ours(scripted)  # what it calls is of C++


def test_fx_names_the_arguments_of_what_is_replaced(replaced):
    inv = torch.linalg.inv
    found, due = (
        normalize_function(function, (A,), normalize_to_only_use_kwargs=True)
        for function in (inv, inv.original)
    )
    assert found.kwargs == due.kwargs == {"A": A}


def inverse_and_det(matrix):
    return torch.linalg.inv(matrix) + torch.det(matrix)


def operators_of(function, matrix):
    """The gradient of a compiled call, and the operators of its graph."""
    from torch._dynamo.backends.common import aot_autograd

    operators = set()

    def compiler(module, _):
        operators.update(str(node.target) for node in module.graph.nodes)
        return module.forward

    torch._dynamo.reset()
    compiled = torch.compile(
        lambda M: of_parts(called(function, M)),
        fullgraph=True,
        backend=aot_autograd(fw_compiler=compiler),
    )
    leaf = matrix.clone().requires_grad_()
    compiled(leaf).backward()
    return leaf.grad, operators


def of_parts(found):
    """A number of the first part that has a gradient; lstsq's residuals are empty in eager mode."""
    parts = [found] if isinstance(found, torch.Tensor) else found
    return next(part for part in parts if part.requires_grad).sum().real


def test_the_first_call_of_a_process_may_be_a_compiled_one():
    code = (
        "import torch, strategies; strategies.replace_torch(); A, B = torch.eye(2), torch.ones(2, 1);"
        "call = lambda: torch.linalg.solve_triangular(A, B, upper=True);"
        "print(torch.compile(call, fullgraph=True, backend='eager')().flatten().tolist())"
    )
    assert run_python(code).stdout == "[1.0, 1.0]\n"


# Under one of its names each.
@pytest.mark.parametrize("function", {each.name: each for each in FUNCTIONS}.values(), ids=str)
def test_a_compiled_call_is_replaced_in_one_graph(function):
    with strategies.replace_torch():
        gradient, operators = operators_of(function, A)
        leaf = A.clone().requires_grad_()
        of_parts(called(function, leaf)).backward()
    is_small_eig = function.name == "eig"  # whose arithmetic is left to PyTorch
    assert is_small_eig or any("backward_strategies" in operator for operator in operators)
    assert_close(gradient, leaf.grad)


@pytest.mark.parametrize("imported", ["within", pytest.param("before", marks=pytest.mark.slow)])
def test_dynamo_knows_torchs_functions_afterwards(imported):
    code = f"""
import torch, strategies
if {imported!r} == "before":
    import torch._dynamo
call = torch.compile(lambda A: torch.det(A) + torch.linalg.inv(A), fullgraph=True, backend="aot_eager")
A = torch.eye(2, requires_grad=True)
with strategies.replace_torch():
    call(A)
call(A).sum().backward()
print(A.grad.sum().item())"""
    assert float(run_python(code).stdout) == 4.0


def test_a_compiled_function_is_compiled_anew_when_that_changes():
    counts = []

    def count(module, _):
        counts.append(module)
        return module.forward

    torch._dynamo.reset()
    compiled = torch.compile(inverse_and_det, backend=count)
    for _ in range(2):
        compiled(A)
        with strategies.replace_torch():
            compiled(A)
    assert len(counts) == 2

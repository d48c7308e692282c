"""What a recording counts and times."""

import threading

import pytest
import torch
from replaceable import A, called

import strategies
from strategies import linalg
from strategies.integration import replacement, tally

B = torch.ones(3, 3, dtype=torch.float64)
FUNCTIONS = replacement.functions()


def test_equal_calls_in_one_place_are_one():
    with strategies.record() as recording:
        for _ in range(3):
            torch.linalg.inv(A)
        torch.linalg.inv(A)
        torch.linalg.inv(A.float())
    assert sorted(call.count for call in recording.calls) == [1, 1, 3]
    assert len({call.at for call in recording.calls}) == 3


@pytest.mark.parametrize(
    ("call", "case"),
    [
        (lambda: torch.linalg.inv(A), "inv 3x3 float64 cpu"),
        (A.inverse, "inv 3x3 float64 cpu"),
        (lambda: torch.pinverse(A.float()), "pinv 3x3 float32 cpu"),
        (lambda: A.expand(4, 3, 3, 3).det(), "det 12x3x3 float64 cpu"),
        (lambda: torch.linalg.solve(A, B=B), "solve 3x3 k=3 float64 cpu"),
        (lambda: torch.linalg.solve(A, B[:, 0]), "solve 3x3 float64 cpu"),
        (lambda: torch.linalg.lu_factor(A + 0j), "lu_factor 3x3 complex128 cpu"),
        (lambda: torch.logdet(A), "slogdet 3x3 float64 cpu"),
        (
            lambda: torch.linalg.lstsq(torch.ones(9, 3), torch.ones(9, 1)),
            "lstsq 9x3 rank=1 float32 cpu",
        ),
        (
            lambda: torch.cholesky_solve(torch.ones(4, 3), torch.eye(4)),
            "cholesky_solve 4x4 k=3 float32 cpu",
        ),
        (lambda: torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4)), ""),
        (lambda: torch.linalg.inv(torch.ones(0, 0)), ""),
        (lambda: linalg.inv(A, strategy="qr_pinv"), "inv 3x3 float64 cpu"),
    ],
)
def test_a_call_has_a_case_that_can_be_measured(call, case):
    with strategies.record() as recording:
        call()
    (found,) = recording.calls
    assert found.case == case
    assert found.at.startswith(("tests/integration/", __file__))


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_every_function_is_seen_under_every_name(function, replaced):
    with (
        strategies.replace_torch() if replaced else strategies.record(),
        strategies.record() as recording,
    ):
        called(function, A)
    (call,) = recording.calls
    assert call.function == str(function)
    assert call.forward > 0


def test_a_replaced_function_is_replaced_while_it_is_recorded():
    with strategies.replace_torch(), strategies.record() as recording:
        inverse = torch.linalg.inv(A.clone().requires_grad_())
        inverse.sum().backward()
    assert "FastPath" in inverse.grad_fn.name()
    (call,) = recording.calls
    assert (call.count, call.backwards) == (1, 1)


@pytest.mark.parametrize(
    "call",
    [
        torch.linalg.inv,
        torch.linalg.slogdet,
        torch.logdet,
        lambda M: torch.linalg.matrix_power(M, -3),
        lambda M: torch.linalg.lu(M).L,
        lambda M: linalg.lu(M, strategy="triangular_solve"),
        lambda M: linalg.slogdet(M),  # noqa: PLW0108 - looked up at the call
    ],
)
def test_backwards_are_counted_and_timed(call):
    matrix = A.clone().requires_grad_()
    with strategies.record() as recording:
        for _ in range(3):
            found = call(2 * matrix)
            part = found if isinstance(found, torch.Tensor) else found[1]
            part.sum().backward()
    assert sum(each.count for each in recording.calls) == 3
    assert sum(each.backwards for each in recording.calls) == 3
    assert sum(each.backward for each in recording.calls) > 0
    assert matrix.grad is not None


def test_backwards_of_many_calls_are_taken_from_some(monkeypatch):
    monkeypatch.setattr(tally, "_FIRST", 2)
    matrix = A.clone().requires_grad_()
    with strategies.record() as recording:
        for _ in range(30):
            torch.linalg.inv(matrix).sum().backward()
    (call,) = recording.calls
    assert (call.count, call.backwards) == (30, 30)


def test_neither_gradients_nor_second_derivatives_are_touched():
    def derivatives():
        matrix = A.clone().requires_grad_()
        (first,) = torch.autograd.grad(torch.linalg.inv(matrix).sum(), matrix, create_graph=True)
        return first, *torch.autograd.grad(first.square().sum(), matrix)

    expected = derivatives()
    with strategies.record():
        found = derivatives()
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_backward_after_the_block_is_not_counted():
    matrix = A.clone().requires_grad_()
    with strategies.record() as recording:
        inverse = torch.linalg.inv(matrix)
    inverse.sum().backward()
    assert recording.calls[0].backwards == 0


def test_what_fails_is_not_counted():
    with strategies.record() as recording, pytest.raises(RuntimeError):
        torch.linalg.inv(torch.zeros(2, 2))
    assert recording.calls == ()


def test_transforms_and_compiled_functions_run():
    with strategies.record() as recording:
        torch.vmap(torch.linalg.inv)(torch.stack((A, A)))
        torch.func.jacrev(torch.linalg.det)(A)
        compiled = torch.compile(torch.linalg.inv, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(A), torch.linalg.inv(A))
    assert {call.function for call in recording.calls} == {"torch.linalg.inv", "torch.linalg.det"}


def test_what_a_strategy_calls_is_not_the_programs():
    with strategies.record() as recording:
        with strategies.use("qr_pinv"):
            looked_up_before(A.clone().requires_grad_()).LU.sum().backward()
        strategies.get("native").factor(A)
    assert recording.calls == ()


looked_up_before = linalg.lu_factor


def test_recordings_nest_and_leave_nothing_behind():
    before = dict(vars(linalg))
    with strategies.record() as outer:
        with strategies.record() as inner:
            linalg.inv(A)
        linalg.inv(A)
    assert sum(call.count for call in outer.calls) == 2
    assert sum(call.count for call in inner.calls) == 1
    assert dict(vars(linalg)) == before


def test_other_threads_are_not_recorded_and_run():
    with strategies.record() as recording:
        thread = threading.Thread(target=linalg.inv, args=(A,))
        thread.start()
        thread.join()
    assert recording.calls == ()


def test_the_share_is_of_the_time_that_was_recorded():
    with strategies.record() as recording:
        torch.linalg.inv(A)
    (call,) = recording.calls
    assert 0 < call.seconds < recording.seconds
    *_, last = str(recording).splitlines()
    assert last.endswith("are of these calls")

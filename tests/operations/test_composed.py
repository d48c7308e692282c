"""Functions made of other operations, and those that report singular matrices, beside PyTorch's."""

import pytest
import torch
from arguments import ours_and_torchs
from comparison import drawn, error_of, require_alike, with_gradients
from operations import ALL_DTYPES, each_dtype
from torch.autograd import gradcheck, gradgradcheck

import strategies
from strategies import linalg

SQUARE, RHS = drawn(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64), drawn(2, 3, 2, seed=1)
CALLS = {
    "inv_ex": (SQUARE,),
    "inv_ex of one matrix": (SQUARE[0],),
    "inv_ex of no matrix": (SQUARE[:0],),
    "solve_ex": (SQUARE, RHS),
    "solve_ex of one matrix": (SQUARE[0], RHS[0]),
    "solve_ex of no matrix": (SQUARE[:0], RHS[:0]),
    "inverse": (SQUARE.unsqueeze(1),),
    "pinverse": (SQUARE,),
    "logdet": (SQUARE,),
    "matrix_power": (SQUARE, -3),
    "matrix_power above zero": (SQUARE, 2),
    "tensorinv": (drawn(2, 4, 4, 2), 2),
    "tensorinv of a matrix": (drawn(4, 4), 1),
    "tensorsolve": (drawn(2, 3, 6), drawn(2, 3)),
    "tensorsolve of dims": (drawn(3, 2, 2, 3, 1, seed=4), drawn(2, 3, 1), (0, 2)),
}
each_call = pytest.mark.parametrize("call", CALLS)
each_strategy = pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
each_report = pytest.mark.parametrize("name", ["inv_ex", "solve_ex"])


def arguments_of(call, dtype=torch.float64):
    """Leaves, and what is no tensor."""
    phase = 1 + 0.5j if dtype.is_complex else 1
    return [
        (a * phase).to(dtype).requires_grad_() if isinstance(a, torch.Tensor) else a
        for a in CALLS[call]
    ]


@each_call
@each_strategy
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_values_and_gradients_are_those_of_torch(call, strategy, dtype):
    calls = ours_and_torchs(call.split()[0], strategy=strategy)
    require_alike(*calls, *arguments_of(call, dtype))


@each_call
@each_dtype
def test_derivatives_are_right_in_all_modes(call, dtype):
    def function(*arguments):
        found = getattr(linalg, call.split()[0])(*arguments)
        return found[0] if isinstance(found, tuple) else found

    arguments = arguments_of(call, dtype)
    assert gradcheck(function, arguments, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, arguments, check_fwd_over_rev=True)


@each_report
def test_vmap_equals_the_batched_call(name):
    ours, of_torch = ours_and_torchs(name)
    found, due = torch.vmap(ours)(*CALLS[name]), of_torch(*CALLS[name])
    torch.testing.assert_close(tuple(found), tuple(due))


def singular(name):
    A, *rest = (each.repeat(2, 1, 1, 1) for each in CALLS[name])
    A[1, 0, 2] = 0
    return (A, *rest)


@each_report
@each_strategy
def test_a_singular_matrix_is_reported_where_torch_reports_it(name, strategy):
    inputs = [each.requires_grad_() for each in singular(name)]
    ours, of_torch = ours_and_torchs(name, strategy=strategy)
    result, info, *gradients = with_gradients(ours, *inputs)
    assert info.tolist() == [[0, 0], [3, 0]]
    is_regular = info == 0
    due, *_ = of_torch(*inputs)
    torch.testing.assert_close(result[is_regular], due[is_regular])
    assert not result[~is_regular].isfinite().any()
    assert gradients[0][0].isfinite().all()
    assert not gradients[0][~is_regular].isfinite().any()


@each_report
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 4, 6, 20])
def test_the_pivot_that_lapack_finds_to_be_zero_is_reported(name, n, dtype):
    A, B = drawn(9, n, n, dtype=dtype), drawn(9, n, 2, dtype=dtype)
    A[1], A[2, n // 2], A[3, :, -1] = 0, 0, A[3, :, 0]
    A[4] = 1e-30 * A[2]
    inputs = (A, B) if name == "solve_ex" else (A,)
    for given in (inputs, [each[2] for each in inputs], [each[4] for each in inputs]):
        found, due = (function(*given) for function in ours_and_torchs(name))
        assert torch.equal(found.info, due.info)


@each_report
def test_checked_errors_are_torchs(name):
    found, due = (
        error_of(function, *singular(name), check_errors=True) for function in ours_and_torchs(name)
    )
    assert found == due
    assert found[0] is torch.linalg.LinAlgError


def test_logarithms_of_negative_and_zero_determinants():
    A = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]])
    assert linalg.logdet(A).isnan().tolist() == [True, False]
    assert linalg.logdet(A)[1] == -torch.inf


@pytest.mark.parametrize("rcond", [1e-15, 1e-2])
def test_the_tolerance_of_pinverse(rcond):
    diagonal = torch.diag(torch.tensor([1.0, 1e-3], dtype=torch.float64))
    found, due = (each(diagonal, rcond) for each in (linalg.pinverse, torch.pinverse))
    torch.testing.assert_close(found, due)

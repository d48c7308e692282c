"""What bad input gets, for every operation and strategy."""

import itertools
import math
import re

import pytest
import torch
from comparison import error_of
from operations import ALL_DTYPES, ANY_RANK, OPERATIONS, STRATEGIES

import strategies
from strategies import linalg

FULL_RANK_ONLY = [name for name in STRATEGIES if name not in ANY_RANK]
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
DEFICIENT = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=torch.float64)


OF_MATRIX = {
    "pinv": linalg.pinv,
    "lstsq": lambda A, **by: linalg.lstsq(A, A, **by).solution,
    "inv": linalg.inv,
    "solve": lambda A, **by: linalg.solve(A, A, **by),
}


SIDES = {
    "another dtype": torch.ones(3, 1, dtype=torch.float64),
    "other rows": torch.ones(4, 1),
    "another batch": torch.ones(2, 2, 4),
    "nothing": None,
}
REFUSED = {
    "a vector": lambda of: (torch.ones(3),) * of.arity,
    "integers": lambda of: (torch.ones(3, 3, dtype=torch.int64),) * of.arity,
    "no tensor": lambda of: ([[1.0]],) * of.arity,
    "nothing": lambda of: (None,) * of.arity,
    "a factor that is not square": lambda of: (
        (torch.ones(3, 2), torch.ones(3, 1))[: of.arity] if of.square and of.native else ()
    ),
    **{
        f"{kind} beside {name}": lambda of, A=A, B=B: (A, B) if of.arity == 2 else ()
        for kind, B in SIDES.items()
        for name, A in (("a matrix", torch.eye(3)), ("no matrix", torch.empty(0, 3, 3)))
    },
}


@each_strategy
@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_fit_gets_the_error_of_torch(kind, strategy):
    for operation in OPERATIONS:
        if inputs := REFUSED[kind](operation):
            error, words = error_of(operation.of_torch, *inputs)
            with pytest.raises(error, match=re.escape(re.match(r"[^,({]*", words)[0])):
                operation.function(*inputs, strategy=strategy)


@each_strategy
def test_a_square_operation_names_the_shape_that_is_not(strategy):
    for operation in (each for each in OPERATIONS if each.square and not each.native):
        for batch in ((), (0,)):
            inputs = (torch.ones(*batch, 3, 2),) * operation.arity
            with pytest.raises(RuntimeError, match=r"square.*3 by 2"):
                operation.function(*inputs, strategy=strategy)


@each_strategy
@pytest.mark.parametrize("name", ["inv", "solve"])
def test_a_singular_matrix_names_strategy_and_batch_element_as_torch_counts(name, strategy):
    for n, dtype in itertools.product(range(1, 10), ALL_DTYPES):
        A = torch.eye(n, dtype=dtype).repeat(2, 3, 1, 1)
        A[1, 1, -1] = 0
        said = rf"linalg\.\w+:.*element 4.*'{strategy}'"
        with pytest.raises(torch.linalg.LinAlgError, match=said):
            OF_MATRIX[name](A, strategy=strategy)


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 9, 20])
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("name", ["inv", "solve"])
def test_a_singular_matrix_is_refused_where_torch_eliminates_to_zero(name, dtype, n):
    refused = 0
    for matrix in torch.randint(-3, 4, (60, n, n)).to(dtype):
        matrix[:, -1] = matrix[:, :-1].sum(1)  # its last pivot is zero or roundoff
        refusals = []
        for module in (linalg, torch.linalg):
            try:
                getattr(module, name)(matrix, *[matrix] * (name == "solve"))
                refusals.append(False)
            except torch.linalg.LinAlgError:
                refusals.append(True)
        assert refusals[0] is refusals[1], matrix
        refused += refusals[0]
    assert refused or n > 8


@pytest.mark.parametrize("strategy", FULL_RANK_ONLY)
@pytest.mark.parametrize("name", ["pinv", "lstsq"])
def test_rank_deficient_input_names_strategies_that_take_it(name, strategy):
    with pytest.raises(torch.linalg.LinAlgError, match=f"{name}.*'{strategy}'.*qr_pinv"):
        OF_MATRIX[name](DEFICIENT, strategy=strategy)


@each_strategy
@pytest.mark.parametrize("entry", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", OF_MATRIX)
def test_what_is_made_of_nan_or_inf_is_nan_or_refused_as_in_torch(name, entry, strategy):
    A = torch.randn(3, 4, 4, dtype=torch.float64)
    A[1, 2, 3] = entry
    A.requires_grad_()
    if name in ("pinv", "lstsq") and math.isnan(entry):
        with pytest.raises(torch.linalg.LinAlgError, match="non-finite"):
            OF_MATRIX[name](A, strategy=strategy)
    else:
        result = OF_MATRIX[name](A, strategy=strategy)
        for each in (result, *torch.autograd.grad(result.sum(), A)):
            assert each[::2].isfinite().all()
            assert each[1].isnan().all()


NOT_FINITE = [
    [[torch.inf], [1.0], [2.0]],
    [[1.0, 2.0], [torch.nan, 3.0]],
    [[1.0, torch.inf, 2.0], [3.0, 4.0, 5.0]],
    [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, torch.nan]],
]


@each_strategy
def test_lu_of_nan_or_inf_is_that_of_torch_and_its_gradient_is_nan(strategy):
    for rows in NOT_FINITE:
        A = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
        found, expected = linalg.lu_factor_ex(A, strategy=strategy), torch.linalg.lu_factor_ex(A)
        torch.testing.assert_close(tuple(found), tuple(expected), equal_nan=True)
        found.LU.sum().backward()
        assert A.grad.isnan().all()


@each_strategy
def test_nan_stays_in_its_matrix_and_is_no_error_beside_the_pivots_of_a_wide_one(strategy):
    A = torch.eye(3).repeat(3, 1, 1)
    A[1, 2, 0] = torch.nan
    A[2] = 1  # of rank one
    A.requires_grad_()
    linalg.lu_factor_ex(A, strategy=strategy).LU.sum().backward()
    assert A.grad.isnan().flatten(1).any(-1).tolist() == [False, True, False]
    wide = torch.tensor([[2.0, 3.0, torch.nan]], requires_grad=True)
    linalg.lu_factor_ex(wide, strategy=strategy).LU[..., :2].sum().backward()
    assert wide.grad.tolist() == [[1.0, 1.0, 0.0]]


@each_strategy
def test_lu_factor_of_a_zero_matrix_raises_as_in_torch_and_the_ex_form_reports(strategy):
    A = torch.zeros(1, 2, 3, 3)
    A[0, 0] = torch.eye(3)
    with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 1\).*U\[1,1\]"):
        linalg.lu_factor(A, strategy=strategy)
    assert linalg.lu_factor_ex(A, strategy=strategy).info.tolist() == [[0, 1]]
    with pytest.raises(torch.linalg.LinAlgError):
        linalg.lu_factor_ex(A, check_errors=True, strategy=strategy)


@each_strategy
def test_lu_with_dependent_leading_columns_has_no_gradient_and_says_so(strategy):
    A = torch.tensor([[0.0, 1.0], [0.0, 2.0]], requires_grad=True)
    _, L, U = linalg.lu(A, strategy=strategy)
    with pytest.raises(torch.linalg.LinAlgError, match="linearly dependent"):
        (L.sum() + U.sum()).backward()


@each_strategy
def test_slogdet_of_a_singular_matrix_has_a_value_and_no_gradient(strategy):
    A = torch.zeros(2, 2, requires_grad=True)
    logabsdet = linalg.slogdet(A, strategy=strategy).logabsdet
    assert logabsdet == -torch.inf
    with pytest.raises(torch.linalg.LinAlgError, match=r"slogdet.*singular"):
        logabsdet.backward()


@each_strategy
def test_lapack_drivers_are_left_to_native(strategy):
    with pytest.raises(strategies.UnsupportedError, match=r"gelsd.*native"):
        linalg.lstsq(torch.ones(3, 1), torch.ones(3, 1), driver="gelsd", strategy=strategy)


@pytest.mark.parametrize(
    ("choice", "error", "said"),
    [
        ("triangular_solver", strategies.StrategyNotFoundError, "triangular_solve"),
        *((each, TypeError, "name or a Strategy") for each in (None, 3, ["fused"])),
    ],
)
def test_what_is_no_strategy_is_named(choice, error, said):
    with pytest.raises(error, match=said):
        linalg.inv(torch.eye(2), strategy=choice)


@pytest.mark.parametrize("name", ["pinv", "lstsq"])
def test_the_default_takes_any_rank(name):
    call = OF_MATRIX[name]
    torch.testing.assert_close(call(DEFICIENT), call(DEFICIENT, strategy="svd_truncated_pinv"))

"""What PyTorch refuses is refused in its words, by the functions that take no part in measurements."""

import pytest
import torch
from arguments import ours_and_torchs
from comparison import error_of

EYE, INTEGERS = torch.eye(2), torch.eye(2).long()
BATCH, PIVOTS = EYE.expand(2, 2, 2), torch.ones(2).int()
NO_SQUARES = [torch.ones(2, 3), torch.ones(3), torch.ones(2, 2).long()]
REFUSED = {
    "solve": [(EYE.half(), torch.ones(2, 1))],
    "eig": [(A,) for A in NO_SQUARES],
    "inv_ex": [(A,) for A in NO_SQUARES],
    "solve_ex": [(A, A) for A in NO_SQUARES],
    "qr": [(torch.ones(3),), (torch.ones(2, 2).int(),), (EYE, "full")],
    "logdet": [(torch.ones(2, 3),)],
    "matrix_power": [(torch.ones(2, 3), -1)],
    "tensorinv": [
        *((torch.ones(2, 3, 5), 1), (torch.ones(2, 2), 0), (torch.ones(2, 2), 3), ([1.0],)),
        # More rows than there are dimensions.
        *((torch.ones([1] * count), count + 1) for count in range(3)),
    ],
    "tensorsolve": [
        (torch.ones(2, 3, 5), torch.ones(2, 3)),
        (torch.ones(2, 2), torch.ones(2, dtype=torch.float64)),
        *((EYE, [1.0]), ([1.0], EYE)),
    ],
    "solve_triangular": [
        (torch.ones(2, 3), torch.ones(2, 1)),
        (EYE, torch.ones(3, 1)),
        (EYE, torch.ones(2)),
        (BATCH, torch.ones(3, 2, 1)),
        (INTEGERS, torch.ones(2, 1).long()),
        *((BATCH, B) for B in (torch.tensor(1.0), torch.ones(2), [1.0])),
    ],
    "lu_solve": [
        # Pivots beyond the matrix.
        *(
            (BATCH, torch.tensor([[1, 2], [1, pivot]]).int(), torch.ones(2, 2, 1))
            for pivot in (-3, 0, 4)
        ),
        (torch.ones(2, 3), PIVOTS, torch.ones(2, 1)),
        (EYE, PIVOTS.long(), torch.ones(2, 1)),
        (EYE, torch.ones(3).int(), torch.ones(2, 1)),
        (EYE, PIVOTS, torch.ones(3, 1)),
        (EYE, PIVOTS, torch.ones(2)),
        (EYE, PIVOTS, torch.ones(2, 1).double()),
        (BATCH, torch.ones(2, 2).int(), torch.ones(3, 2, 1)),
        (INTEGERS, PIVOTS, torch.ones(2, 1).long()),
    ],
}


@pytest.mark.parametrize("strategy", ["auto", "triangular_solve"])
@pytest.mark.parametrize(("name", "inputs"), [(n, i) for n, each in REFUSED.items() for i in each])
def test_what_torch_refuses_is_refused_in_its_words(name, inputs, strategy):
    ours, of_torch = ours_and_torchs(name, strategy=strategy)
    assert error_of(ours, *inputs) == error_of(of_torch, *inputs)


@pytest.mark.parametrize("tolerance", ["atol", "rtol"])
def test_complex_tolerances_are_refused_in_its_words(tolerance):
    options = {tolerance: torch.tensor(0j)}
    ours, of_torch = ours_and_torchs("pinv")
    assert error_of(ours, EYE, **options) == error_of(of_torch, EYE, **options)

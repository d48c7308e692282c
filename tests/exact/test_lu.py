import pytest
import torch

from strategies.accuracy import gradient


@pytest.mark.parametrize("operation", ["lu_factor", "lu"])
def test_a_rank_that_only_a_tiny_entry_adds_is_not_certified_away(operation: str) -> None:
    matrix = torch.eye(3, dtype=torch.float64)
    matrix[0, 2] = matrix[2, 0] = 1
    matrix[1, 2] = matrix[2, 1] = 2.0**-130
    cotangents = (matrix,) if operation == "lu_factor" else (matrix, matrix)
    with pytest.raises(ValueError, match="rank 3, not 2"):
        gradient(operation, (matrix,), cotangents, rank=2)

"""LU: backward of `torch.linalg.lu_factor`."""

from benchmarks import grid, suite


class Single(suite.Measured):
    """One matrix without a batch dimension."""

    operation = "lu_factor"
    params = grid.CHOSEN.single[operation].params


class Batched(suite.Measured):
    """Many small matrices at once."""

    operation = "lu_factor"
    params = grid.CHOSEN.batched[operation].params


class Conditioning(suite.Conditioned):
    """One matrix, better and worse conditioned."""

    operation = "lu_factor"
    params = grid.CHOSEN.conditioned_params(operation)

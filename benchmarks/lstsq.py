"""Least squares: backward of the solution of `torch.linalg.lstsq`."""

from benchmarks import grid, suite


class Single(suite.Measured):
    """One matrix without a batch dimension."""

    operation = "lstsq"
    params = grid.CHOSEN.single[operation].params


class Batched(suite.Measured):
    """Many small matrices at once."""

    operation = "lstsq"
    params = grid.CHOSEN.batched[operation].params


class Conditioning(suite.Conditioned):
    """One matrix, better and worse conditioned."""

    operation = "lstsq"
    params = grid.CHOSEN.conditioned_params(operation)


class Sizes(suite.Conditioned):
    """One matrix, smaller and larger, with the condition number that times are taken at."""

    operation = "lstsq"
    params = grid.CHOSEN.sized_params(operation)


class Gallery(suite.Judged):
    """One matrix that is hard in a way of its own."""

    operation = "lstsq"
    params = grid.CHOSEN.gallery[operation].params

"""Linear systems: backward of `torch.linalg.solve`."""

from benchmarks import grid, suite


class Single(suite.Measured):
    """One matrix without a batch dimension."""

    operation = "solve"
    params = grid.CHOSEN.single[operation].params


class Batched(suite.Measured):
    """Many small matrices at once."""

    operation = "solve"
    params = grid.CHOSEN.batched[operation].params


class Conditioning(suite.Conditioned):
    """One matrix, better and worse conditioned."""

    operation = "solve"
    params = grid.CHOSEN.conditioned_params(operation)


class Sizes(suite.Conditioned):
    """One matrix, smaller and larger, with the condition number that times are taken at."""

    operation = "solve"
    params = grid.CHOSEN.sized_params(operation)


class Gallery(suite.Judged):
    """One matrix that is hard in a way of its own."""

    operation = "solve"
    params = grid.CHOSEN.gallery[operation].params

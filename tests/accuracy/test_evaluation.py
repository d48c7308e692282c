import numpy as np
import torch

from strategies import operations
from strategies.accuracy.evaluation import certify, evaluate
from strategies.exact.problem import Problem, StoredFactors
from strategies.formulas.domains import GENERAL


def _random_problem(record, seed):
    rng = np.random.default_rng(seed)
    m, n = (int(size) for size in rng.integers(1, 9, 2))
    n = m if record.square else n
    dtype = (np.float32, np.float64, np.complex64, np.complex128)[seed % 4]
    spread = 20 if record.domain is GENERAL else 2  # what is rounded stays positive definite

    def draw(*shape):
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread, shape)
        if np.issubdtype(dtype, np.complexfloating):
            values = values + 1j * rng.standard_normal(shape)
        return np.asarray(values, dtype=dtype)

    shapes = ((m, n), (m, 2))[: record.arity]
    inputs = [draw(*shape) for shape in shapes]
    wide = torch.from_numpy(inputs[0].astype(np.result_type(dtype, np.float64)))
    inputs[0] = record.domain.member(wide).numpy().astype(dtype)
    return (StoredFactors if record.pivoted and seed % 3 == 0 else Problem)(
        tuple(inputs),
        tuple(draw(*shape) for shape in record.output_shapes(*shapes)),
        min(m, n),
        rng.permutation(m) if record.pivoted else None,
    )


def test_right_to_its_certificate_at_double_the_precision():
    for record in map(operations.get, operations.names()):
        for seed in range(24):
            problem = _random_problem(record, seed)
            certified = certify(problem, record.exact)
            better = evaluate(problem, record.exact, 2 * certified.bits)
            assert certified.radius <= 2.0**-20 * np.finfo(problem.matrix.dtype).eps / 2
            for part, other in zip(certified.parts, better.parts, strict=True):
                assert part.exponent == other.exponent
                difference = np.linalg.norm((part.high - other.high) + (part.low - other.low))
                norm = np.linalg.norm(other.high)
                assert difference <= (certified.radius + better.radius) * norm

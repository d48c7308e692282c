"""Right for numbers near one, and wrong where intermediate results leave the range of the dtype."""

import torch

from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import Dense, Triangular
from zoo.register import Sound, caught_by, spoils


@caught_by("scales of slogdet")
class DividesByTheDeterminant(Sound):
    def det_backward(self, factors, scale):
        pivots = factors.LU.diagonal(dim1=-2, dim2=-1).prod(-1)
        return super().det_backward(factors, scale * pivots) / pivots[..., None, None]


@caught_by("scales of inv")
class RegularizesAbsolutely(TriangularSolve):
    def factor_square(self, matrix):
        eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        return super().factor_square(matrix + 1e-30 * eye)


@caught_by("triangular structures", "scales of solve_triangular", "scales of lu_solve")
class FloorsTheDiagonal(TriangularSolve):
    def factor_triangular(self, matrix, structure):
        floor = matrix.new_tensor(torch.finfo(matrix.dtype).tiny).sqrt()
        is_small = matrix.diagonal(dim1=-2, dim2=-1).abs() < floor.real
        return Triangular(matrix + torch.diag_embed(floor * is_small), structure)


def _by_cofactors(matrix):
    a, b, c, d = matrix.flatten(-2).unbind(-1)
    cofactors = torch.stack([d, -b, -c, a], -1).view(matrix.shape)
    return Dense.nonsingular(matrix, cofactors / (a * d - b * c)[..., None, None])


@spoils("inv_forward", "graded diagonals in inv")
def inverts_two_rows_by_cofactors(right, matrix):
    if matrix.shape[-1] != 2:
        return right
    inverse = _by_cofactors(matrix)
    return inverse.dense(), inverse


@spoils("factor_triangular", "graded diagonals in solve_triangular")
def inverts_two_rows_of_a_triangle_by_cofactors(right, matrix, structure):
    return right if matrix.shape[-1] != 2 else _by_cofactors(structure.dense(matrix))

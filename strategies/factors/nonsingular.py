"""Square nonsingular matrices by their factors, solved against."""

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.dense import InverseMatrix
from strategies.factors.elimination import lu_solve
from strategies.factors.pseudo_inverse import Nonsingular, PseudoInverse, Structure

_BLOCK = 128  # rows up to which two solves for the identity take less time than blocks, as measured


@dataclass(frozen=True, eq=False)
class DenseInverse(InverseMatrix, Nonsingular):
    """F⁻¹ formed as a matrix, without F.

    Example:
        >>> DenseInverse(torch.tensor([[0.5]])).apply(torch.tensor([[4.0]]))
        tensor([[2.]])
    """

    inverse: Tensor


@dataclass(frozen=True, eq=False)
class LUFactors(Nonsingular):
    """F⁻¹ of F = P L U, by two triangular solves (LAPACK getrs).

    Example:
        >>> F = torch.tensor([[0.0, 2.0], [4.0, 0.0]])
        >>> LUFactors(*torch.linalg.lu_factor(F)).apply(torch.tensor([[4.0], [8.0]])).flatten()
        tensor([2., 2.])
    """

    LU: Tensor
    pivots: Tensor

    def solve(self, c: Tensor) -> Tensor:
        return lu_solve(self.LU, self.pivots, c)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return lu_solve(self.LU, self.pivots, x, adjoint=True)


@dataclass(frozen=True, eq=False)
class Triangular(Nonsingular):
    """F⁻¹ of a triangular F, by substitution.

    Only the triangle that `structure` names is read. Made of differentiable solves only.

    Example:
        >>> U = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
        >>> Triangular(U, Structure.UPPER).apply(torch.tensor([[4.0], [8.0]])).flatten()
        tensor([1., 2.])
    """

    factor: Tensor
    structure: Structure

    def solve(self, c: Tensor) -> Tensor:
        is_upper, is_unit = self.structure.is_upper, self.structure.is_unit
        return torch.linalg.solve_triangular(self.factor, c, upper=is_upper, unitriangular=is_unit)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        is_lower, is_unit = not self.structure.is_upper, self.structure.is_unit
        return torch.linalg.solve_triangular(
            self.factor.mH, x, upper=is_lower, unitriangular=is_unit
        )


@dataclass(frozen=True, eq=False)
class Product(Nonsingular):
    """(F G)⁻¹ from F⁻¹ and G⁻¹.

    Example:
        >>> half, third = DenseInverse(torch.tensor([[1 / 2]])), DenseInverse(torch.tensor([[1 / 3]]))
        >>> Product(half, third).dense()
        tensor([[0.1667]])
    """

    left: PseudoInverse
    right: PseudoInverse

    def solve(self, c: Tensor) -> Tensor:
        return self.right.apply(self.left.apply(c))

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.left.apply_adjoint(self.right.apply_adjoint(x))

    def dense(self) -> Tensor:
        return self.right.apply(self.left.dense())


@dataclass(frozen=True, eq=False)
class CholeskyFactor(Nonsingular):
    """F⁻¹ of F = L Lᴴ, by two triangular solves.

    Example:
        >>> F = torch.tensor([[4.0, 2.0], [2.0, 5.0]])
        >>> CholeskyFactor(torch.linalg.cholesky(F)).apply(torch.tensor([[6.0], [7.0]])).flatten()
        tensor([1., 1.])
    """

    factor: Tensor

    def solve(self, c: Tensor) -> Tensor:
        # torch.cholesky_solve copies the factor at every call.
        triangle = Triangular(self.factor, Structure.LOWER)
        return triangle.solve_adjoint(triangle.solve(c))

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.solve(x)

    def dense(self) -> Tensor:
        """F⁻¹, Hermitian, (..., n, n), in 5n³/6 operations for the 2n³ of two solves.

        With S the inverse for the trailing block, L₂₂, and Y = L₂₁ L₁₁⁻¹

            F⁻¹ = [ (L₁₁L₁₁ᴴ)⁻¹ + Yᴴ S Y   −Yᴴ S ]
                  [ −S Y                    S    ],

        which is the inverse of a product of two block triangles, and halves the size.
        """
        L, n = self.factor, self.factor.shape[-1]
        if n <= _BLOCK:
            triangle = Triangular(L, Structure.LOWER).dense()
            return triangle.mH @ triangle
        half = n // 2
        L11, L21, L22 = L[..., :half, :half], L[..., half:, :half], L[..., half:, half:]
        S, first = CholeskyFactor(L22).dense(), CholeskyFactor(L11).dense()
        Y = torch.linalg.solve_triangular(L11, L21, upper=False, left=False)
        SY = S @ Y
        first += Y.mH @ SY
        SY.neg_()
        rows = torch.cat((first, SY.mH), -1), torch.cat((SY, S), -1)
        return torch.cat(rows, -2)

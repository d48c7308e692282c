"""A⁺ at full rank as an expression that is smooth and accurate to every order.

Let A = Q R at the point where derivatives are wanted, (..., m, n) with m ≥ n, and R be constant. Then

    A = B R,    B = Q + (A − A₀) R⁻¹,    A⁺ = R⁻¹ B⁺ = R⁻¹ (BᴴB)⁻¹ Bᴴ

for every A of full rank, with A₀ that point. B is A preconditioned by its own factor: its columns are
orthonormal there, so that no derivative of B⁺ amplifies errors. The condition of A is that of R⁻¹, which is
constant; by substitution it is accurate for columns of different sizes, as R is (Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd ed., 2002, sections 14.2 and 19.3).

Written over A and A⁺ instead, second derivatives have products as A dA⁺, where A meets its own inverse:
each costs the digits of the condition, where the derivative itself may have all of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.elimination import inv
from strategies.factors.householder import is_batch_on_cuda, qr
from strategies.factors.nonsingular import DenseInverse, Product, Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure, full_rank
from strategies.formulas.powers_of_two import equilibrate, times_power_of_two
from strategies.formulas.values import with_values
from strategies.kernels.memory import is_materializable

_functorch = torch._C._functorch


@dataclass(frozen=True, eq=False)
class Preconditioned(PseudoInverse):
    """(B R)⁺ of full column rank, differentiable in B alone, by B, (BᴴB)⁻¹ and the constant R⁻¹.

    The coordinates of the range are those in the columns of B. Of square matrices it is a product, which
    keeps its digits where rows and columns differ in size.
    """

    near_basis: Tensor
    gram_inverse: Tensor
    core: Tensor

    full_column_rank = True
    full_row_rank = False

    @classmethod
    def of(cls, A: Tensor) -> PseudoInverse:
        """That of A, (..., m, n), of full rank."""
        m, n = A.shape[-2:]
        if m < n:
            return cls.of(A.mH).adjoint
        if m == n:
            return _of_square(A)
        Q, R = _qr(A.detach())
        core = Triangular(R, Structure.UPPER).dense()
        B = with_values(A @ core, Q)
        return cls(B, inv(B.mH @ B), core)

    @property
    def rank(self) -> Tensor:
        return full_rank(self.near_basis)

    def to_range(self, b: Tensor) -> Tensor:
        return self.gram_inverse @ (self.near_basis.mH @ b)

    def from_range(self, c: Tensor) -> Tensor:
        return self.near_basis @ c

    def solve(self, c: Tensor) -> Tensor:
        return self.core @ c

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.gram_inverse @ (self.core.mH @ x)

    def dense(self) -> Tensor:
        return self.solve(self.gram_inverse @ self.near_basis.mH)


def _of_square(A: Tensor) -> PseudoInverse:
    """The same of A = 2^rows · B R · 2^columns, since Q R is not exact for rows of different sizes."""
    near, rows, columns = equilibrate(A.detach())
    Q, R = _qr(near)
    core = Triangular(R, Structure.UPPER).dense()
    B = with_values(times_power_of_two(A, -rows.unsqueeze(-1) - columns.unsqueeze(-2)) @ core, Q)
    inverse = inv(B.mH @ B) @ B.mH  # by an elimination of B it would grow as that of A does
    return Product(
        DenseInverse(times_power_of_two(inverse, -rows.unsqueeze(-2))),
        DenseInverse(times_power_of_two(core, -columns.unsqueeze(-1))),
    )


def _qr(A: Tensor) -> tuple[Tensor, Tensor]:
    if is_batch_on_cuda(A) and values_of(A) is None:
        Q, R = torch.linalg.qr(A)
        return Q, R
    return qr(A)


def values_of(A: Tensor) -> Tensor | None:
    """A below the transforms, without derivatives; None under `vmap`, and where it has no memory.

    Example:
        >>> torch.func.grad(lambda A: A * bool(values_of(A) > 2))(torch.tensor(3.0))
        tensor(1.)
    """
    while _functorch.is_functorch_wrapped_tensor(A):
        if _functorch.is_batchedtensor(A):
            return None
        A = _functorch.get_unwrapped(A)
    return A.detach() if is_materializable(A) else None


def fullness(inverse: PseudoInverse, like: Tensor) -> Tensor:
    """Whether all matrices have full rank, (..., 1) if so and (..., 0) if not.

    By a shape, which, unlike a value, can be asked for under `vmap`.
    """
    m, n = like.shape[-2:]
    is_full = inverse.full_column_rank if m >= n else inverse.full_row_rank
    return like.new_empty(*like.shape[:-2], int(is_full))

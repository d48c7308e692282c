"""What a factor does."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from strategies.autograd.half_precision import HALF, is_autocast
from strategies.autograd.nodes import is_transformed
from strategies.autograd.tracing import is_traced, special
from strategies.errors import UnsupportedError
from strategies.factorization import nodes, operators
from strategies.factorization.kinds import Form
from strategies.operations.results import SlogdetResult
from strategies.operations.right_hand_sides import folded, is_vector


class InvQuadLogdet(NamedTuple):
    """What `Factor.inv_quad_logdet` returns: Σ yᴴA⁻¹y over the columns y, and log|det A|."""

    inv_quad: Tensor
    logdet: Tensor


class Factor:
    """A factored matrix, or a batch of them: what `strategies.factor` returns.

    All methods are differentiable in the matrix and in right-hand sides. The cotangents of all uses are
    accumulated as outer products, and pulled back to the matrix once. It keeps the matrix. A copied or
    pickled factor is that of a constant.

    Raises:
        RuntimeError: from every method, if the matrix was changed in place since it was factored.
        UnsupportedError: from determinants, if the kind has none.

    Attributes:
        kind: of the factorization: "lu", "spd", "qr" or "svd".
        shape: of the matrices, (..., m, n).
        dtype: of results.
    """

    def __init__(
        self, form: Form, matrix: Tensor, held: tuple[Tensor, ...], given: Tensor, has_values: bool
    ) -> None:
        self._form, self._matrix, self._held, self._given = form, matrix, held, given
        self._version = given._version if has_values and not given.is_inference() else None
        self.kind, self.shape = form.kind, matrix.shape
        self.dtype = matrix.dtype if is_autocast(matrix) else given.dtype

    def __repr__(self) -> str:
        return f"<factor '{self.kind}' of {tuple(self.shape)}, {self.dtype}>"

    def __reduce__(self) -> Any:
        held = tuple(each.detach() for each in self._held)
        return Factor, (self._form, self._matrix.detach(), held, self._given.detach(), True)

    @property
    def rank(self) -> Tensor:
        """The rank of each matrix, as decided or stated: int64, (...)."""
        with torch.no_grad():
            return self._form.inverse(self._held, self._matrix).rank

    def solve(self, B: Tensor, *, adjoint: bool = False) -> Tensor:
        """The X with A X = B, or Aᴴ X = B; A square and of full rank.

        Args:
            B: (..., n, k), in a batch that can be broadcast with that of A, or a vector for each matrix,
                (..., n) or (n,), as in `torch.linalg.solve`.
            adjoint: solve with Aᴴ.

        Returns:
            X, of the broadcast shape of B.

        Raises:
            RuntimeError: shape or dtype of B do not fit.
            UnsupportedError: A is not square, or not known to be of full rank; `lstsq` takes any.

        Example:
            >>> import strategies
            >>> f = strategies.factor(torch.tensor([[2.0, 1.0], [0.0, 4.0]]))
            >>> f.solve(torch.tensor([4.0, 8.0])), f.solve(torch.tensor([4.0, 8.0]), adjoint=True)
            (tensor([1., 2.]), tensor([2.0000, 1.5000]))
        """
        m, n = self.shape[-2:]
        is_full = m == n and (
            all(self._form.is_full(self._matrix))
            or (is_plain(self._matrix) and bool((self.rank == n).all()))
        )
        if not is_full:
            raise UnsupportedError(
                f"solve needs square matrices that are known to be of full rank, and this is {self!r}; "
                "lstsq takes any"
            )
        return self.lstsq(B, adjoint=adjoint)

    def lstsq(self, B: Tensor, *, adjoint: bool = False) -> Tensor:
        """A⁺B, the least-squares solution of least norm, or A⁺ᴴB, at constant rank.

        Args:
            B: (..., m, k), or for the adjoint (..., n, k), or vectors, as in `solve`.
            adjoint: of Aᴴ X ≈ B.

        Returns:
            X, (..., n, k), for the adjoint (..., m, k); vectors for vectors.

        Raises:
            RuntimeError: shape or dtype of B do not fit.

        Example:
            >>> import strategies
            >>> f = strategies.factor(torch.tensor([[3.0], [4.0]]))
            >>> f.lstsq(torch.tensor([6.0, 8.0])).round(decimals=4)
            tensor([2.])
        """
        self._check()
        if is_autocast(self._matrix) and isinstance(B, Tensor) and B.dtype in HALF:
            B = B.to(self.dtype)
        like = self._matrix.mT if adjoint else self._matrix
        self._check_rhs(B, like)
        are_vectors = is_vector(like, B)
        columns, restored = folded(like, B.unsqueeze(-1) if are_vectors else B)
        X = restored(self._apply(columns.to(self._matrix.dtype), adjoint))
        return (X.squeeze(-1) if are_vectors else X).to(self.dtype)

    def inverse(self) -> Tensor:
        """A⁻¹ or A⁺, (..., n, m).

        Example:
            >>> import strategies
            >>> strategies.factor(torch.tensor([[4.0]]), "spd").inverse()
            tensor([[0.2500]])
        """
        return self.lstsq(operators.identities(self._matrix, self.shape[-2]).to(self.dtype))

    def slogdet(self) -> SlogdetResult:
        """The sign and the logarithm of the modulus of each determinant, (...).

        Example:
            >>> import strategies
            >>> strategies.factor(torch.tensor([[-1.0]])).slogdet()
            SlogdetResult(sign=tensor(-1.), logabsdet=tensor(0.))
        """
        sign, logabsdet = self._determinant(logarithm=True)
        real = self.dtype.to_real() if self.dtype.is_complex else self.dtype
        return SlogdetResult(sign.to(self.dtype), logabsdet.to(real))

    def logdet(self) -> Tensor:
        """The logarithm of each determinant, (...): NaN where a real one is negative, as `torch.logdet`.

        Example:
            >>> import strategies
            >>> strategies.factor(torch.eye(2) * torch.e, "spd").logdet()
            tensor(2.)
        """
        sign, logabsdet = self.slogdet()
        if self._form.is_hermitian:
            return logabsdet
        if sign.is_complex():
            return sign.log() + logabsdet
        return torch.where(sign == -1, torch.nan, logabsdet)

    def det(self) -> Tensor:
        """Each determinant, (...).

        Example:
            >>> import strategies
            >>> strategies.factor(torch.tensor([[0.0, 2.0], [3.0, 1.0]])).det()
            tensor(-6.)
        """
        return self._determinant(logarithm=False)[0].to(self.dtype)

    def inv_quad_logdet(self, y: Tensor) -> InvQuadLogdet:
        """Σ yᴴA⁻¹y over the columns of y, and log|det A|: what the likelihood of a Gaussian consists of.

        Args:
            y: (..., n, k) or a vector for each matrix, as in `solve`.

        Returns:
            Both real, of the broadcast batch shape and of that of A. Of a matrix that is not Hermitian,
            `inv_quad` is the real part.

        Raises:
            RuntimeError: shape or dtype of y do not fit.

        Example:
            >>> import strategies
            >>> strategies.factor(torch.tensor([[4.0]]), "spd").inv_quad_logdet(torch.tensor([2.0]))
            InvQuadLogdet(inv_quad=tensor(1.), logdet=tensor(1.3863))
        """
        products = y.conj() * self.solve(y)
        columns = products.sum(-1 if is_vector(self._matrix, y) else (-2, -1))
        return InvQuadLogdet(columns.real if columns.is_complex() else columns, self.slogdet()[1])

    def _apply(self, B: Tensor, adjoint: bool) -> Tensor:
        if not is_plain(self._matrix, B):
            return operators.application(self._matrix, B, self._held, self._form, adjoint=adjoint)
        arguments = self._form, adjoint, self._matrix, B, *self._held
        return nodes.Application.apply(*arguments)  # type: ignore[no-untyped-call]

    def _determinant(self, *, logarithm: bool) -> tuple[Tensor, ...]:
        self._check()
        if not is_plain(self._matrix):
            given = self._matrix, self._held, self._form
            return tuple(operators.determinant(*given, logarithm=logarithm))
        arguments = self._form, logarithm, self._matrix, *self._held
        return tuple(nodes.Determinant.apply(*arguments))  # type: ignore[no-untyped-call]

    def _check(self) -> None:
        if self._version is None or is_compiling():
            return
        if self._given._version != self._version:
            raise RuntimeError(
                f"the matrix of {self!r} was changed in place after it was factored: it is at version "
                f"{self._given._version}, and was factored at {self._version}; factor it again, or a copy"
            )

    def _check_rhs(self, B: Tensor, like: Tensor) -> None:
        if not isinstance(B, Tensor):
            raise TypeError(f"right-hand sides are a tensor, not {type(B).__name__}")
        if B.dtype != self.dtype or B.device != self._matrix.device:
            raise RuntimeError(
                f"right-hand sides of {B.dtype} on {B.device} do not go with {self!r} on "
                f"{self._matrix.device}"
            )
        rows = like.shape[-2]
        if B.ndim == 0 or B.shape[-1 if is_vector(like, B) else -2] != rows:
            raise RuntimeError(
                f"right-hand sides of shape {tuple(B.shape)} do not have {rows} rows"
            )


def is_plain(*tensors: Tensor) -> bool:
    """Whether nothing but a backward sees what is computed of these."""
    return not (is_compiling() or is_transformed() or is_traced() or special(tensors))

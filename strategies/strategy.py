"""The shared backward interface: what a strategy is.

A strategy says how an inverse is held and applied, by `factor_tall`. Every operation's backward then
follows from its formula. A strategy knows neither autograd nor the public operations; it computes on
plain tensors, holds no state and gives the same bits for the same input every time.

A strategy with a faster way for one operation has a method `<operation>_forward` or
`<operation>_backward`, which is used in place of the formula. It may return NotImplemented for inputs
for which it has none. The signatures are those of the formulas in the operation's record, in
`strategies.operations`; `docs/adding-a-strategy.md` lists them.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from strategies.errors import raise_if_singular
from strategies.factors import Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.accuracy_classes import AccuracyClass

Tolerance = float | Tensor | None


class Strategy(ABC):
    """One way to apply an inverse, usable in the backward of every operation.

    Attributes:
        name: what users write in `strategy=`.
        summary: one line for tables: what it forms and how it is applied.
        requires_full_rank: True where rank-deficient input to pinv and lstsq is refused.
        forward_is_differentiable: True where the operation should be PyTorch's own, differentiated
            by PyTorch; `factor` is then not used by `strategies.linalg`.
        computes_in_double: True where single precision is computed in double on purpose, which its
            times and errors then show.
        fused: the kernels for small matrices on the CPU, the first to be tried first: "factors" (of one
            matrix or a batch), "packs" (matrices of a batch side by side), "cod", "svd". Subclasses do not
            inherit it. See `strategies.kernels.cpu.plans`.
        accuracy: by operation, where its gradients may lose more than rounding explains, and why.

    Example:
        >>> import strategies
        >>> strategies.get("triangular_solve").requires_full_rank
        True
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    requires_full_rank: ClassVar[bool]
    forward_is_differentiable: ClassVar[bool] = False
    computes_in_double: ClassVar[bool] = False
    fused: ClassVar[tuple[str, ...]] = ()
    accuracy: ClassVar[Mapping[str, AccuracyClass]] = {}

    @abstractmethod
    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        """`factor` of a batch of matrices F, (..., m, n), with m ≥ n.

        Raises:
            torch.linalg.LinAlgError: a matrix is rank-deficient and the strategy needs full rank.
        """

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        """Factor a batch of nonsingular triangular matrices, (..., n, n): only a triangle is read."""
        return Triangular(matrix, structure)

    def factor(
        self,
        matrix: Tensor,
        structure: Structure = Structure.GENERAL,
        *,
        rtol: Tolerance = None,
        atol: Tolerance = None,
    ) -> PseudoInverse:
        """Factor a batch of matrices so that F⁺ can be applied.

        Args:
            matrix: F, (..., m, n); square and nonsingular where `structure` is triangular.
            structure: which entries to read.
            rtol: singular values up to rtol·σ₁ count as zero; None as in `torch.linalg.pinv`:
                max(m, n)·ε where atol is None too, else 0. A tensor has the batch shape.
            atol: singular values up to atol count as zero.

        Raises:
            torch.linalg.LinAlgError: a matrix is rank-deficient and the strategy needs full rank.
        """
        if structure.is_triangular:
            return self.factor_triangular(matrix, structure)
        m, n = matrix.shape[-2:]
        if m < n:
            return self.factor_tall(matrix.mH, rtol=rtol, atol=atol).adjoint
        return self.factor_tall(matrix, rtol=rtol, atol=atol)

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        """`factor` of square matrices that must be nonsingular: no singular value is cut off.

        Raises:
            torch.linalg.LinAlgError: a matrix is singular.
        """
        inverse = self.factor_tall(matrix, rtol=0.0, atol=0.0)
        if not inverse.full_column_rank:
            raise_if_singular(inverse.rank < matrix.shape[-1], self.name, "it has no inverse")
        return inverse

    def own(self, method: str, formula: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call the strategy's method of that name, or the formula if that is missing or `NotImplemented`.

        The method is named as "lstsq_backward"; the formula takes the strategy besides.
        """
        faster = getattr(self, method, None)
        if faster is not None:
            result = faster(*arguments, **options)
            if result is not NotImplemented:
                return result
        return formula(self, *arguments, **options)

    def __repr__(self) -> str:
        return f"<strategy {self.name}>"


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward of an operation leaves for its backward.

    Attributes:
        inverse: A⁺ as the strategy holds it.
        inputs: A, and B where the operation takes one.
        outputs: what the operation returned.
    """

    inverse: PseudoInverse
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def matrix(self) -> Tensor:
        """A."""
        return self.inputs[0]

    @property
    def rhs(self) -> Tensor:
        """B."""
        return self.inputs[1]

    @property
    def result(self) -> Tensor:
        """The first of the outputs: A⁻¹, A⁺ or the solution X."""
        return self.outputs[0]


def normalize_tolerance(tolerance: Tolerance) -> Tolerance:
    """A tolerance of at least zero; one that is NaN cuts everything off, as in torch.

    Example:
        >>> normalize_tolerance(-1.0), normalize_tolerance(math.nan)
        (0.0, inf)
    """
    if tolerance is None:
        return None
    if isinstance(tolerance, Tensor):
        return tolerance.clamp(min=0).nan_to_num(math.inf, math.inf)
    return math.inf if math.isnan(tolerance) else max(tolerance, 0.0)


def rank_threshold(scale: Tensor, shape: torch.Size, rtol: Tolerance, atol: Tolerance) -> Tensor:
    """Below what a singular value (or a diagonal entry that stands for one) counts as zero.

    Args:
        scale: the largest singular value or its stand-in, of the batch shape.
        shape: of the matrices.
        rtol: relative tolerance; None: max(m, n)·ε where atol is None or 0 too, else 0.
        atol: absolute tolerance.

    Returns:
        max(atol, rtol · scale), of the batch shape.
    """
    if rtol is None:
        has_atol = isinstance(atol, Tensor) or bool(atol)
        rtol = 0.0 if has_atol else max(shape[-2:]) * torch.finfo(scale.dtype).eps
    threshold = rtol * scale
    if atol is None:
        return threshold
    return torch.maximum(threshold, torch.as_tensor(atol, dtype=scale.dtype, device=scale.device))

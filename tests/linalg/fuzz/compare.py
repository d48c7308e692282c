"""In what two outcomes of a call differ."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from .calls import WORDS, Call
from .operands import Operand
from .outcome import Outcome

WORST_ERROR = 0.03
"""Beyond this bound on a relative error, numbers are not compared."""

_LOSS_OF_A_LEVEL = 1e3
"""By how much more derivatives of higher order may be off."""

_HOPELESS = 1e18
"""A condition number that no precision is enough for."""

_TOPICS = {
    "type": r"must be (Tensor|float|bool|int|real)|invalid combination|NoneType",
    "argument": r"argument|not supported|keyword",
    "shape": r"dimension|square|shape|size|broadcast|incompatible|batch|same (first|number)|by \d+ matr",
    "dtype": r"dtype|not implemented for|types other than|converted to type|Low prec|floating|complex",
    "singular": r"singular|is zero|full rank|rank|depend|division",
    "finite": r"non-finite|finite|converge|NaN|illegal value",
    "driver": r"driver",
    "pivot": r"pivot",
    "in place": r"modified by an inplace operation",
}
"""What a message is about; two errors make the same sense where they share one of these."""


@dataclass(frozen=True)
class Deviation:
    """One thing in which our outcome is not torch's, and both sides in words."""

    kind: str
    where: str  # the result or operand that it is about
    text: str

    def __str__(self) -> str:
        return f"{self.kind}{f' of {self.where}' if self.where else ''}: {self.text}"


def deviations(call: Call, ours: Outcome, theirs: Outcome) -> list[Deviation]:
    """All differences that count: of numbers, those that conditioning does not explain."""
    if ours.mutated != theirs.mutated:
        return [Deviation("mutated", str(ours.mutated), f"torch: {theirs.mutated}")]
    if ours.error or theirs.error:
        return _of_errors(ours, theirs)
    found = [
        Deviation(kind, "", f"{one}, torch: {other}")
        for kind, name in (("type", "types"), ("warning", "warned"), ("shared", "shared"))
        if (one := getattr(ours, name)) != (other := getattr(theirs, name))
    ]
    for name, expected in theirs.results.items():
        found += _of_tensors(name, ours.results[name], expected, value_error(call))
    for i, expected in enumerate(theirs.gradients):
        tolerance = gradient_error(call) * _LOSS_OF_A_LEVEL ** (call.mode in WORDS)
        found += _of_gradients(f"gradient {i}", ours.gradients[i], expected, tolerance)
    return found


def _of_errors(ours: Outcome, theirs: Outcome) -> list[Deviation]:
    said, expected = (_words(each.error) for each in (ours, theirs))
    text = f"{said} ({ours.stage}), torch: {expected} ({theirs.stage})"
    if (ours.error is None) != (theirs.error is None) or ours.stage != theirs.stage:
        return [Deviation("error", "", text)]
    # What is caught by those who expect torch's error is as good.
    if not isinstance(ours.error, type(theirs.error)):
        return [Deviation("error type", "", text)]
    if said != expected and not (_topics(said) & _topics(expected)):
        return [Deviation("error sense", "", text)]
    return []


def _words(error: Exception | None) -> str:
    return "returns" if error is None else f"{type(error).__name__}: {' '.join(str(error).split())}"


def _topics(words: str) -> set[str]:
    return {topic for topic, pattern in _TOPICS.items() if re.search(pattern, words, re.IGNORECASE)}


def _of_tensors(name: str, ours: Tensor, theirs: Tensor, tolerance: float) -> list[Deviation]:
    for kind in ("dtype", "shape", "requires_grad", "is_inference"):
        one, other = (getattr(each, kind) for each in (ours, theirs))
        one, other = (each() if callable(each) else each for each in (one, other))
        if one != other:
            return [Deviation(kind, name, f"{one}, torch: {other}")]
    is_lazy, may_be = (each.is_conj() or each.is_neg() for each in (ours, theirs))
    if is_lazy and not may_be:
        return [Deviation("lazy", name, "a conjugate or sign is left to be applied")]
    return _of_numbers("values", name, ours.detach(), theirs.detach(), tolerance)


def _of_gradients(
    name: str, ours: Tensor | None, theirs: Tensor | None, tolerance: float
) -> list[Deviation]:
    if ours is None or theirs is None:
        if not any(each is not None and each.any() for each in (ours, theirs)):
            return []  # nothing and zero are the same gradient
    elif (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape):
        return _of_numbers("gradient", name, ours.detach(), theirs.detach(), tolerance)
    return [Deviation("gradient", name, f"{_brief(ours)}, torch: {_brief(theirs)}")]


def _brief(value: Tensor | None) -> str:
    return "none" if value is None else f"{value.dtype} of shape {tuple(value.shape)}"


def _of_numbers(
    kind: str, name: str, ours: Tensor, theirs: Tensor, tolerance: float
) -> list[Deviation]:
    """Where finite numbers stand, then how far they are apart, matrix by matrix."""
    finite, expected = (
        each.isfinite().flatten(-2 if each.ndim > 1 else 0).all(-1) for each in (ours, theirs)
    )
    if not torch.equal(finite, expected):
        return [Deviation("finite", name, f"{_few(ours)}, torch: {_few(theirs)}")]
    if tolerance > WORST_ERROR or not ours.numel() or not bool(expected.all()):
        return []
    difference = torch.linalg.vector_norm((ours - theirs).to(torch.complex128))
    size = torch.linalg.vector_norm(theirs.to(torch.complex128))
    if bool(difference > tolerance * size) and bool(difference > torch.finfo(torch.float32).tiny):
        error = float(difference / size)
        text = f"differ by {error:.1e} > {tolerance:.1e}: {_few(ours)}, torch: {_few(theirs)}"
        return [Deviation(kind, name, text)]
    return []


def _few(value: Tensor) -> str:
    shown = ", ".join(
        f"{each:.4g}" for each in value.detach().resolve_conj().flatten()[:6].tolist()
    )
    return f"[{shown}{', ...' if value.numel() > 6 else ''}]"


def condition(call: Call, *, on_range: bool = False) -> float:
    """The largest condition number of a matrix of the call, or, if wanted, of one on its range."""
    A = call.matrix
    if not isinstance(A, Operand) or A.base.ndim < 2 or not bool(A.base.isfinite().all()):
        return _HOPELESS
    values = torch.linalg.svdvals(A.base.to(torch.complex128))
    if values.numel() == 0:
        return 1.0
    # Of a product of small integers a singular value is zero, or far above this.
    is_exact = on_range and A.values in ("deficient", "zero")
    is_kept = values > 1e-12 * values[..., :1] if is_exact else values >= 0
    smallest = torch.where(is_kept, values, torch.inf).amin(-1)
    ratio = torch.where(smallest.isinf(), 1, values[..., 0] / smallest)
    return min(float(ratio.nan_to_num(torch.inf).max()), _HOPELESS)


def _cuts(call: Call) -> bool:
    """Whether singular values at noise level are cut off."""
    return call.operation in ("pinv", "lstsq") and not call.given("atol", "rtol", "rcond")


def value_error(call: Call) -> float:
    """A bound on the relative error of results.

    It has κ² for least squares, whose residual is large, and for pinv by an inverse of AᴴA.
    """
    is_squared = call.operation == "pinv" and call.strategy == "explicit_inverse"
    power = 2 if call.operation == "lstsq" or is_squared else 1
    return 500 * unit(call) * condition(call, on_range=_cuts(call)) ** power


def gradient_error(call: Call) -> float:
    """A bound on the relative error of gradients and tangents, which det has at any rank."""
    on_range = _cuts(call) or call.operation == "det"
    return 5000 * unit(call) * condition(call, on_range=on_range) ** 3


def unit(call: Call) -> float:
    """ε of the dtype of the matrices."""
    dtypes = [each.base.dtype for each in call.tensors]
    return max(
        (torch.finfo(d).eps for d in dtypes if d.is_floating_point or d.is_complex), default=1
    )

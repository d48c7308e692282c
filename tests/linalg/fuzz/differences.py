"""The differences from torch that docs/differences.md names, each as a condition on a call."""

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import strategies
from strategies import linalg
from strategies.errors import LinAlgError, UnsupportedError

from .calls import LU, TRACERS, WORDS, Call
from .compare import Deviation, condition, deviations, unit
from .operands import LOW_PRECISION, Operand
from .outcome import Outcome, outcome


@dataclass(frozen=True)
class Seen:
    """A deviation with all that is known of it."""

    call: Call
    deviation: Deviation
    ours: Outcome
    theirs: Outcome

    def is_of(self, *operations: str) -> bool:
        return self.call.operation in operations

    def is_in(self, *kinds: str) -> bool:
        return self.deviation.kind in kinds

    def is_about(self, *fields: str) -> bool:
        """Whether it is about one of these fields of the result."""
        return self.deviation.where in fields

    @property
    def is_of_gradient(self) -> bool:
        return self.deviation.where.startswith("gradient")

    @property
    def is_refused(self) -> bool:
        """Whether we raise LinAlgError."""
        return isinstance(self.ours.error, LinAlgError)

    @property
    def A(self) -> Tensor:  # noqa: N802 - as on paper
        assert isinstance(self.call.matrix, Operand)
        return self.call.matrix.value()

    @property
    def is_finite(self) -> bool:
        return all(bool(each.base.isfinite().all()) for each in self.call.tensors)

    @property
    def is_deficient(self) -> bool:
        """Whether a matrix has, to working precision, not the full rank of its shape."""
        if not isinstance(self.call.matrix, Operand) or self.A.ndim < 2 or not self.is_finite:
            return False
        rank = torch.linalg.matrix_rank(self.A.to(torch.complex128), rtol=20 * unit(self.call))
        return bool((rank < min(self.A.shape[-2:])).any())

    @property
    def is_near_tolerance(self) -> bool:
        """Whether a singular value is below what is cut off, or within a factor of √n from it."""
        if not self.is_finite:
            return False
        m, n = self.A.shape[-2:]
        values = torch.linalg.svdvals(self.A.to(torch.complex128))
        norm = torch.linalg.vector_norm(values, dim=-1)
        relative, *_ = *self.call.given("rtol", "rcond"), 32 * max(m, n) * unit(self.call)
        absolute, *_ = *self.call.given("atol"), 0.0
        return bool((values[..., -1] <= relative * norm + absolute * n**0.5).any())


Condition = Callable[[Seen], bool]
NUMBERS = ("values", "gradient", "finite")


def _lu_of_deficient(seen: Seen) -> bool:
    return (
        seen.is_of(*LU)
        and seen.is_deficient
        and (seen.is_in(*NUMBERS) or "backward" in (seen.ours.stage, seen.theirs.stage))
    )


def _refused_rank(seen: Seen) -> bool:
    if not seen.is_refused or seen.call.strategy == "auto":
        return False
    if "elements of this matrix grow" in str(seen.ours.error):
        return not seen.is_of(*LU)
    if not seen.is_of("pinv", "lstsq"):
        return False
    if seen.call.strategy == "explicit_inverse":  # it factors AᴴA, whose condition is the square
        return condition(seen.call) ** 2 * unit(seen.call) > 0.001 or seen.is_deficient
    requires = strategies.get(seen.call.strategy).requires_full_rank
    return requires and (seen.is_deficient or seen.is_near_tolerance)


def _not_finite(seen: Seen) -> bool:
    is_told = isinstance(seen.ours.error or seen.theirs.error, LinAlgError)
    is_told |= seen.is_in("finite", "values") or "INTERNAL ASSERT" in str(seen.theirs.error)
    return seen.is_of("pinv", "lstsq", "solve", "inv") and is_told and not seen.is_finite


def _mixed_tolerances(seen: Seen) -> bool:
    kinds = {isinstance(each, Tensor) for each in seen.call.given("atol", "rtol")}
    return seen.is_of("pinv") and isinstance(seen.theirs.error, TypeError) and len(kinds) > 1


def _stale_pivots(seen: Seen) -> bool:
    """Torch's default driver is not of the opinion of another of its drivers, and we are."""
    if not (seen.is_of("lstsq") and seen.is_in(*NUMBERS) and seen.is_finite):
        return False
    if 0 in seen.call.operands[1].value().shape:
        return False  # which gelsd does not take
    if seen.is_of_gradient:
        return "solution" in _unlike_gelsd(seen.call, seen.theirs)
    return not _unlike_gelsd(seen.call, seen.ours)


def _unlike_gelsd(call: Call, outcome_of_it: Outcome) -> set[str]:
    plain = dataclasses.replace(call, mode="plain", options=call.options | {"driver": "gelsd"})
    expected = outcome(plain, torch.linalg.lstsq)
    return {
        each.where
        for each in deviations(plain, outcome_of_it, expected)
        if each.where in ("solution", "rank") and each.kind in NUMBERS
    }


def _vmap(seen: Seen) -> bool:
    return seen.call.mode == "vmap" and (
        (seen.is_in("warning") and not seen.ours.warned)
        or (seen.ours.error is None and isinstance(seen.theirs.error, RuntimeError))
        or (seen.is_of("lstsq") and seen.call.operands[1].value().ndim < seen.A.ndim)
        or (seen.is_of("pinv") and seen.is_in("shape") and not seen.A.numel())
        or (
            seen.is_of("solve")
            and seen.is_in("shape")
            and len(seen.call.operands[1].shape) < seen.A.ndim
        )
    )


def _coarse_tolerance(seen: Seen) -> bool:
    is_of_rank = seen.is_of("pinv", "lstsq") and (seen.is_refused or seen.is_in(*NUMBERS))
    return is_of_rank and any(map(_is_coarse, seen.call.given("rtol", "atol", "rcond")))


def _is_coarse(tolerance: object) -> bool:
    if not isinstance(tolerance, float | Tensor):
        return False
    return not bool((torch.as_tensor(tolerance).abs() < 1e-3).all())


def _overflow(seen: Seen) -> bool:
    """Something overflows in torch, where ours is a number."""
    if not (seen.is_finite and seen.is_in("finite")):
        return False
    entries = [each.value().abs().max() for each in seen.call.tensors if each.value().numel()]
    if max(abs(math.frexp(float(each))[1]) for each in entries) < 20:
        return False
    name, _, number = seen.deviation.where.partition(" ")
    ours = seen.ours.gradients[int(number)] if number else seen.ours.results[name]
    return ours is not None and bool(ours.isfinite().all())


def _singular_by_roundoff(seen: Seen) -> bool:
    raised = [isinstance(each.error, LinAlgError) for each in (seen.ours, seen.theirs)]
    return seen.is_of("inv", "solve") and seen.is_deficient and raised[0] != raised[1]


def _in_place(seen: Seen) -> bool:
    said, expected = (str(each.error) for each in (seen.ours, seen.theirs))
    was_told = "modified by an inplace operation"
    # Of a conjugate or a sign that is pending, a copy is kept to which it is applied.
    is_copied = any(each.layout in ("conjugate", "negative") for each in seen.call.tensors)
    may_change = seen.is_of("lu", "det", "slogdet", "pinv") or (seen.is_of("lstsq") and is_copied)
    if may_change and was_told in expected:
        return seen.ours.error is None
    return seen.is_of("lstsq", "slogdet") and was_told in said and seen.theirs.error is None


_FORWARD = "set a forward gradient that has a different size"
"""What PyTorch's own forward mode says of lstsq with right-hand sides of fewer dimensions."""


def _higher_order(seen: Seen) -> bool:
    """Torch's derivative of second or third order, by reverse mode throughout, is refused or not finite.

    By a word with forward mode in it, which is what "native" does, it is wrong.
    """
    if seen.call.mode not in WORDS:
        return False
    if seen.ours.error is not None:  # PyTorch's own: "native", or of shapes that do not fit
        return seen.call.strategy == "native" or _FORWARD in str(seen.ours.error)
    if seen.theirs.error is not None:
        return seen.theirs.stage == "backward"
    is_wrong = not bool(seen.theirs.gradients[0].isfinite().all())
    return is_wrong or (seen.call.strategy == "native" and seen.is_in("gradient", "finite"))


def _tracer(seen: Seen) -> bool:
    """The tracer warns, or its interpreter has a class of its own for what a strategy refuses."""
    if seen.call.mode not in TRACERS:
        return False
    is_of_interpreter = "TorchScript interpreter" in str(seen.ours.error)
    is_refused = is_of_interpreter and seen.call.strategy != "auto"
    is_by_shapes = seen.is_about("rank", "singular_values")
    return seen.is_in("warning") or is_refused or is_by_shapes or _FORWARD in str(seen.ours.error)


DIFFERENCES: dict[str, Condition] = {
    "LU of deficient matrices": _lu_of_deficient,
    "det of singular matrices": lambda seen: (
        seen.is_of("det") and seen.is_deficient and seen.is_in("gradient", "finite")
    ),
    "slogdet of singular matrices": lambda seen: (
        seen.is_of("slogdet")
        and seen.is_deficient
        and (seen.is_refused or seen.is_in("gradient", "finite"))
    ),
    "hermitian=True of what is not": lambda seen: (
        bool(seen.call.options.get("hermitian"))
        and seen.is_in("gradient")
        and not torch.equal(seen.A, seen.A.mH)
    ),
    "NaN and Inf in pinv, lstsq, solve and inv": _not_finite,
    "gradients at NaN and Inf": lambda seen: (
        seen.is_of_gradient and seen.is_in("finite") and not seen.is_finite
    ),
    "strategies of full rank": _refused_rank,
    "ends of the exponent range": _overflow,
    "singular up to rounding": _singular_by_roundoff,
    "singular matrices and nothing to solve": lambda seen: (
        seen.is_of("solve") and not seen.ours.error and not seen.ours.results["result"].numel()
    ),
    "coarse tolerances": _coarse_tolerance,
    "stale pivots in lstsq": _stale_pivots,
    "residuals": lambda seen: seen.is_about("residuals"),
    "rank without right-hand sides": lambda seen: (
        seen.is_about("rank") and 0 in seen.call.operands[-1].value().shape
    ),
    "singular values": lambda seen: (
        seen.is_about("singular_values") and not seen.theirs.results["singular_values"].shape[-1]
    ),
    "drivers": lambda seen: (
        "driver" in seen.call.options and isinstance(seen.ours.error, UnsupportedError)
    ),
    "rcond=": lambda seen: "rcond" in seen.call.options and isinstance(seen.ours.error, TypeError),
    "tolerances of both kinds": _mixed_tolerances,
    "in-place changes": _in_place,
    "vmap": _vmap,
    "derivatives of higher order": _higher_order,
    # Along directions in which the rank grows.
    "third derivatives at deficient rank": lambda seen: (
        seen.call.mode in WORDS
        and len(seen.call.mode) == 3
        and seen.is_of("pinv", "lstsq")
        and seen.is_in("gradient")
        and seen.is_deficient
    ),
    "tracers": _tracer,
    "efficient zero tensors": lambda seen: (
        seen.call.mode in ("zero cotangent", "zero tangent")
        and seen.ours.error is None
        and isinstance(seen.theirs.error, RuntimeError)
    ),
    "half precision": lambda seen: (
        seen.theirs.error is not None
        and any(each.base.dtype in LOW_PRECISION for each in seen.call.tensors)
    ),
}
"""By the name that stands in docs/differences.md."""


def check(call: Call) -> tuple[set[str], list[Deviation]]:
    """The documented differences from torch that a call shows, and what else is not as in torch."""
    function = functools.partial(getattr(linalg, call.operation), strategy=call.strategy)
    ours, theirs = (
        outcome(call, each) for each in (function, getattr(torch.linalg, call.operation))
    )
    names: set[str] = set()
    rest = []
    for deviation in deviations(call, ours, theirs):
        seen = Seen(call, deviation, ours, theirs)
        explained = {name for name, holds in DIFFERENCES.items() if holds(seen)}
        names |= explained
        if not explained:
            rest.append(deviation)
    return names, rest

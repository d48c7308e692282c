"""How a strategy behaves: what it declares, what it leaves alone, that it is always the same."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from strategies import operations
from strategies.accuracy_classes import AccuracyClass
from strategies.amplification import unit_roundoff
from strategies.errors import UnsupportedError
from strategies.interface import Strategy
from strategies.measuring import Case, backward_of
from strategies.pseudo_inverse import PseudoInverse, Structure
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    close,
    device,
    is_number,
    named,
    numbered,
    require,
)
from strategies.testing.global_state import changed, snapshot
from strategies.testing.gradient_checks import gradients, ratio_of
from strategies.testing.watched import is_own_method, tensors_in, watched

_OF_RANGE = ("apply", "to_range", "range_complement")
_OF_DOMAIN = ("apply_adjoint", "apply_gram", "null_complement", "solve_adjoint")


def _cases(dtype: torch.dtype = torch.float64, batch: int = 0, seed: int = 0) -> Iterator[Case]:
    for operation in map(operations.get, operations.names()):
        shape = (5, 5) if operation.square else (6, 4)
        yield Case(operation.name, shape, batch, dtype, device(), seed=seed)


def _computed(strategy: Strategy, cases: Iterator[Case]) -> list[tuple[Case, list[Tensor]]]:
    """The cases that the strategy takes, with the gradients it gives."""
    found = []
    for case in cases:
        with contextlib.suppress(UnsupportedError):
            found.append((case, [gradient.clone() for gradient in backward_of(case, strategy)()]))
    return found


def _require_same(found: Sequence[Tensor], expected: Sequence[Tensor], message: str) -> None:
    require(all(map(torch.equal, found, expected)), message)


def _declaration(strategy: Strategy) -> None:
    """What tables and messages show, and that every own method belongs to an operation."""
    name = strategy.name
    require(
        isinstance(name, str) and name.isidentifier(),
        f"name must be an identifier, as on a command line, and is {name!r}",
    )
    require(
        isinstance(strategy.summary, str) and 0 < len(strategy.summary.splitlines()) < 2,
        "summary must be one line",
    )
    for flag in ("requires_full_rank", "forward_is_differentiable"):
        value = getattr(strategy, flag)
        require(isinstance(value, bool), f"{flag} must be True or False and is {value!r}")
    stems = sorted({operations.get(operation).stem for operation in operations.names()})
    for method in filter(is_own_method, dir(strategy)):
        require(
            method.rpartition("_")[0] in stems,
            f"{method} belongs to no operation; the known ones are {', '.join(stems)}",
        )
    for stem, accuracy_class in strategy.accuracy.items():
        require(
            stem in stems and isinstance(accuracy_class, AccuracyClass),
            f"accuracy must map some of {', '.join(stems)} to an AccuracyClass, "
            f"and maps {stem!r} to {accuracy_class!r}",
        )
    inverse = strategy.factor(torch.eye(2, device=device()))
    require(
        isinstance(inverse, PseudoInverse),
        f"{type(strategy).__name__}.factor returns {type(inverse).__name__}, not a PseudoInverse",
    )


def _determinism(strategy: Strategy) -> None:
    for dtype in (torch.float32, torch.complex128):
        for case, first in _computed(strategy, _cases(dtype, batch=2)):
            again = backward_of(case, strategy)()
            _require_same(again, first, f"{case}: the same call twice gives different bits")


def _repeated_backward(strategy: Strategy) -> None:
    """A backward must leave what forward saved as it was: a graph may be walked twice."""
    for case, first in _computed(strategy, _cases(batch=2)):
        backward = backward_of(case, strategy)
        backward()
        message = f"{case}: a second backward through the same graph gives other bits"
        _require_same(backward(), first, message)


def _no_state(strategy: Strategy) -> None:
    """What was computed between two equal calls must not matter, nor what was computed change."""
    F, other = numbered((6, 4), torch.float64, 9), numbered((6, 4), torch.float64, 10)
    inverse = strategy.factor(F.clone())
    dense, applied = inverse.dense().clone(), inverse.apply(F).clone()
    attributes = dict(vars(strategy))
    require(
        not torch.equal(strategy.factor(other).dense(), dense),
        "two matrices of the same shape have the same inverse",
    )
    _require_same(
        (inverse.dense(), inverse.apply(F)),
        (dense, applied),
        "factoring another matrix changed the inverse of the first",
    )
    require(
        torch.equal(strategy.factor(F.clone()).dense(), dense),
        "after factoring another matrix, the first gives another inverse",
    )
    before = _computed(strategy, _cases())
    _computed(strategy, _cases(seed=1))
    for case, first in before:
        message = f"{case}: gives other bits after the same operation on other inputs"
        _require_same(backward_of(case, strategy)(), first, message)
    require(
        dict(vars(strategy)) == attributes,
        f"the strategy has new or changed attributes: {sorted(vars(strategy))}",
    )


def _inputs_kept(strategy: Strategy) -> None:
    """No method writes to what it was given."""
    overwriting: set[str] = set()

    def compare(name: str, before: list[Tensor], given: list[Tensor], _: Any) -> None:
        if not all(map(_same_bits, given, before)):
            overwriting.add(name)

    guarded = watched(strategy, compare)
    for dtype in (torch.float64, torch.complex64):
        _computed(guarded, _cases(dtype))
        for m, n in ((4, 4), (6, 4)):
            inverse = guarded.factor(numbered((m, n), dtype, 11))
            for names, rows in ((_OF_RANGE, m), (_OF_DOMAIN, n)):
                x = numbered((rows, 2), dtype, 12)
                for name in names:
                    given = x.clone()
                    compare(f"{name}(x)", [x], [given], getattr(inverse, name)(given))
        guarded.factor(numbered((4, 4), dtype, 13), Structure.UPPER)
    require(not overwriting, f"overwrites what it is given: {', '.join(sorted(overwriting))}")


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal, with NaN equal to itself: some outputs are there for their shape and never written."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _global_state_kept(strategy: Strategy) -> None:
    """Neither the generators nor any setting of the process is touched."""
    for dtype in (torch.float32, torch.complex128):
        before = snapshot()
        strategy.factor(numbered((6, 4), dtype, 19))
        _computed(strategy, _cases(dtype))
        differences = changed(before)
        require(not differences, f"changed in the process: {', '.join(differences)}")


def _result_dtype(strategy: Strategy) -> None:
    """Autograd would cast a gradient silently."""
    found: list[tuple[str, Tensor]] = []

    def note(name: str, _before: list[Tensor], _given: list[Tensor], result: Any) -> None:
        if is_own_method(name):
            numbers = filter(is_number, tensors_in(result))
            found.extend((f"{name}: result {i}", tensor) for i, tensor in enumerate(numbers))

    for dtype in DTYPES:
        found.clear()
        _computed(watched(strategy, note), _cases(dtype))
        inverse = strategy.factor(numbered((6, 4), dtype, 20))
        b, x = numbered((6, 2), dtype, 21), numbered((4, 2), dtype, 22)
        found.append(("dense()", inverse.dense()))
        found += [(f"{name}(b)", getattr(inverse, name)(b)) for name in _OF_RANGE]
        found += [(f"{name}(x)", getattr(inverse, name)(x)) for name in _OF_DOMAIN]
        for what, result in found:
            is_right = result.dtype in (dtype, dtype.to_real())
            require(is_right, f"{what} of {dtype} is {result.dtype}")


def _working_precision(strategy: Strategy) -> None:
    """Single precision is computed in single precision: else its times and errors compare nothing.

    Torch operations are watched for double precision. A detour outside torch, NumPy's, shows in a
    gradient that is more accurate than single precision can make it at a condition number of 10³.
    """
    for dtype in (torch.float32, torch.complex64):
        watch = _WiderThan(dtype)
        for case in _cases(dtype):
            case.inputs()  # drawn in double precision, and kept
            with watch, contextlib.suppress(UnsupportedError):
                backward_of(case, strategy)()
        wide = ", ".join(sorted(watch.found))
        require(not wide, f"{dtype}: double precision within, in {wide}")
        for operation in map(operations.get, operations.measured()):
            shape = (12, 12) if operation.square else (12, 6)
            case = Case(operation.name, shape, 0, dtype, device(), log10_cond=3.0)
            error = ratio_of(case, strategy) * 10**3
            require(
                error > 2,
                f"{case}: the error is {error * unit_roundoff(dtype):.1e}, a mere "
                "rounding of the exact gradient: more than single precision was used",
            )


class _WiderThan(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """Collects the torch operations that produce numbers of double precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._width = dtype.to_real().itemsize
        self.found: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        for tensor in filter(is_number, tensors_in(result)):
            # Tolerances may be double: they decide a rank, and their rounding enters no result.
            if tensor.ndim >= 2 and tensor.dtype.to_real().itemsize > self._width:
                self.found.add(str(func.overloadpacket))
        return result


def _memory_layouts(strategy: Strategy) -> None:
    """Transposed, strided, expanded and lazily conjugated tensors are matrices like any other."""
    layouts: dict[str, Callable[[Tensor], Tensor]] = {
        "column-major": lambda t: t.mT.contiguous().mT,
        "strided": lambda t: t.repeat_interleave(2, -1)[..., ::2],
        "lazily conjugated": lambda t: t.mH.resolve_conj().contiguous().mH,
        "with the batch innermost": lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0),
    }
    for dtype in (torch.float64, torch.complex128):
        F, b = numbered((2, 6, 4), dtype, 27), numbered((2, 6, 3), dtype, 28)
        expected = strategy.factor(F)
        for what, layout in layouts.items():
            found = strategy.factor(layout(F))
            close(found.dense(), expected.dense(), f"{what}: dense()")
            close(found.apply(layout(b)), expected.apply(b), f"{what}: apply(b)")
        same = F[:1].expand(3, 6, 4)
        close(strategy.factor(same).dense(), expected.dense()[:1].expand(3, 4, 6), "expanded")
        for case, _ in _computed(strategy, _cases(dtype, batch=2)):
            record, inputs = operations.get(case.operation), case.inputs()
            plain = gradients(record, strategy, inputs)
            for what, layout in layouts.items():
                leaves = tuple(layout(t.detach()).requires_grad_() for t in inputs)
                strange = gradients(record, strategy, leaves, layout)
                for gradient, value in zip(strange, plain, strict=True):
                    close(gradient, value, f"{what}: the gradient of {case}")


def _not_a_number(strategy: Strategy) -> None:
    """NaN in one matrix of a batch never gives numbers for it that look right."""
    if not strategy.requires_full_rank:
        raise NotApplicableError("an SVD may refuse NaN in its own words")
    F = numbered((2, 4, 4), torch.float64, 29)
    F[1, 2, 1] = math.nan
    try:
        dense = strategy.factor(F).dense()
    except RuntimeError:
        return
    require(bool(dense[1].isnan().any()), "the inverse of a matrix with NaN holds none")


CHECKS = named(
    _declaration,
    _determinism,
    _repeated_backward,
    _no_state,
    _inputs_kept,
    _global_state_kept,
    _result_dtype,
    _working_precision,
    _memory_layouts,
    _not_a_number,
)

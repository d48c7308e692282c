"""How a strategy behaves: what it declares, what it leaves alone, that it is always the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from strategies import operations, registry
from strategies.errors import UnsupportedError
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.accuracy_classes import AccuracyClass
from strategies.formulas.amplification import unit_roundoff
from strategies.formulas.domains import GENERAL
from strategies.measuring import Case, backward_of
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    device,
    each,
    is_number,
    name_of,
    named,
    numbered,
    require,
)
from strategies.testing.global_state import changed, snapshot
from strategies.testing.gradient_checks import ratio_of
from strategies.testing.spy import is_own_method, spy_on, tensors_in

_OF_RANGE = ("apply", "to_range", "range_complement")
_OF_DOMAIN = ("apply_adjoint", "apply_gram", "null_complement", "solve_adjoint")


def _cases(dtype: torch.dtype = torch.float64, batch: int = 0, seed: int = 0) -> Iterator[Case]:
    for operation in map(operations.get, operations.names()):
        shape = (5, 5) if operation.square else (6, 4)
        yield Case(operation.name, shape, batch, dtype, device(), seed=seed)


def _computed(strategy: Strategy, cases: Iterator[Case]) -> None:
    """Have the strategy compute the gradients of the cases that it takes."""

    def compute(case: Case) -> None:
        backward_of(case, strategy)()

    with contextlib.suppress(NotApplicableError):
        each(cases, compute)


def _declaration(strategy: Strategy) -> None:
    """What tables and messages show, and that every own method belongs to an operation."""
    name = strategy.name
    require(
        isinstance(name, str) and name.isidentifier(),
        f"name must be an identifier, as on a command line, and is {name!r}",
    )
    if name in registry.available():
        known = type(registry.get(name))
        is_same = (known.__module__, known.__qualname__) == (
            type(strategy).__module__,
            type(strategy).__qualname__,
        )
        require(is_same, f"there is a strategy named '{name}' already, {known.__qualname__}")
    require(
        isinstance(strategy.summary, str) and 0 < len(strategy.summary.splitlines()) < 2,
        "summary must be one line",
    )
    for flag in ("requires_full_rank", "forward_is_differentiable", "computes_in_double"):
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


def _inputs_kept(strategy: Strategy) -> None:
    """No method writes to what it was given."""
    overwriting: set[str] = set()

    def compare(name: str, before: list[Tensor], given: list[Tensor], _: Any) -> None:
        if not all(map(_same_bits, given, before)):
            overwriting.add(name)

    guarded = spy_on(strategy, compare)
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

    def examine(case: Case) -> None:
        before = snapshot()
        if case.operation == "pinv":
            strategy.factor(numbered(case.shape, case.dtype, 19)).dense()
        backward_of(case, strategy)()
        differences = changed(before)
        require(not differences, f"changed in the process: {', '.join(differences)}")

    each((case for dtype in (torch.float32, torch.complex128) for case in _cases(dtype)), examine)


def _result_dtype(strategy: Strategy) -> None:
    """Autograd would cast a gradient silently."""
    found: list[tuple[str, Tensor]] = []

    def note(name: str, _before: list[Tensor], _given: list[Tensor], result: Any) -> None:
        if is_own_method(name):
            numbers = filter(is_number, tensors_in(result))
            found.extend((f"{name}: result {i}", tensor) for i, tensor in enumerate(numbers))

    for dtype in DTYPES:
        found.clear()
        _computed(spy_on(strategy, note), _cases(dtype))
        inverse = strategy.factor(numbered((6, 4), dtype, 20))
        b, x = numbered((6, 2), dtype, 21), numbered((4, 2), dtype, 22)
        found.append(("dense()", inverse.dense()))
        found += [(f"{name}(b)", getattr(inverse, name)(b)) for name in _OF_RANGE]
        found += [(f"{name}(x)", getattr(inverse, name)(x)) for name in _OF_DOMAIN]
        for what, result in found:
            is_right = result.dtype in (dtype, dtype.to_real())
            require(is_right, f"{what} of {dtype} is {result.dtype}")


def _working_precision(strategy: Strategy) -> None:
    """Single precision is computed in single precision, or a detour through double is declared.

    Silently, its times and errors would be compared with those of something else.
    Torch operations are watched for double precision. A detour outside torch, NumPy's, shows in a
    gradient that is more accurate than single precision can make it at a condition number of 10³.
    """
    if strategy.computes_in_double:
        raise NotApplicableError("declares computes_in_double")
    advice = "declare computes_in_double = True if that is meant"
    for dtype in (torch.float32, torch.complex64):
        watch = _WiderThan(dtype)
        for case in _cases(dtype):
            case.inputs()  # drawn in double precision, and kept
            with watch, contextlib.suppress(UnsupportedError):
                backward_of(case, strategy)()
        wide = ", ".join(sorted(watch.found))
        require(not wide, f"{name_of(dtype)}: double precision within, in {wide}; {advice}")
        for operation in map(operations.get, operations.measured()):
            if operation.domain is not GENERAL:
                continue  # substitution is often more accurate than its condition number says
            shape = (12, 12) if operation.square else (12, 6)
            case = Case(operation.name, shape, 0, dtype, device(), log10_cond=3.0)
            error = ratio_of(case, strategy) * 10**3
            require(
                error > 2,
                f"{case}: the error is {error * unit_roundoff(dtype):.1e}, a mere "
                f"rounding of the exact gradient: more than single precision was used; {advice}",
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


CHECKS = named(
    _declaration,
    _inputs_kept,
    _global_state_kept,
    _result_dtype,
    _working_precision,
)

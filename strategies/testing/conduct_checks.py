"""How a strategy behaves: what it declares, what it leaves alone, that it is always the same."""

import contextlib
from typing import Any

import torch
from torch import Tensor

from strategies import operations, registry
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.accuracy_classes import AccuracyClass
from strategies.formulas.amplification import unit_roundoff
from strategies.formulas.domains import GENERAL
from strategies.measuring import Case
from strategies.strategy import Strategy
from strategies.testing.checks import (
    DTYPES,
    NotApplicableError,
    check,
    check_each,
    device,
    each,
    is_number,
    numbered,
    records,
    require,
)
from strategies.testing.global_state import changed, snapshot
from strategies.testing.gradient_checks import ratio_of
from strategies.testing.problems import Problem, one_each
from strategies.testing.rank_checks import METHODS
from strategies.testing.spy import Observer, TorchSpy, is_own_method, spy_on, tensors_in


def _apply(inverse: PseudoInverse, like: Tensor, observe: Observer) -> None:
    """Call every method of the factors of a matrix."""
    m, n = like.shape
    for method, of in {**METHODS, "to_range": "b", "solve_adjoint": "x"}.items():
        before = numbered((m if of == "b" else n, 2), like.dtype, 12)
        given = before.clone()
        observe(f"{method}({of})", [before], [given], getattr(inverse, method)(given))


def _compute(strategy: Strategy, problems: list[Problem]) -> None:
    """Have the strategy compute the gradients that it does not refuse."""
    with contextlib.suppress(NotApplicableError):
        each(problems, lambda asked: asked.solved_by(strategy))


@check
def _declaration(strategy: Strategy) -> None:
    """What tables and messages show, and that every own method belongs to an operation."""
    name = strategy.name
    is_identifier = isinstance(name, str) and name.isidentifier()
    require(is_identifier, f"name must be an identifier, as on a command line, and is {name!r}")
    if name in registry.available():
        known = type(registry.get(name))
        places = {(kind.__module__, kind.__qualname__) for kind in (known, type(strategy))}
        taken = f"there is a strategy named '{name}' already, {known.__qualname__}"
        require(len(places) == 1, taken)
    is_line = isinstance(strategy.summary, str) and len(strategy.summary.splitlines()) == 1
    require(is_line, "summary must be one line")
    for flag in ("requires_full_rank", "forward_is_differentiable", "computes_in_double"):
        value = getattr(strategy, flag)
        require(isinstance(value, bool), f"{flag} must be True or False and is {value!r}")
    stems = sorted({operation.stem for operation in records()})
    for method in filter(is_own_method, dir(strategy)):
        message = f"{method} belongs to no operation; the known ones are {', '.join(stems)}"
        require(method.rpartition("_")[0] in stems, message)
    for stem, accuracy_class in strategy.accuracy.items():
        is_class = stem in stems and isinstance(accuracy_class, AccuracyClass)
        due = f"accuracy must map some of {', '.join(stems)} to an AccuracyClass"
        require(is_class, f"{due}, and maps {stem!r} to {accuracy_class!r}")
    inverse = strategy.factor(torch.eye(2, device=device()))
    what = f"{type(strategy).__name__}.factor returns {type(inverse).__name__}"
    require(isinstance(inverse, PseudoInverse), f"{what}, not a PseudoInverse")


@check
def _inputs_kept(strategy: Strategy) -> None:
    """No method writes to what it was given."""
    overwriting: set[str] = set()

    def compare(name: str, before: list[Tensor], given: list[Tensor], _: Any) -> None:
        # Some outputs are there for their shape and never written: NaN is equal to itself.
        pairs = zip(given, before, strict=True)
        if not all(torch.allclose(a, b, 0.0, 0.0, equal_nan=True) for a, b in pairs):
            overwriting.add(name)

    guarded = spy_on(strategy, compare)
    for dtype in (torch.float64, torch.complex64):
        _compute(guarded, one_each(dtype=dtype))
        for shape in ((4, 4), (6, 4)):
            matrix = numbered(shape, dtype, 11)
            _apply(guarded.factor(matrix.clone()), matrix, compare)
        guarded.factor(numbered((4, 4), dtype, 13), Structure.UPPER)
    require(not overwriting, f"overwrites what it is given: {', '.join(sorted(overwriting))}")


@check_each(lambda _: one_each(dtype=torch.float32) + one_each(dtype=torch.complex128))
def _global_state_kept(strategy: Strategy, asked: Problem) -> None:
    """Neither the generators nor any setting of the process is touched."""
    before = snapshot()
    if asked.operation.name == "pinv":
        strategy.factor(asked.inputs[0].clone()).dense()
    asked.solved_by(strategy)
    differences = changed(before)
    require(not differences, f"changed in the process: {', '.join(differences)}")


@check_each(lambda _: DTYPES)
def _result_dtype(strategy: Strategy, dtype: torch.dtype) -> None:
    """Autograd would cast a gradient silently."""
    wrong: set[str] = set()

    def note(name: str, _before: list[Tensor], _given: list[Tensor], result: Any) -> None:
        if not name.startswith("factor"):
            for i, tensor in enumerate(filter(is_number, tensors_in(result))):
                if tensor.dtype not in (dtype, dtype.to_real()):
                    wrong.add(f"{name}: result {i} is {tensor.dtype}")

    _compute(spy_on(strategy, note), one_each(dtype=dtype))
    matrix = numbered((6, 4), dtype, 20)
    inverse = strategy.factor(matrix.clone())
    note("dense()", [], [], inverse.dense())
    _apply(inverse, matrix, note)
    require(not wrong, "; ".join(sorted(wrong)))


@check_each(lambda _: (torch.float32, torch.complex64))
def _working_precision(strategy: Strategy, dtype: torch.dtype) -> None:
    """Single precision is computed in single precision, or a detour through double is declared.

    Silently, its times and errors would be compared with those of something else.
    Torch operations are watched for double precision. A detour outside torch, NumPy's, shows in a
    gradient that is more accurate than single precision can make it at a condition number of 10³.
    """
    if strategy.computes_in_double:
        raise NotApplicableError("declares computes_in_double")
    advice = "declare computes_in_double = True if that is meant"
    wide: set[str] = set()

    def note(operation: str, result: Any) -> None:
        for tensor in filter(is_number, tensors_in(result)):
            # Tolerances may be double: they decide a rank, and their rounding enters no result.
            if tensor.ndim >= 2 and tensor.dtype.to_real() is torch.float64:
                wide.add(operation)

    problems = one_each(dtype=dtype)  # computed in double precision
    with TorchSpy(note):
        _compute(strategy, problems)
    require(not wide, f"double precision within, in {', '.join(sorted(wide))}; {advice}")
    for operation in map(operations.get, operations.measured()):
        if operation.domain is not GENERAL:
            continue  # substitution is often more accurate than its condition number says
        shape = (12, 12) if operation.square else (12, 6)
        case = Case(operation.name, shape, 0, dtype, device(), log10_cond=3.0)
        error = ratio_of(case, strategy) * 10**3
        found = f"the error is {error * unit_roundoff(dtype):.1e}, a mere rounding of the exact gradient"
        require(error > 2, f"{case}: {found}: more than single precision was used; {advice}")

"""How a strategy behaves: what it leaves alone, and that it is the same every time."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from strategies.accuracy import measures
from strategies.errors import UnsupportedError
from strategies.interface import Strategy
from strategies.measuring import Case, backward_of
from strategies.pseudo_inverse import PseudoInverse, Structure
from strategies.testing.checks import (
    DTYPES,
    Check,
    NotApplicableError,
    close,
    device,
    numbered,
    require,
)
from strategies.testing.global_state import changed, snapshot
from strategies.testing.gradient_checks import OPERATIONS, ratio_of

__all__ = ["CHECKS"]

_TALL = {"lu_factor", "pinv", "lstsq"}


def _cases(dtype: torch.dtype = torch.float64, batch: int = 0, seed: int = 0) -> Iterator[Case]:
    for operation in OPERATIONS:
        shape = (6, 4) if operation in _TALL else (5, 5)
        yield Case(operation, shape, batch, dtype, device(), seed=seed)


def _supported(cases: Iterator[Case], strategy: Strategy) -> Iterator[tuple[Case, list[Tensor]]]:
    """The cases that the strategy takes, with the gradients it gives."""
    for case in cases:
        try:
            yield case, list(backward_of(case, strategy)())
        except UnsupportedError:
            continue


def _check_declaration(strategy: Strategy) -> None:
    """What tables and messages show."""
    kind = type(strategy)
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
    inverse = strategy.factor(torch.eye(2, device=device()))
    require(
        isinstance(inverse, PseudoInverse),
        f"{kind.__name__}.factor returns {type(inverse).__name__}, not a PseudoInverse",
    )


def _check_determinism(strategy: Strategy) -> None:
    for dtype in (torch.float32, torch.complex128):
        for case, first in _supported(_cases(dtype, batch=2), strategy):
            again = backward_of(case, strategy)()
            require(
                all(map(torch.equal, first, again)),
                f"{case.label}: the same call twice gives different bits",
            )


def _check_repeated_backward(strategy: Strategy) -> None:
    """A backward must leave what forward saved as it was: a graph may be walked twice."""
    for case in _cases(batch=2):
        try:
            backward = backward_of(case, strategy)
            first = [gradient.clone() for gradient in backward()]
        except UnsupportedError:
            continue
        require(
            all(map(torch.equal, first, backward())),
            f"{case.label}: a second backward through the same graph gives other bits",
        )


def _check_no_state(strategy: Strategy) -> None:
    """What was computed between two equal calls must not matter, nor what was computed change."""
    F, other = numbered((6, 4), torch.float64, 9), numbered((6, 4), torch.float64, 10)
    inverse = strategy.factor(F.clone())
    before = inverse.dense().clone(), inverse.apply(F).clone()
    attributes = dict(vars(strategy))
    require(
        not torch.equal(strategy.factor(other).dense(), before[0]),
        "two matrices of the same shape have the same inverse",
    )
    require(
        torch.equal(inverse.dense(), before[0]) and torch.equal(inverse.apply(F), before[1]),
        "factoring another matrix changed the inverse of the first",
    )
    require(
        torch.equal(strategy.factor(F.clone()).dense(), before[0]),
        "after factoring another matrix, the first gives another inverse",
    )
    first_results = [(case, [g.clone() for g in found]) for case, found in
                     _supported(_cases(), strategy)]  # fmt: skip
    for _ in _supported(_cases(seed=1), strategy):
        pass
    for case, found in first_results:
        require(
            all(map(torch.equal, found, backward_of(case, strategy)())),
            f"{case.label}: gives other bits after the same operation on other inputs",
        )
    require(
        dict(vars(strategy)) == attributes,
        f"the strategy has new or changed attributes: {sorted(vars(strategy))}",
    )


def _check_inputs_kept(strategy: Strategy) -> None:
    """No method writes to what it was given."""
    guard = _Guard()
    for dtype in (torch.float64, torch.complex64):
        for shape in ((4, 4), (6, 4)):
            F = guard.watch(numbered(shape, dtype, 11), "the matrix given to factor")
            inverse = strategy.factor(F)
            guard.check()
            m, n = shape
            for name in ("apply", "to_range", "range_complement"):
                getattr(inverse, name)(guard.watch(numbered((m, 2), dtype, 12), f"b of {name}"))
                guard.check()
            for name in ("apply_adjoint", "apply_gram", "null_complement", "solve_adjoint"):
                getattr(inverse, name)(guard.watch(numbered((n, 2), dtype, 13), f"x of {name}"))
                guard.check()
            cotangent = guard.watch(numbered((n, m), dtype, 14), "the cotangent of pinv")
            strategy.pinv_backward(inverse, F, cotangent)
            guard.check()
            X = guard.watch(numbered((n, 2), dtype, 15), "the solution given to lstsq_backward")
            G = guard.watch(numbered((n, 2), dtype, 16), "the cotangent of lstsq")
            B = guard.watch(numbered((m, 2), dtype, 17), "the right-hand side of lstsq")
            strategy.pseudo_inverse(F)
            _, factors = strategy.least_squares(F, B)
            guard.check()
            strategy.lstsq_backward(factors, F, B, X, G)
            guard.check()
            LU = guard.watch(torch.linalg.lu_factor(F)[0], "the factors given to lu_backward")
            order = guard.watch(
                torch.arange(m, device=device()).flip(0), "the row order given to lu_backward"
            )
            bar = guard.watch(numbered(shape, dtype, 18), "the cotangent of lu")
            strategy.lu_backward(LU, order, bar)
            guard.check()
            if m == n:
                strategy.inverse(F)
                strategy.solve(F, B)
                strategy.solve_backward(inverse, X, G)
                strategy.inv_backward(inverse, cotangent)
                strategy.det_backward(LU, order, guard.watch(LU[0, 0].clone(), "the scale of det"))
                strategy.factor(LU, Structure.UPPER)
                guard.check()


class _Guard:
    """Remembers tensors as they were."""

    def __init__(self) -> None:
        self._watched: list[tuple[Tensor, Tensor, str]] = []

    def watch(self, tensor: Tensor, what: str) -> Tensor:
        self._watched.append((tensor, tensor.clone(), what))
        return tensor

    def check(self) -> None:
        for tensor, before, what in self._watched:
            require(torch.equal(tensor, before), f"{what} was overwritten")


def _check_global_state(strategy: Strategy) -> None:
    """Neither the generators nor any setting of the process is touched."""
    for dtype in (torch.float32, torch.complex128):
        before = snapshot()
        strategy.factor(numbered((6, 4), dtype, 19))
        for _ in _supported(_cases(dtype), strategy):
            pass
        differences = changed(before)
        require(not differences, f"changed in the process: {', '.join(differences)}")


def _check_result_dtype(strategy: Strategy) -> None:
    for dtype in DTYPES:
        inverse = strategy.factor(numbered((6, 4), dtype, 20))
        b, x = numbered((6, 2), dtype, 21), numbered((4, 2), dtype, 22)
        results = {
            "dense()": inverse.dense(),
            "apply(b)": inverse.apply(b),
            "apply_adjoint(x)": inverse.apply_adjoint(x),
            "apply_gram(x)": inverse.apply_gram(x),
            "range_complement(b)": inverse.range_complement(b),
            "null_complement(x)": inverse.null_complement(x),
        }
        for what, result in results.items():
            require(result.dtype == dtype, f"{what} of {dtype} is {result.dtype}")
        LU, cotangent = numbered((4, 4), dtype, 23) + 4, numbered((4, 4), dtype, 24)
        found = strategy.lu_backward(LU, torch.arange(4, device=device()), cotangent).dtype
        require(found == dtype, f"lu_backward of {dtype} is {found}")


def _check_working_precision(strategy: Strategy) -> None:
    """Single precision is computed in single precision: else its times and errors compare nothing.

    Torch operations are watched for double precision. A detour outside torch, NumPy's, shows in a
    gradient that is more accurate than single precision can make it at κ = 10⁴.
    """
    for dtype in (torch.float32, torch.complex64):
        watch = _WiderThan(dtype)
        for case in _cases(dtype):
            case.inputs()  # drawn in double precision, and kept
            with watch, contextlib.suppress(UnsupportedError):
                backward_of(case, strategy)()
        require(
            not watch.found,
            f"{dtype}: double precision within, in {', '.join(sorted(watch.found))}",
        )
        for operation, shape in (("pinv", (12, 6)), ("inv", (12, 12)), ("lstsq", (12, 6))):
            case = Case(operation, shape, 0, dtype, device(), log10_cond=3.0)
            ratio = 1e3 * ratio_of(case, strategy)
            require(
                ratio > 2,
                f"{case.label}: the error is {ratio * measures.unit_roundoff(dtype):.1e}, a mere "
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
        for tensor in result if isinstance(result, tuple | list) else (result,):
            is_number = isinstance(tensor, Tensor) and (
                tensor.is_floating_point() or tensor.is_complex()
            )
            # Tolerances may be double: they decide a rank, and their rounding enters no result.
            if is_number and tensor.ndim >= 2 and tensor.dtype.to_real().itemsize > self._width:
                self.found.add(str(func.overloadpacket))
        return result


def _check_memory_layout(strategy: Strategy) -> None:
    """Transposed, strided, expanded and lazily conjugated tensors are matrices like any other."""
    for dtype in (torch.float64, torch.complex128):
        F, b = numbered((2, 6, 4), dtype, 27), numbered((2, 6, 3), dtype, 28)
        layouts: dict[str, Callable[[Tensor], Tensor]] = {
            "column-major": lambda t: t.mT.contiguous().mT,
            "strided": lambda t: t.repeat_interleave(2, -1)[..., ::2],
            "lazily conjugated": lambda t: t.mH.resolve_conj().contiguous().mH,
            "with the batch innermost": lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0),
        }
        expected = strategy.factor(F)
        for what, laid_out in layouts.items():
            found = strategy.factor(laid_out(F))
            close(found.dense(), expected.dense(), f"{what}: dense()")
            close(found.apply(laid_out(b)), expected.apply(b), f"{what}: apply(b)")
            LU, bar = F[:, :4] + 4 * torch.eye(4).to(F), b[:, :4].repeat(1, 1, 2)[..., :4]
            order = torch.arange(4, device=device()).expand(2, 4)
            close(
                strategy.lu_backward(laid_out(LU), order, laid_out(bar)),
                strategy.lu_backward(LU, order, bar),
                f"{what}: lu_backward",
            )
        same = F[:1].expand(3, 6, 4)
        close(strategy.factor(same).dense(), expected.dense()[:1].expand(3, 4, 6), "expanded")


def _check_not_finite(strategy: Strategy) -> None:
    """NaN in one matrix of a batch never gives numbers for it that look right."""
    if strategy.requires_full_rank:
        F = numbered((2, 4, 4), torch.float64, 29)
        F[1, 2, 1] = math.nan
        try:
            dense = strategy.factor(F).dense()
        except RuntimeError:
            return
        require(bool(dense[1].isnan().any()), "the inverse of a matrix with NaN holds none")
        return
    raise NotApplicableError("an SVD may refuse NaN in its own words")


CHECKS: tuple[Check, ...] = (
    Check("declaration", _check_declaration),
    Check("determinism", _check_determinism),
    Check("repeated backward", _check_repeated_backward),
    Check("no state", _check_no_state),
    Check("inputs kept", _check_inputs_kept),
    Check("global state kept", _check_global_state),
    Check("result dtype", _check_result_dtype),
    Check("working precision", _check_working_precision),
    Check("memory layouts", _check_memory_layout),
    Check("not a number", _check_not_finite),
)

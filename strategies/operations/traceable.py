"""What a call of a function becomes: the function, or what stands for it where values are not to be read.

A compiler, a tracer and a subclass that defines what operators do are shown one operator; a subclass that
defines what functions do, the public function. Levels of torch.func that differentiate are shown an
operator where that keeps for the gradient what the operation has computed; where it would compute it again,
the function.

With `out=` it is PyTorch's own function, which allows no gradient then. A strategy is a way to
differentiate, so there is nothing for it to do.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from strategies.autograd.choice import are_matrices, are_of_kind
from strategies.autograd.cpp import is_ordinary, is_transformed, python_calls
from strategies.autograd.half_precision import TOLERANCES, in_single_precision, is_concerned
from strategies.autograd.operators import EAGER
from strategies.autograd.tracing import (
    has_no_values,
    is_batched,
    is_traced,
    orders_by_operators,
    special,
)
from strategies.kernels import extension
from strategies.kernels.cpu.specs import is_for_blas
from strategies.operations.right_hand_sides import fit
from strategies.operations.vmapped import vmapped

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _are_alike(A: Tensor, B: Tensor) -> bool:
    """Whether B, vectors or columns, is in batches as A is."""
    is_usual = are_matrices(A) and are_of_kind(A, B) and B.ndim in (A.ndim - 1, A.ndim)
    return is_usual and B.shape[: A.ndim - 2] == A.shape[:-2]


_KEPT: dict[str, Callable[..., bool]] = {
    "solve": lambda A, B, *, left=True, **_: _are_alike(A, B) or fit(A, B, left),
    "solve_ex": lambda A, B, *, left=True, **_: left and _are_alike(A, B),
    "lstsq": lambda A, B, rcond=None, *, driver=None, **_: (
        _are_alike(A, B) and not isinstance(rcond, Tensor) and driver is None
    ),
    "cholesky_solve": lambda B, L, *_, **__: fit(L, B, left=True),
    "pinv": lambda A, *, atol=None, rtol=None, hermitian=False, **_: (
        are_matrices(A)
        and not any(isinstance(each, Tensor) for each in (atol, rtol))
        and not hermitian
    ),
    "qr": lambda A, mode="reduced", **_: (
        mode == "reduced" and are_matrices(A) and A.shape[-2] >= A.shape[-1]
    ),
    "solve_triangular": lambda A, B, *, left=True, **_: (
        _are_alike(A, B)
        and fit(A, B, left)
        and not is_for_blas(A.shape[-1], B.shape[-1 if left else -2])
    ),
    **dict.fromkeys(("eig", "lu_solve"), lambda *_, **__: False),
}
"""By function, for which calls its operator keeps what the gradient reads: those that its fast path takes.

Others' operators keep it of all calls. Of what is not kept, the gradient computes the operation again.
"""

_MOST_ORDERS = {"qr": 1, "solve_triangular": 1}
"""Up to which order derivatives under torch.func are faster by operators, where not all are."""


def flags_of(function: Callable[..., Any]) -> tuple[tuple[str, int], ...]:
    """The parameters that are annotated as bool: names, and places among the positional arguments.

    They take bools alone, as PyTorch does, since any string would be true.

    Example:
        >>> def f(A, upper: bool = False, *, left: bool = True): ...
        >>> flags_of(f)
        (('upper', 1), ('left', 2))
    """
    parameters = inspect.signature(function).parameters.values()
    # Annotations are strings where their module postpones them.
    return tuple(
        (each.name, i) for i, each in enumerate(parameters) if each.annotation in (bool, "bool")
    )


@functools.cache
def usual_calls(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """What computes calls of a function by its fast paths, without Python; None where nothing does.

    Takes a tuple and a dictionary of arguments. Returns None where the function is to be called.
    """
    calls = [
        each
        for each in function.__globals__.get("ATEN", ())
        if each.function == function.__name__ and each.compiled is not None
    ]
    if not calls:
        return None
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    returned = signature.return_annotation
    if isinstance(returned, str):  # where its module postpones annotations
        returned = function.__globals__[returned]
    return python_calls(
        list(signature.parameters),
        [... if each.default is each.empty else each.default for each in parameters],
        sum(each.kind is not each.KEYWORD_ONLY for each in parameters),
        calls,
        returned if issubclass(returned, tuple) else None,
    )


extension.DEPENDENT_CACHES.append(usual_calls)


def written(ours: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What PyTorch's function of the name of ours writes into `out` and returns.

    Operands by name are given by position, since PyTorch has other names for some.

    Raises:
        RuntimeError: an input requires a gradient; and whatever else PyTorch raises.
        TypeError: PyTorch's function takes no `out=`.

    Example:
        >>> out = torch.empty(1, 1)
        >>> from strategies.linalg import inv
        >>> written(inv, [], {"A": torch.tensor([[4.0]]), "out": out, "strategy": "auto"}) is out
        True
    """
    name, rest = ours.__name__, {key: options[key] for key in options if key != "strategy"}
    parameters = list(inspect.signature(ours).parameters.values())[len(arguments) :]
    by_position = [
        rest.pop(each.name)
        for each in parameters
        if each.default is each.empty
        and each.kind is each.POSITIONAL_OR_KEYWORD
        and each.name in rest
    ]
    function = getattr(torch.linalg, name, None) or getattr(torch, name)
    return function(*arguments, *by_position, **rest)


def takes_out(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, and with `out=` that of PyTorch by its name."""

    @functools.wraps(function)
    def with_out(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        if options.get("out") is not None:
            result: Result = written(function, arguments, options)
            return result
        options.pop("out", None)
        if is_concerned(arguments, options):
            return cast(Result, in_single_precision(with_out, arguments, options))
        return function(*arguments, **options)

    return with_out


def traceable_by(
    traced: Callable[Parameters, Result],
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator: the function, and where values are not to be read, what stands for it."""

    def decorated(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        EAGER[function.__name__] = function
        flags = flags_of(function)
        is_kept = _KEPT.get(function.__name__, lambda *_, **__: True)
        most_orders = _MOST_ORDERS.get(function.__name__, 2)

        @functools.wraps(function)
        def by_values_or_shapes(
            *arguments: Parameters.args, **options: Parameters.kwargs
        ) -> Result:
            if (
                not is_compiling()
                and (compute := usual_calls(function)) is not None
                and (computed := compute(arguments, options)) is not None
            ):
                return cast(Result, computed)
            if options:
                if options.get("out") is not None:
                    result: Result = written(function, arguments, options)
                    return result
                options.pop("out", None)
            for name, place in flags:
                given = arguments[place] if place < len(arguments) else options.get(name, False)
                if type(given) is not bool:
                    raise TypeError(
                        f"linalg.{function.__name__}: {name} must be a bool, not {type(given).__name__}"
                    )
            if not is_compiling():
                if is_ordinary(arguments, options):
                    return function(*arguments, **options)
                if is_transformed(arguments, options):
                    return under_transforms(arguments, options)
            if is_concerned(arguments, options):
                return cast(Result, in_single_precision(by_values_or_shapes, arguments, options))
            if is_compiling():
                return traced(*arguments, **options)
            found = special((*arguments, *options.values()) if options else arguments)
            if found and has_torch_function(found):
                return handle_torch_function(by_values_or_shapes, found, *arguments, **options)
            if is_traced() or (found and any(map(has_no_values, found))):
                return traced(*arguments, **options)
            return under_transforms(arguments, options)

        def under_transforms(arguments: tuple[Any, ...], options: dict[str, Any]) -> Result:
            if (mapped := vmapped(by_values_or_shapes, arguments, options)) is not None:
                return cast(Result, mapped)
            if any(is_batched(options.get(name)) for name in TOLERANCES):
                return traced(*arguments, **options)
            is_auto = options.get("strategy", "auto") == "auto"
            if (
                is_auto
                and 0 < orders_by_operators((*arguments, *options.values())) <= most_orders
                and is_kept(*arguments, **options)
            ):
                return traced(*arguments, **options)
            return function(*arguments, **options)

        return by_values_or_shapes

    return decorated

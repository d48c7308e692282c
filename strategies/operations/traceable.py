"""What a call of a function becomes: the function, or what stands for it where values are not to be read.

A compiler, a tracer and a subclass that defines what operators do are shown one operator; a subclass that
defines what functions do, the public function. Levels of torch.func that differentiate are shown an
operator where that keeps for the gradient what the operation has computed; where it would compute it again,
the function.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function

from strategies.autograd.cpp import is_ordinary, is_transformed
from strategies.autograd.half_precision import TOLERANCES, in_single_precision, is_concerned
from strategies.autograd.operators import EAGER
from strategies.autograd.tracing import (
    has_no_values,
    is_batched,
    is_traced,
    orders_by_operators,
    special,
)
from strategies.operations.flags import flags_of, no_bool
from strategies.operations.kept import KEPT, MOST_ORDERS
from strategies.operations.out import written
from strategies.operations.vmapped import vmapped

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def traceable_by(
    traced: Callable[Parameters, Result],
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator: the function, and where values are not to be read, what stands for it."""

    def decorated(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        EAGER[function.__name__] = function
        flags = flags_of(function)
        is_kept = KEPT.get(function.__name__, lambda *_, **__: True)
        most_orders = MOST_ORDERS.get(function.__name__, 2)

        @functools.wraps(function)
        def by_values_or_shapes(
            *arguments: Parameters.args, **options: Parameters.kwargs
        ) -> Result:
            if options:
                if options.get("out") is not None:
                    result: Result = written(function, arguments, options)
                    return result
                options.pop("out", None)
            for name, place in flags:
                given = arguments[place] if place < len(arguments) else options.get(name, False)
                if type(given) is not bool:
                    raise no_bool(function.__name__, name, given)
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

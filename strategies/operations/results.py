"""Named results of operations."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["from_fields_or_iterable"]

Result = TypeVar("Result", bound=type[tuple[Any, ...]])


def from_fields_or_iterable(result: Result) -> Result:
    """Lets a `NamedTuple` be made of one iterable, too, as `torch.return_types` are.

    `Tensor.__torch_function__` does so with what a function returns for tensors of a subclass.

    Example:
        >>> from strategies.linalg import SlogdetResult
        >>> SlogdetResult(each for each in (1, 2))
        SlogdetResult(sign=1, logabsdet=2)
    """
    from_fields: Any = result.__new__

    def new(cls: Result, *fields: Any, **named: Any) -> Any:
        is_iterable = len(fields) == 1 and not named
        return from_fields(cls, *(fields[0] if is_iterable else fields), **named)

    setattr(result, "__new__", new)  # noqa: B010 - mypy allows no assignment
    return result

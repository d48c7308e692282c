"""Named results of operations."""

from typing import Any, NamedTuple, TypeVar

from torch import Tensor

Result = TypeVar("Result", bound=type[tuple[Any, ...]])


def _from_fields_or_iterable(result: Result) -> Result:
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


@_from_fields_or_iterable
class CholeskyExResult(NamedTuple):
    """What `cholesky_ex` returns; the fields of `torch.linalg.cholesky_ex`."""

    L: Tensor
    info: Tensor


@_from_fields_or_iterable
class EigResult(NamedTuple):
    """What `eig` returns; the fields of `torch.linalg.eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@_from_fields_or_iterable
class InvExResult(NamedTuple):
    """What `inv_ex` returns; the fields of `torch.linalg.inv_ex`."""

    inverse: Tensor
    info: Tensor


@_from_fields_or_iterable
class LUFactorExResult(NamedTuple):
    """What `lu_factor_ex` returns; the fields of `torch.linalg.lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@_from_fields_or_iterable
class LUFactorResult(NamedTuple):
    """What `lu_factor` returns; the fields of `torch.linalg.lu_factor`."""

    LU: Tensor
    pivots: Tensor


@_from_fields_or_iterable
class LUResult(NamedTuple):
    """What `lu` returns; the fields of `torch.linalg.lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


@_from_fields_or_iterable
class LstsqResult(NamedTuple):
    """What `lstsq` returns; the fields of `torch.linalg.lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@_from_fields_or_iterable
class QRResult(NamedTuple):
    """What `qr` returns; the fields of `torch.linalg.qr`."""

    Q: Tensor
    R: Tensor


@_from_fields_or_iterable
class SlogdetResult(NamedTuple):
    """What `slogdet` returns; the fields of `torch.linalg.slogdet`."""

    sign: Tensor
    logabsdet: Tensor


@_from_fields_or_iterable
class SolveExResult(NamedTuple):
    """What `solve_ex` returns; the fields of `torch.linalg.solve_ex`."""

    result: Tensor
    info: Tensor

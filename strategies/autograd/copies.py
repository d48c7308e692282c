"""Copies that autograd needs of tensors that are, or share memory with, others."""

from collections.abc import Sequence

from torch import Tensor

from strategies.kernels.memory import is_addressable, materialized


def with_own_tangent(result: Tensor, given: set[int]) -> Tensor:
    """The result, copied where it is a view or one of the tensors given, by identity.

    Forward mode has no tangent for a view of another tensor, and an autograd function may not return
    what it was given. NumPy takes no lazy conjugate, which in inference mode is no view.
    """
    is_to_copy = id(result) in given or result._is_view() or result.is_conj()
    return result.clone() if is_to_copy else result


def with_own_memory(result: Tensor, given: tuple[Tensor, ...]) -> Tensor:
    """The result, copied where it shares memory with one of the tensors given.

    A gradient becomes `.grad`, which is written to. The transpose of a new tensor is left as it is.
    """
    owner = result._base if result._is_view() else result
    is_shared = any(owner is tensor or owner is tensor._base for tensor in given)
    return result.clone() if is_shared or result.is_conj() else result


def apart(outputs: Sequence[Tensor], given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Outputs in memory of their own, row by row, as `new_empty` of their shapes has it."""
    known = {each.untyped_storage().data_ptr() for each in given if is_addressable(each)}

    def copied(output: Tensor) -> Tensor:
        if not output.numel():
            return output.new_empty(output.shape)
        own = materialized(output.detach()).contiguous()
        return own.clone() if own.untyped_storage().data_ptr() in known else own

    return tuple(map(copied, outputs))

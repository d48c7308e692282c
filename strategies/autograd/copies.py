"""Copies that autograd needs of tensors that are, or share memory with, others."""

from torch import Tensor


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

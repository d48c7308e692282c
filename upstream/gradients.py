"""The check of a derivative, in the orders and modes in which PyTorch's tests check theirs."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from upstream.patch import Gradient

__all__ = ["check_gradients"]


def check_gradients(case: Gradient) -> None:
    """Compares derivatives with finite differences, as PyTorch's own tests of gradients do.

    First order in reverse and forward mode and batched, second order in reverse mode and forward over
    reverse.

    Raises:
        RuntimeError: a derivative differs, or is not the patch's.
    """
    if "OverrideBackward" not in set(_nodes(case.function(*case.inputs))):
        raise RuntimeError("the derivative is PyTorch's")
    gradcheck(
        case.function, case.inputs, fast_mode=True, check_forward_ad=True, check_batched_grad=True
    )
    gradgradcheck(case.function, case.inputs, fast_mode=True, check_fwd_over_rev=True)


def _nodes(outputs: Tensor | tuple[Tensor, ...]) -> Iterator[str]:
    """The names of the nodes of a graph."""
    outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
    waiting, seen = [output.grad_fn for output in outputs], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node.name().split("::")[-1]
        waiting += [following for following, _ in node.next_functions]

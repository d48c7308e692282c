"""The samples by which PyTorch tests the derivatives of its operations."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

# Private, but there is no public list of operations with samples.
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

from upstream.patch import Gradient

_DTYPES = torch.float64, torch.complex128


def gradients(names: tuple[str, ...]) -> Iterator[Gradient]:
    """All samples of operations, in double precision, real and complex.

    Raises:
        LookupError: an operation is not in PyTorch's list.
    """
    for name in names:
        found = [each for each in op_db if each.name == name]
        if not found:
            raise LookupError(f"PyTorch has no samples of {name}")
        for operation in found:
            for dtype in _DTYPES:
                yield from _samples(operation, dtype)


def _samples(operation: Any, dtype: torch.dtype) -> Iterator[Gradient]:
    for i, sample in enumerate(operation.sample_inputs("cpu", dtype, requires_grad=True)):
        call = _Call(operation, sample)
        outputs = call.outputs(*call.leaves)
        call.differentiable = [i for i, each in enumerate(outputs) if each.requires_grad]
        if call.differentiable:
            yield Gradient(f"{operation.formatted_name} {dtype} {i}", call, call.leaves)


class _Call:
    """A sample's differentiable results as a function of the tensors that require a gradient."""

    def __init__(self, operation: Any, sample: Any) -> None:
        self.operation, self.sample = operation, sample
        self.given, self.form = tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [
            i for i, each in enumerate(self.given) if getattr(each, "requires_grad", False)
        ]
        self.leaves = tuple(self.given[place] for place in self.places)
        self.differentiable: list[int] = []

    def __call__(self, *leaves: Tensor) -> tuple[Tensor, ...]:
        outputs = self.outputs(*leaves)
        return tuple(outputs[i] for i in self.differentiable)

    def outputs(self, *leaves: Tensor) -> list[Tensor]:
        filled = list(self.given)
        for place, leaf in zip(self.places, leaves, strict=True):
            filled[place] = leaf
        first, arguments, options = tree_unflatten(filled, self.form)
        found = self.operation.gradcheck_wrapper(self.operation.op, first, *arguments, **options)
        flat = tree_flatten(self.sample.output_process_fn_grad(found))[0]
        return [each for each in flat if isinstance(each, Tensor)]

"""The whole forward of one small matrix in one compiled call, and its whole backward in another.

For the smallest matrices the time goes to what stands around the arithmetic: calls, checks and views. A
`Plan` is a lane (`strategies.kernels.cpu.lanes`) for tensors of given shapes and strides, in which
nothing is left to be found out but addresses.

A loop reports an input that is not the usual case: one that is nearly deficient, has no pivot, grows in
the elimination, or has a norm that is far from one. What it computed is not used then.
"""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from strategies.kernels.cpu.compilation import entry
from strategies.kernels.cpu.kernel import DTYPES, IS_COMPILED, watchers
from strategies.kernels.cpu.lanes import LANES, Lane, Place, Problem, byte_vector, columns, rows
from strategies.kernels.cpu.task import ARGUMENT_WORDS, HEADER_WORDS, REPORT_WORD

__all__ = ["Plan", "plan"]

Tensors = tuple[Tensor, ...]
Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides of a tensor of up to two dimensions."""

_MOST_ENTRIES = 2**16
"""Of a matrix; for larger ones what stands around the arithmetic takes no time to speak of."""


class _Loop:
    """A compiled loop for one matrix, with the block of its task but for the addresses.

    Args:
        name: as in `compilation.entry`.
        dtype: of the matrices.
        arguments: sizes and strides.
        flops: told to whoever watches.
    """

    def __init__(
        self, name: str, dtype: torch.dtype, arguments: Sequence[Layout], flops: float
    ) -> None:
        self._entry, self._flops = entry(name, dtype), flops
        words = [0, 1, 1, 0]
        for size, stride in arguments:
            words += (0, 1, *size, 0, *stride)
        self._block = array("q", words)

    def __call__(
        self, first: Sequence[Tensor], offsets: Sequence[int], last: Sequence[Tensor], kept: Tensors
    ) -> bool:
        """Whether the loop did it, of tensors, parts of what is kept, and more tensors.

        They live until it returns.
        """
        block, position = self._block[:], HEADER_WORDS
        for tensor in first:
            block[position] = tensor.data_ptr()
            position += ARGUMENT_WORDS
        if offsets:
            base = kept[-1].data_ptr()
            for offset in offsets:
                block[position] = base + offset
                position += ARGUMENT_WORDS
        for tensor in last:
            block[position] = tensor.data_ptr()
            position += ARGUMENT_WORDS
        self._entry(block.buffer_info()[0])
        for watcher in watchers:
            watcher(self._flops)
        return not block[REPORT_WORD]


class Plan:
    """A lane for inputs of given sizes and strides.

    What the backward needs besides inputs and outputs is kept in one tensor of bytes, if it needs any.

    Attributes:
        arity: how many inputs there are.
        cotangents: positions of the outputs whose cotangents `backward` takes.
        constant: positions of the outputs that are not differentiable.
        saved: positions of the outputs that `backward` is given.
    """

    def __init__(self, lane: Lane, problem: Problem, inputs: Sequence[Layout]) -> None:
        self.arity, outputs = len(inputs), len(lane.outputs)
        self.cotangents = tuple(lane.cotangents)
        differentiable = {*lane.cotangents, *lane.rarely}
        self.constant = tuple(i for i in range(outputs) if i not in differentiable)
        self.saved = tuple(i - self.arity for i in lane.reads if 0 <= i - self.arity < outputs)
        self._lane, self._problem = lane, problem
        self._allocators = [place.allocator() for place in lane.outputs]
        self._written = [i for i, place in enumerate(lane.outputs) if not place.is_empty]
        *offsets, size = itertools.accumulate((place.bytes for place in lane.kept), initial=0)
        keep = [byte_vector(size)] if offsets else []
        self._keepers, self._offsets = [place.allocator() for place in keep], offsets
        views = [_as_matrix(layout) for layout in inputs]
        if lane.is_transposed:
            views[0] = _transposed(views[0])
        known = [*views, *map(_seen, lane.outputs), *map(_seen, lane.kept)]
        factor = 4 if problem.dtype.is_complex else 1
        forward_flops, self._backward_flops = (factor * flops for flops in lane.flops)
        arguments = [*views, *(known[self.arity + i] for i in self._written)]
        arguments += map(_seen, lane.kept)
        name = f"fused_forward.{lane.forward}"
        self._forward = _Loop(name, problem.dtype, arguments, forward_flops)
        # What is saved are inputs, some outputs, and then all that is kept.
        saved = [*range(self.arity), *(self.arity + i for i in self.saved)]
        first_kept = self.arity + outputs
        self._reads = [saved.index(i) for i in lane.reads if i < first_kept]
        self._reads_kept = [offsets[i - first_kept] for i in lane.reads if i >= first_kept]
        self._read_views = [known[i] for i in lane.reads]
        strides = (stride for _, stride in inputs)
        of_outputs = (lane.outputs[i].stride for i in self.saved)
        self._saved_strides = (*strides, *of_outputs, *(place.stride for place in keep))
        self._gradients = [
            (columns if lane.is_transposed else rows)(problem.m, problem.n, problem.dtype),
            *([problem.like_rhs(problem.m)] if self.arity > 1 else []),
        ]
        self._gradient_allocators = [place.allocator() for place in self._gradients]
        self._backwards: dict[tuple[tuple[int, ...], ...], _Loop] = {}

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        """Outputs and what is kept; None if the inputs are not a usual case."""
        outputs = tuple([allocate() for allocate in self._allocators])
        kept = tuple([allocate() for allocate in self._keepers])
        tensors = [*inputs, *[outputs[i] for i in self._written]]
        return (outputs, kept) if self._forward(tensors, self._offsets, (), kept) else None

    def zeros(self, output: int) -> Tensor:
        """The cotangent of an output that has none."""
        return self._allocators[output]().zero_()

    def backward(self, saved: Tensors, cotangents: Tensors) -> list[Tensor] | None:
        """The gradients of the inputs; None if the cotangents are not a usual case.

        Args:
            saved: the inputs, those outputs that `saved` names, and what is kept.
            cotangents: of the outputs that have one.
        """
        for tensor, stride in zip(saved, self._saved_strides, strict=True):
            if tensor.stride() != stride:  # a hook may return another tensor than it was given
                return None
        strides = tuple([cotangent.stride() for cotangent in cotangents])
        loop = self._backwards.get(strides)
        if loop is None:
            loop = self._backwards[strides] = self._backward_of(strides)
        gradients = [allocate() for allocate in self._gradient_allocators]
        read = [saved[i] for i in self._reads]
        is_done = loop(read, self._reads_kept, [*cotangents, *gradients], saved)
        return gradients if is_done else None

    def _backward_of(self, strides: tuple[tuple[int, ...], ...]) -> _Loop:
        lane = self._lane
        sizes = (lane.outputs[i].size for i in lane.cotangents)
        views = [_as_matrix(layout) for layout in zip(sizes, strides, strict=True)]
        if lane.is_transposed:
            views[0] = _transposed(views[0])
        arguments = [*self._read_views, *views, *map(_seen, self._gradients)]
        name = f"fused_backward.{lane.backward}"
        return _Loop(name, self._problem.dtype, arguments, self._backward_flops)


def _seen(place: Place) -> Layout:
    return place.extents, (place.extents[1], 1)


def _as_matrix(layout: Layout) -> Layout:
    size, stride = layout
    return (*size, 1, 1)[:2], (*stride, 1, 1)[:2]


def _transposed(layout: Layout) -> Layout:
    return layout[0][::-1], layout[1][::-1]


def plan(operation: str, dtype: torch.dtype, *inputs: Layout) -> Plan | None:
    """How to compute an operation of one matrix, if there is a lane for it and it pays.

    Example:
        >>> plan("inv", torch.float64, ((2, 3), (3, 1))) is None
        True
    """
    m, n = inputs[0][0]
    rhs = inputs[1][0] if len(inputs) > 1 else (m, 0)
    problem = Problem(m, n, rhs[1] if len(rhs) > 1 else 1, len(rhs) == 1, dtype)
    is_square = operation in ("inv", "solve", "det", "slogdet")
    if not (
        operation in LANES
        and _is_possible()
        and dtype in DTYPES
        and 0 < m * n <= _MOST_ENTRIES
        and rhs[0] == m
        and (len(inputs) == 1 or 0 < problem.k <= _MOST_ENTRIES // m)
        and not (is_square and m != n)
    ):
        return None
    lane = LANES[operation](problem)
    return None if lane is None else Plan(lane, problem, inputs)


@functools.cache
def _is_possible() -> bool:
    if not IS_COMPILED:
        return False
    from strategies.kernels.cpu.blas import IS_AVAILABLE

    return IS_AVAILABLE

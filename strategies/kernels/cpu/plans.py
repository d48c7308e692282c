"""The whole forward of small matrices in one compiled call, and their whole backward in another.

For the smallest matrices the time goes to what stands around the arithmetic: calls, checks and views. A
`Plan` is a spec (`strategies.kernels.cpu.specs`) for tensors of given shapes and strides, in which
nothing is left to be found out but addresses.

A kernel declines an input for which it is not stable: one that is nearly deficient, has no pivot, grows in
the elimination, or has a norm that is far from one. What it computed is not used then.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from strategies.kernels.cpu.launch import Launch, Layout
from strategies.kernels.cpu.library import DTYPES, is_available
from strategies.kernels.cpu.problem import KernelSpec, Problem
from strategies.kernels.cpu.specs import SPECS, Spec
from strategies.kernels.cpu.tensor_specs import INFO, TensorSpec, columns, rows, vector

Tensors = tuple[Tensor, ...]

_MOST_ENTRIES = 2**22
"""Of a matrix. Up to here kernels were measured to be faster than the same steps by operations of torch."""

_MOST_LAUNCHES = 64
"""Of a backward, each for cotangents of other strides, that are kept."""

_OF_ANY_SHAPE = "lu_factor", "lu_factor_ex", "lu", "pinv", "lstsq", "qr"
"""What takes matrices that are not square, too."""


class Plan:
    """A spec for inputs of given sizes and strides.

    What the backward needs besides inputs and outputs is kept in one tensor of bytes, if it needs any.

    Args:
        build: what the spec is from.
        views, strides: of the inputs, the former as kernels see them.
        not_saved: positions of outputs that are not saved; None where those alone are that the kernel of
            the backward reads.
        reports: whether `INFO` is an output more.

    Attributes:
        arity: how many inputs there are.
        outputs: what is allocated for them, and gradients likewise.
        written: positions of the outputs that the kernel of the forward writes.
        batch: sizes of the inputs' first dimensions.
        keeps: what is allocated for what is kept, if anything is: one vector of bytes.
        offsets: in it, of its parts.
        rank: as in `KernelSpec`, as is any_rank, and columns, which is the full rank.
        forward_launch: reads inputs, and writes the outputs that are written and what is kept.
        cotangents: positions of the outputs whose cotangents `backward` takes.
        optional: positions of those of which one may be missing.
        ignored: positions of outputs whose cotangents have no effect.
        constant: positions of the outputs that are not differentiable.
        saved: positions of the outputs that `backward` is given.
        saved_strides: of inputs, these outputs, and what is kept.
        reads: positions among these that the backward's kernel reads, and reads_kept, offsets of parts.
    """

    def __init__(
        self,
        build: Spec,
        spec: KernelSpec,
        problem: Problem,
        batch: tuple[int, ...],
        views: list[Layout],
        strides: list[tuple[int, ...]],
        tolerances: tuple[float, float],
        not_saved: Sequence[int] | None,
        reports: bool,
    ) -> None:
        self._spec = spec = spec.batched(batch)
        self.batch, self._problem, self._build = batch, problem, build
        self.rank, self.any_rank, self.columns = spec.rank, spec.any_rank, problem.n
        self.outputs = [*spec.outputs, *[INFO.batched(batch)] * reports]
        self.arity, outputs = len(views), len(spec.outputs)
        self.cotangents = tuple(spec.cotangents)
        self.optional, self.ignored = tuple(spec.optional), tuple(spec.ignored)
        differentiable = {*spec.cotangents, *spec.ignored}
        self.constant = tuple(i for i in range(len(self.outputs)) if i not in differentiable)
        self.saved = tuple(i - self.arity for i in spec.reads if 0 <= i - self.arity < outputs)
        if not_saved is not None:
            self.saved += tuple(i for i in range(outputs) if i not in (*self.saved, *not_saved))
        self._allocators = [place.allocator() for place in self.outputs]
        self.written = [i for i, place in enumerate(spec.outputs) if not place.is_empty]
        *offsets, size = itertools.accumulate((place.bytes for place in spec.kept), initial=0)
        self.keeps = [vector(size, torch.uint8)] if offsets else []
        self._keepers, self.offsets = [place.allocator() for place in self.keeps], offsets
        if spec.is_transposed:
            views = [_transposed(views[0]), *views[1:]]
        known = [*views, *map(_seen, spec.outputs), *map(_seen, spec.kept)]
        factor = 4 if problem.dtype.is_complex else 1
        forward_flops, self._backward_flops = (factor * flops for flops in spec.flops)
        arguments = [*views, *(known[self.arity + i] for i in self.written)]
        arguments += map(_seen, spec.kept)
        self.forward_launch = Launch(spec.forward, problem, arguments, forward_flops, tolerances)
        # What is saved are inputs, some outputs, and then all that is kept.
        saved = [*range(self.arity), *(self.arity + i for i in self.saved)]
        first_kept = self.arity + outputs
        self.reads = [saved.index(i) for i in spec.reads if i < first_kept]
        self.reads_kept = [offsets[i - first_kept] for i in spec.reads if i >= first_kept]
        self._read_views = [known[i] for i in spec.reads]
        of_outputs = (spec.outputs[i].stride for i in self.saved)
        self.saved_strides = (*strides, *of_outputs, *(place.stride for place in self.keeps))
        by_columns = spec.is_transposed != spec.by_columns
        of_matrix = (columns if by_columns else rows)(problem.m, problem.n, problem.dtype)
        gradients = [of_matrix, problem.like_rhs(problem.m)][: self.arity]
        self.gradients = [place.batched(batch) for place in gradients]
        self._gradient_allocators = [place.allocator() for place in self.gradients]
        self._launch_of = functools.lru_cache(_MOST_LAUNCHES)(self.backward_launch)

    def forward(self, inputs: Tensors) -> tuple[Tensors, Tensors] | None:
        """Outputs and what is kept; None if the inputs are not a usual case."""
        outputs = tuple([allocate() for allocate in self._allocators])
        kept = tuple([allocate() for allocate in self._keepers])
        tensors = [*inputs, *[outputs[i] for i in self.written]]
        if not self.forward_launch(tensors, self.offsets, (), kept):
            return None
        if self.rank is not None:
            rank, of_full_rank = self.rank
            if not bool((outputs[rank] == self.columns).all()):
                nothing = outputs[of_full_rank].new_empty(0)
                outputs = (*outputs[:of_full_rank], nothing, *outputs[of_full_rank + 1 :])
        return outputs, kept

    def parts(self, *kept: Tensor) -> Tensors:
        """The tensors in what is kept; what lies by columns is transposed."""
        return tuple(
            kept[0]
            .view(place.dtype)
            .as_strided(place.size, place.stride, offset // place.dtype.itemsize)
            for offset, place in zip(self.offsets, self._spec.kept, strict=True)
        )

    def zeros(self, output: int) -> Tensor:
        """The cotangent of an output that has none."""
        return self._allocators[output]().zero_()

    def backward(self, saved: Tensors, cotangents: Sequence[Tensor | None]) -> list[Tensor] | None:
        """The gradients of the inputs; None if the cotangents are not a usual case.

        They read the inputs, those outputs that `saved` names, and what is kept. A cotangent is None if it
        may be missing.
        """
        for tensor, stride in zip(saved, self.saved_strides, strict=True):
            # A hook may return another tensor than it was given; unread inputs are not saved.
            if tensor is not None and tensor.stride() != stride:
                return None
        launch = self._launch_of(
            tuple([None if each is None else each.stride() for each in cotangents])
        )
        if launch is None:
            return self.backward(
                saved, [None if each is None else each.contiguous() for each in cotangents]
            )
        gradients = [allocate() for allocate in self._gradient_allocators]
        read = [saved[i] for i in self.reads]
        is_done = launch(read, self.reads_kept, [*cotangents, *gradients], saved)
        return gradients if is_done else None

    def backward_launch(
        self, strides: tuple[tuple[int, ...] | None, ...], many: int | None = None
    ) -> Launch | None:
        """The kernel for cotangents of such strides; None where they are no sequence of matrices.

        A cotangent that is missing has none. Of one matrix there may be many of each, along a first
        dimension.
        """
        spec, problem, batch, read = self._spec, self._problem, self.batch, self._read_views
        gradients = self.gradients
        if many is not None:
            problem, batch = problem._replace(matrices=many), (many, *batch)
            read = [((many, *size[1:]), (0, *stride[1:])) for size, stride in read]
            spec, gradients = spec.batched((many,)), [each.batched((many,)) for each in gradients]
            by_many = self._build(problem)
            if by_many is not None and by_many.is_transposed == spec.is_transposed:
                spec = dataclasses.replace(spec, backward=by_many.backward)
        views = []
        for i, stride in zip(spec.cotangents, strides, strict=True):
            output = spec.outputs[i]
            if stride is None or output.is_empty:
                views.append(_seen(output))
                continue
            view = _as_matrices((output.size, stride), batch)
            if view is None:
                return None
            views.append(view)
        if spec.is_transposed:
            views[0] = _transposed(views[0])
        arguments = [*read, *views, *map(_seen, gradients)]
        return Launch(spec.backward, problem, arguments, self._backward_flops)


def _seen(tensor: TensorSpec) -> Layout:
    _, m, n = tensor.extents
    return tensor.extents, (m * n, n, 1)


def _as_matrices(layout: Layout, batch: tuple[int, ...]) -> Layout | None:
    """Matrices one after the other, a vector being one column; None if there is no step between them."""
    size, stride = layout
    step, expected = 0, None
    for extent, own in zip(reversed(batch), reversed(stride[: len(batch)]), strict=True):
        if extent == 1:
            continue
        if expected is None:
            step = own
        elif own != expected:
            return None
        expected = own * extent
    rest = len(batch)
    return (math.prod(batch), *(*size[rest:], 1, 1)[:2]), (step, *(*stride[rest:], 1, 1)[:2])


def is_sequence(layout: Layout, dimensions: int) -> bool:
    """Whether there is one step between the matrices, or vectors, of a batch of so many dimensions.

    Example:
        >>> is_sequence(((2, 3, 4, 4), (16, 32, 4, 1)), 2)
        False
    """
    return _as_matrices(layout, layout[0][:dimensions]) is not None


def _transposed(layout: Layout) -> Layout:
    (count, *size), (step, *stride) = layout
    return (count, *reversed(size)), (step, *reversed(stride))


def plan(
    holds: str,
    operation: str,
    dtype: torch.dtype,
    *inputs: Layout,
    tolerances: tuple[float, ...] = (),
    not_saved: Sequence[int] | None = None,
    reports: bool = False,
) -> Plan | None:
    """How to compute an operation of small matrices, if there are kernels for it and they pay.

    What the strategy holds is a key of `SPECS`. Inputs are sizes and strides: of A, of B, and of LAPACK's
    pivots. Tolerances are atol and rtol, where a rank is decided; by default 0 and max(m, n) ε.
    """
    *batch, m, n = inputs[0][0]
    rhs = inputs[1][0] if len(inputs) > 1 else (*batch, m, 0)
    rest = rhs[len(batch) :]
    k = rest[1] if len(rest) > 1 else 1
    problem = Problem(m, n, k, len(rest) == 1, dtype, math.prod(batch))
    if not (
        operation in SPECS[holds]
        and is_available()
        and dtype in DTYPES
        and 0 < m * n <= _MOST_ENTRIES
        and 0 not in batch
        and rhs[: len(batch) + 1] == (*batch, m)
        and len(rest) <= 2
        and (len(inputs) == 1 or 0 < problem.k <= _MOST_ENTRIES // m)
        and (m == n or operation in _OF_ANY_SHAPE)
        and (len(inputs) < 3 or inputs[2][0] == (*batch, m))
    ):
        return None
    build = SPECS[holds][operation]
    spec = build(problem)
    views = [view for layout in inputs if (view := _as_matrices(layout, tuple(batch)))]
    if spec is None or len(views) < len(inputs):
        return None
    strides = [stride for _, stride in inputs]
    atol, rtol = tolerances or (0.0, max(m, n) * torch.finfo(dtype).eps)
    return Plan(
        build, spec, problem, tuple(batch), views, strides, (atol, rtol), not_saved, reports
    )

"""Matrices in strange memory, and next to NaN: the answers stay the same."""

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch

from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import (
    Shaped,
    check_each,
    check_operations,
    close,
    numbered,
    require,
    shaped,
    skip_native,
)
from strategies.testing.problems import Layout, Problem, copied, matrices, problems, solved
from strategies.testing.rank_checks import METHODS, least_scale

LAYOUTS: dict[str, Layout] = {
    "column-major": lambda t: t.mT.contiguous().mT,
    "strided": lambda t: t.repeat_interleave(2, -1)[..., ::2],
    "part of larger rows": lambda t: torch.cat((t, t), -1)[..., : t.shape[-1]],
    "lazily conjugated": lambda t: t.mH.resolve_conj().contiguous().mH,
    "lazily negated": lambda t: torch._neg_view(t.neg()),
    "at an odd address": lambda t: torch.cat((t.new_zeros(1), t.reshape(-1)))[1:].view(t.shape),
    "with the batch innermost": lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0),
}

_problems = partial(
    problems, square=((4, 4), (3, 5, 5)), other=((5, 3), (3, 5), (3, 4, 4), (3, 6, 3))
)
_batches = partial(
    problems, square=((3, 4, 4), (3, 5, 5)), other=((3, 5, 3), (3, 3, 5), (3, 4, 4), (3, 6, 3))
)


class _Laid(NamedTuple):
    """A problem of which some tensors, of the inputs and the cotangents, are laid out in some way."""

    asked: Problem
    layout: str
    which: range

    def __str__(self) -> str:
        return str(self.asked)


def _laid(operation: Operation) -> Iterator[_Laid]:
    """Every input alone, the cotangents, and all of them."""
    for asked in _problems(operation, dtypes=(torch.float64, torch.complex64)):
        arity, count = len(asked.inputs), len(asked.inputs + asked.cotangents)
        which = *(range(i, i + 1) for i in range(arity)), range(arity, count), range(count)
        yield from itertools.starmap(_Laid, itertools.product([asked], LAYOUTS, which))


@check_operations("layouts in", _laid)
def _check_layouts(strategy: Strategy, case: _Laid) -> None:
    asked, arity = case.asked, len(case.asked.inputs)
    tensors = tuple(
        LAYOUTS[case.layout](tensor) if i in case.which and tensor.ndim >= 2 else tensor
        for i, tensor in enumerate(asked.inputs + asked.cotangents)
    )
    answers = solved(strategy, asked.operation, tensors[:arity], tensors[arity:])
    names = dict.fromkeys("AB"[i] if i < arity else "the cotangent" for i in case.which)
    asked.require_answers(*answers, where=f"{' and '.join(names)} {case.layout}: ")


@check_operations("expanded tensors in", _problems)
def _check_expanded(strategy: Strategy, asked: Problem) -> None:
    """Tensors whose strides are zero, as that of the cotangent after `.sum().backward()`."""
    batch = asked.expanded(3)
    batch.require_answers(*batch.solved_by(strategy), "one matrix expanded to three: ")
    ones = tuple(torch.ones_like(c) for c in asked.cotangents)
    scalar = tuple(torch.ones((), dtype=c.dtype, device=c.device).expand(c.shape) for c in ones)
    answers = partial(solved, strategy, asked.operation, asked.inputs)
    plain, expanded = answers(ones)[1], answers(scalar)[1]
    for name, found, expected in zip("AB", expanded, plain, strict=False):
        close(found, expected, f"the gradient of {name} by a number expanded to ones, and by ones")


@check_operations("NaN beside others in", _batches)
def _check_nan(strategy: Strategy, asked: Problem) -> None:
    """NaN in one member of a batch reaches its own answers, and no others."""
    skip_native(strategy, "which may pass NaN to LAPACK")
    inputs, cotangents = list(asked.inputs), list(asked.cotangents)
    poisoned = [("the cotangent", cotangents, 0), ("B", inputs, 1)][: len(inputs)]
    for what, tensors, i in poisoned:
        sound = tensors[i]
        tensors[i] = sound.clone()
        # Of triangular factors only this corner is always read.
        tensors[i][(1, -1, 0)[: sound.ndim]] = math.nan
        answers = solved(strategy, asked.operation, tuple(inputs), tuple(cotangents))
        tensors[i] = sound
        where = f"NaN in {what} of member 1: "
        for member in (0, 2):
            own = tuple(t[member] for t in answers[0]), tuple(t[member] for t in answers[1])
            asked.member(member).require_answers(*own, f"{where}member {member}: ")
        require(bool(answers[1][0][1].isnan().any()), f"{where}its gradient of A has none")


_SHAPES = ((2, 6, 4), (2, 4, 6), (3, 3), (6, 4))


@check_each(lambda _: shaped(_SHAPES, (torch.float64, torch.complex128), LAYOUTS))
def _layouts_in_factors(strategy: Strategy, case: Shaped) -> None:
    """The matrix, and what its factors are applied to."""
    *batch, m, n = case.shape
    layout, F = LAYOUTS[case.what], matrices(case.shape, case.dtype, 15)
    inverse, plain = strategy.factor(copied(layout(F))), strategy.factor(F.clone())
    close(inverse.dense(), plain.dense(), "dense() against that of a plain matrix")
    for method, of in METHODS.items():
        given = numbered((*batch, m if of == "b" else n, 3), case.dtype, 16)
        found = getattr(plain, method)(copied(layout(given)))
        expected = getattr(plain, method)(given)
        what, scale = f"{method}({of}) against that of a plain {of}", least_scale(method, given)
        close(found, expected, what, least_scale=scale)

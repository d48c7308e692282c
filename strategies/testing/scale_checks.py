"""Matrices of any magnitude: values and gradients are those of A, times powers of two.

A result f is homogeneous: f(sA) = s^d f(A), with d = −1 for an inverse, 1 for U and 0 for the L beside it,
1/2 for a Cholesky factor; log|det| moves by log s^n. With the cotangent times s^−d the loss ⟨G, f⟩ does
not depend on s, so that Ā is that of A divided by s, and B̄ is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from strategies import operations
from strategies.formulas.powers_of_two import times_power_of_two
from strategies.operations import Operation
from strategies.strategy import Strategy
from strategies.testing.checks import DTYPES, Check, close, each, named, require, skip_native
from strategies.testing.problems import Problem, Tensors, doubled, problem, solved

POWERS = {torch.float64: (100, 600), torch.float32: (12, 60)}
"""Of two: the square of the larger number over- or underflows, half as much again does not."""


class Law(NamedTuple):
    """How one result behaves as inputs are doubled, entry by entry: it is multiplied by 2^d or shifted."""

    degree: Tensor
    shift: Tensor

    @classmethod
    def of(cls, once: Tensor, twice: Tensor) -> Law:
        ratio = (twice / once).abs().nan_to_num(nan=1.0)
        degree = (2 * ratio.log2()).round().nan_to_num(neginf=0.0) / 2
        is_shifted = ((once * degree.exp2() - twice).abs() > 1e-9 * twice.abs()).any()
        if is_shifted:
            return cls(torch.zeros_like(degree), twice - once)
        return cls(degree, torch.zeros_like(twice))


def laws_of(
    operation: Operation, inputs: Tensors, scaled: Callable[[Tensors], Tensors]
) -> list[Law]:
    """How each result behaves as the inputs are scaled by powers of two, here by the first."""
    wide = tuple(map(doubled, inputs))
    once, twice = (
        operation.outputs(operation.function(*tensors, strategy="triangular_solve"))
        for tensors in (wide, scaled(wide))
    )
    return [Law.of(*pair) for pair in zip(once, twice, strict=True)]


def _spread(powers: Tensor, over: Tensor) -> Tensor:
    return powers.reshape(powers.shape + (1,) * (over.ndim - powers.ndim))


def _times(tensor: Tensor, degree: int | Tensor, powers: Tensor) -> Tensor:
    return times_power_of_two(tensor, degree * _spread(powers, tensor))


def check_scales(problems: Callable[[], Iterable[Problem]], strategy: Strategy) -> None:
    """Require that scaled problems have scaled answers."""
    skip_native(strategy, "whose intermediate results overflow")

    def examine(asked: Problem) -> None:
        # Of a batch, the first member is small and the last is large.
        A = asked.inputs[0]
        laws = laws_of(asked.operation, asked.inputs, lambda inputs: (2 * inputs[0], *inputs[1:]))
        most = max(1, *(int(law.degree.abs().max()) for law in laws))
        for largest in POWERS[A.dtype.to_real()]:
            power = min(largest, largest * 3 // 2 // most)
            for members in ([-1, 0, 1],) if A.ndim > 2 else (-1, 1):
                powers = power * torch.tensor(members, dtype=torch.float64, device=A.device)
                _examine(strategy, asked, laws, powers)

    each(problems(), examine)


def _examine(strategy: Strategy, asked: Problem, laws: list[Law], powers: Tensor) -> None:
    A, *others = asked.inputs
    cotangents = tuple(
        _times(G, -law.degree, powers) for G, law in zip(asked.cotangents, laws, strict=True)
    )
    inputs = (_times(A, 1, powers), *others)
    results, (of_A, *rest) = solved(strategy, asked.operation, inputs, cotangents)
    exponents = ", ".join(str(int(p)) for p in powers.reshape(-1))
    asked.shifted([law.shift * _spread(powers, law.shift) for law in laws]).require_answers(
        tuple(
            _times(result, -law.degree, powers) for result, law in zip(results, laws, strict=True)
        ),
        (_times(of_A, 1, powers), *rest),
        f"A times 2 to the {exponents}, scaled back: ",
    )


def _scales_of_factors(strategy: Strategy) -> None:
    """What `factor` returns, too, for magnitudes whose squares a number can hold."""

    def examine(asked: Problem) -> None:
        F, b = asked.inputs
        moderate = POWERS[F.dtype.to_real()][0]
        x = b[..., : F.shape[-1], :] if F.shape[-2] > F.shape[-1] else F.mH @ b
        plain = strategy.factor(F.clone())
        for power in (-moderate, moderate):
            inverse = strategy.factor(F * 2.0**power)
            for what, found, expected in (
                ("dense()", inverse.dense(), plain.dense()),
                ("apply(b)", inverse.apply(b), plain.apply(b)),
                ("apply_adjoint(x)", inverse.apply_adjoint(x), plain.apply_adjoint(x)),
            ):
                where = f"{what} of F times 2^{power}, scaled back, against that of F"
                close(found * 2.0**power, expected, where)
            ranks = inverse.rank.tolist(), plain.rank.tolist()
            require(ranks[0] == ranks[1], f"the rank of F times 2^{power} is {ranks[0]}")

    each(_problems(operations.get("lstsq")), examine)


def _problems(operation: Operation) -> Iterator[Problem]:
    shapes = (
        [(2, 2), (20, 20), (3, 3, 3)] if operation.square else [(2, 2), (5, 3), (3, 5), (3, 4, 2)]
    )
    for shape in shapes:
        for dtype in DTYPES:
            yield problem(operation.name, shape, dtype, operation.arity)


def checks() -> Iterator[Check]:
    """The checks of `factor` and of every operation."""
    yield from named(_scales_of_factors)
    for operation in map(operations.get, operations.names()):
        yield Check(
            f"scales of {operation.name}", partial(check_scales, partial(_problems, operation))
        )

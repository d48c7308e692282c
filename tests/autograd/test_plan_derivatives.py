"""Derivatives of operators from what the fast path in C++ has kept."""

import itertools

import pytest
import torch
from torch import Tensor

from strategies import linalg
from tests.autograd.plain_calls import matrices, needs_extension

OPERATORS = torch.ops.backward_strategies
FORGOTTEN = torch.tensor(-(10**12))
"""The number of no plan."""


def served() -> dict[str, tuple[object, ...]]:
    """Calls of operators that the fast path in C++ computes."""
    A, C, B, D = matrices(2)
    S = A @ A.mH + torch.eye(A.shape[-1], dtype=A.dtype)
    L = torch.linalg.cholesky(S)
    of_rank_one = A[..., :1] @ A[..., :1, :]
    tall = of_rank_one.repeat(1, 20, 1)
    factors, pivots = torch.linalg.lu_factor(A)
    LU = factors, B, pivots, False
    return {
        "inv": (A, "fused"),
        "inv_ex": (A, False, "fused"),
        "solve": (A, B, "fused"),
        "solve_ex": (A, B, True, False, "fused"),
        "det": (A, "fused"),
        "slogdet": (A, "fused"),
        "lu_factor_ex": (C, True, False, "fused"),
        "pinv": (C, None, None, None, None, False, "fused"),
        "pinv by tolerances": (C, 1e-6, None, 1e-9, None, False, "fused"),
        "pinv by tensors": (C, None, torch.tensor(1e-6), None, torch.tensor(1e-9), False, "fused"),
        "pinv by a tensor": (C, None, torch.tensor(1e-6), None, None, False, "fused"),
        "pinv by rtol": (C, None, None, 1e-9, None, False, "fused"),
        "pinv by rank 1": (of_rank_one, None, None, None, None, False, "fused"),
        "lstsq": (C, D, None, None, "fused"),
        "lstsq by rank 1": (tall, tall.sin(), None, None, "fused"),
        "lstsq by rcond": (C, D, 1e-9, None, "fused"),
        "cholesky_ex": (S, False, "fused"),
        "cholesky_solve": (L, B, "fused"),
        "cholesky_inverse": (L, "fused"),
        "qr": (C, "reduced", "fused"),
        "solve_triangular": (L, B, False, False, "fused"),
        "solve_triangular by rows": (L.mT.contiguous(), B, True, True, "fused"),
        "lu_solve": (*LU, "fused"),
        "lu_solve by adjoint": (*LU[:-1], True, "fused"),
    }


@pytest.fixture(params=served().items(), ids=lambda each: each[0])
def computed(request):
    """An operator's name, its inputs and options, the outputs, and what was kept of them by which plan."""
    linalg.inv(torch.eye(2), strategy="fused")  # loads the fast path
    name, call = request.param
    name, _, _ = name.partition(" by ")
    *outputs, kept, used = getattr(OPERATORS, name)(*call)
    assert used < 0  # the number of a plan
    inputs = [
        *itertools.takewhile(
            lambda each: isinstance(each, Tensor) and each.is_floating_point(), call
        )
    ]
    return name, inputs, call[len(inputs) : -1], outputs, kept, used


@needs_extension
def test_a_gradient_is_computed_from_what_the_forward_has_kept(computed):
    name, inputs, options, outputs, kept, used = computed
    operator, gradient = getattr(OPERATORS, name), getattr(OPERATORS, f"{name}_backward")
    leaves = [each.clone().requires_grad_() for each in inputs]
    of_leaves = operator(*leaves, *options, "qr_pinv")
    differentiable = [each for each in of_leaves[:-2] if each.requires_grad]
    cotangents = [torch.randn_like(each) for each in differentiable]
    due = torch.autograd.grad(differentiable, leaves, cotangents)
    for what, by in ((kept, used), (kept[:0], used), (kept, FORGOTTEN)):
        operands, needed = [*inputs, *cotangents], [True] * len(inputs)
        found = gradient(operands, *outputs, what, *options, by, needed)
        torch.testing.assert_close(found, list(due))


@needs_extension
def test_other_derivatives_from_what_was_kept_are_those_of_a_new_computation(computed):
    name, inputs, options, outputs, kept, used = computed
    count = 2 if name in ("slogdet", "qr") else 1
    tangents, cotangents = ([*map(torch.randn_like, of)] for of in (inputs, outputs[:count]))
    of_inputs, of_cotangents, of_none = [True] * len(inputs), [True] * count, [False] * count
    of_first = [i == 0 for i in range(len(inputs))]

    def derived(kinds: str, more: list[Tensor], *flags: list[bool], by: Tensor = FORGOTTEN):
        derivative = getattr(OPERATORS, f"{name}_{kinds}")
        return derivative([*inputs, *more], *outputs, kept, *options, by, *flags)

    gradients = derived("backward", cotangents, of_inputs)
    moved = derived("forward", tangents, of_inputs)
    of_all = of_inputs + of_cotangents
    for kinds, more, flags in (
        ("forward", tangents, [of_inputs]),
        ("backward_backward", [*cotangents, *tangents, *gradients], [of_inputs, of_all]),
        (
            "backward_forward",
            [*cotangents, *tangents, *cotangents, *gradients],
            [of_inputs, of_all],
        ),
        (
            "backward_forward",
            [*cotangents, *tangents, *gradients[:1]],
            [of_first, of_inputs + of_none],
        ),
        ("forward_backward", [*tangents, *cotangents, *moved], [of_inputs, 2 * of_inputs]),
    ):
        found, due = (derived(kinds, more, *flags, by=number) for number in (used, FORGOTTEN))
        torch.testing.assert_close(found, due, check_stride=True)
        if kinds == "backward_backward":
            for output, of_cotangent in zip(outputs, found[len(inputs) :], strict=False):
                assert of_cotangent.stride() == output.stride()

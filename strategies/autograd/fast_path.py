"""The fast path: operations on small matrices, with as little around them as there can be.

A `FastPath` decides the path once per call. The fast path takes plain tensors in eager mode, with a
strategy that has kernels for the operation (`strategies.kernels.cpu.plans`, and on CUDA devices
`strategies.kernels.cuda.plan`). So does what is below a level of forward mode. All else takes the generic
path: other transforms and modes of torch, other strategies, and inputs that are not a usual case.

A backward that is differentiated, or whose cotangent is not a usual case, goes the generic path, too: from
the inputs on, or, by the explicit gradient, from those of them that derivatives read and the outputs. Where
there is a second backward, the gradient is the kernel's even so, and differentiated once by that.

On the CPU, where there is the fast path in C++ (`strategies.kernels.extension`), it does what
`FastPath.__call__` and the node in `strategies.autograd.fast_path_node` do, to the same bits: most of the
time of a small call goes to Python.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from strategies import policy
from strategies.autograd import cpp
from strategies.autograd.choice import StrategyChoice, is_captured, kernels_of, key_of_sizes
from strategies.autograd.fast_path_node import Computed, FoundPlan, apply
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.tracing import is_constant, is_plain, is_readable, resolved
from strategies.autograd.transforms import below_levels, with_tangents
from strategies.kernels import extension
from strategies.kernels.cpu.plans import is_sequence, plan
from strategies.kernels.cuda import plan as cuda
from strategies.policy.schema import Policy
from strategies.strategy import Strategy

General = Callable[..., Tensors]
"""The generic path of an operation: its differentiable outputs from strategies, inputs and tolerances."""

Explicit = Callable[..., Tensors]
"""The explicit gradient of an operation: from a strategy, inputs, outputs, cotangents and tolerances.

A cotangent that may be missing is left out at the end.
"""

Tangents = Callable[[Computed, Gradients], Tensors | None]
"""The tangents of the first outputs from those of the inputs, or None, where it does not have them."""

SecondGradients = tuple[Gradients, Gradients, Gradients]
"""Of the inputs, outputs and cotangents that the explicit gradient reads; of others they are None."""

SecondBackward = Callable[[Computed, Gradients, Gradients, Gradients], SecondGradients | None]
"""Gradients of gradients, from these, from cotangents of outputs, and from cotangents of the gradients.

None where it has none. A cotangent is None if it has no effect, or may be missing.
"""


@dataclass(frozen=True, eq=False)
class FastPath:
    """The fast path of an operation.

    Args:
        operation: which.
        general: the generic path.
        policy_operation: the operation whose measured cells answer for this one.
        any_rank: as in `strategies.policy.candidates`.
        otherwise: the strategy that "auto" is on the fast path where no measured cells answer, if any is.
        explicit: the gradients as differentiable functions of inputs, outputs and cotangents; by default,
            the generic path is taken from the inputs.
        tangents: of outputs, of constant inputs; by default, forward mode takes the generic path.
        second_backward: of constant inputs; by default, the explicit gradient is differentiated.
        second_backward_rows: up to which autograd does not record the explicit gradient instead.
        unread: positions of inputs that `explicit` does not read. They are not kept: None.
        unread_outputs: positions of outputs, likewise.
        reports: whether info, of a factorization that succeeded, is an output more.
        arity: how many inputs there are.
        takes_tolerances: whether two numbers may follow them.

    Example:
        >>> fast_path = FastPath("inv", lambda _, A: (A.inverse(),), policy_operation="inv")
        >>> fast_path("fused", torch.tensor([[4.0]]))
        (tensor([[0.2500]]),)
        >>> fast_path("native", torch.tensor([[4.0]])) is None
        True
    """

    operation: str
    general: General
    policy_operation: str
    any_rank: bool = False
    otherwise: str = ""
    explicit: Explicit | None = None
    tangents: Tangents | None = None
    second_backward: SecondBackward | None = None
    second_backward_rows: float = math.inf
    unread: tuple[int, ...] = ()
    unread_outputs: tuple[int, ...] = ()
    reports: bool = False
    arity: int = 1
    takes_tolerances: bool = False

    def __call__(self, choice: StrategyChoice, *given: Tensor | float) -> Tensors | None:
        """The outputs; None where the generic path is to be taken.

        Args:
            choice: the strategy, as the caller wrote it.
            given: A, and B, and LAPACK's pivots; then atol and rtol, if they are not the defaults.
        """
        if (in_cpp := _compiled(self)) is not None:
            outputs = in_cpp(choice, *given)
            if outputs is not None:
                return outputs
            if not any(map(_is_on_cuda, given)):
                return self._in_forward_mode(choice, given)
        if (computed := self._compute(choice, given)) is None:
            return self._in_forward_mode(choice, given)
        if torch.is_grad_enabled():
            for tensor in computed.inputs:
                if tensor.requires_grad:
                    found, inputs, outputs, kept, _ = computed
                    return apply((found, outputs, kept), *inputs)
        return computed.outputs

    @property
    def compiled(self) -> Callable[..., Tensors | None] | None:
        """`__call__` in C++, if that is there."""
        return _compiled(self)

    def _compute(
        self, choice: StrategyChoice, given: tuple[Tensor | float, ...]
    ) -> Computed | None:
        """By the first plan that does not decline plain inputs, if there is one."""
        if (in_cpp := _compiled(self)) is not None:
            found = cpp.module().computed(in_cpp, choice, *given)
            if found is not None:
                return Computed(*found)
            if not any(map(_is_on_cuda, given)):
                return None
        inputs, tolerances = _split(given)
        inputs = tuple(map(resolved, inputs))
        if len(inputs) != self.arity or len(tolerances) not in (0, 2 * self.takes_tolerances):
            return None
        if not (is_plain() and all(map(is_readable, inputs))):
            return None
        for found in self._plans(choice, (*inputs, *tolerances)):
            if found.copies:
                inputs = tuple([tensor.contiguous() for tensor in inputs])
            if (computed := found.plan.forward(inputs)) is not None:
                return Computed(found, inputs, *computed)
        return None

    def _by_general(
        self, choice: StrategyChoice, given: tuple[Tensor | float, ...]
    ) -> Computed | None:
        """By the generic path, of plain inputs that the plans decline; where a rank is decided, alone.

        Tangents by the factors of a strategy keep the digits that those of A⁺ as a matrix lose.
        """
        inputs, _ = _split(given)
        if not (self.takes_tolerances and is_constant(*inputs)):
            return None
        if not (plans := self._plans(choice, given)):
            return None
        outputs = self.general(plans[0].candidates, *given)
        return Computed(plans[0], inputs, outputs, None)

    def _in_forward_mode(
        self, choice: StrategyChoice, given: tuple[Tensor | float, ...]
    ) -> Tensors | None:
        """Outputs and their tangents by the fast path of the level below, if inputs are constant there."""
        tangents_of = self.tangents
        if tangents_of is None or forward_ad._current_level < 0:
            return None
        inputs, tolerances = _split(given)
        if not all(isinstance(each, Tensor) for each in inputs):
            return None

        def compute(primals: Tensors, tangents: Gradients) -> tuple[Tensors, Tensors] | None:
            below: tuple[Tensor | float, ...] = (*primals, *tolerances)
            moved = [each for each in tangents if each is not None]
            # The backward of a graph may be differentiated in forward mode.
            if torch.is_grad_enabled() and any(each.requires_grad for each in (*primals, *moved)):
                return None
            computed = below_levels(
                lambda: self._compute(choice, below) or self._by_general(choice, below), primals
            )
            if computed is None:
                return None
            if not moved:
                return computed.outputs, ()
            found = tangents_of(computed, tangents)
            return None if found is None else (computed.outputs, found)

        return with_tangents(compute, inputs)

    def _plans(
        self, choice: StrategyChoice, given: tuple[Tensor | float, ...]
    ) -> tuple[FoundPlan, ...]:
        if choice == "auto":
            device = next(each.device for each in given if isinstance(each, Tensor))
            return _candidate_plans(self, policy.active(device.type)[0], *given)
        return _candidate_plans(self, choice, *given)


def serve(name: str, fast_paths: Sequence[tuple[FastPath, list[Any]]], *operator: Any) -> None:
    """Compute an operator by fast paths in C++, as `strategies.autograd.cpp.serve`."""
    cpp.serve(name, [(_definition(each), usual) for each, usual in fast_paths], operator)


@functools.cache
def _compiled(fast_path: FastPath) -> Callable[..., Tensors | None] | None:
    """`FastPath.__call__` in C++, if that is there."""
    return cpp.fast_path(_definition(fast_path))


extension.DEPENDENT_CACHES.append(_compiled)


def _definition(fast_path: FastPath) -> cpp.Definition:
    find = functools.partial(_candidate_plans, fast_path)
    own = fast_path.tangents
    tangents = own and (lambda *fields: own(Computed(*fields[:-1]), fields[-1]))
    return find, fast_path.arity, 2 * fast_path.takes_tolerances, tangents


_CHOICES = Policy, Strategy, str


def _split(given: tuple[Tensor | float, ...]) -> tuple[Tensors, tuple[float, ...]]:
    """Inputs and tolerances."""
    inputs = tuple([each for each in given if not isinstance(each, float)])
    return inputs, tuple([each for each in given if isinstance(each, float)])


def _candidate_plans(
    fast_path: FastPath, chosen: object, *given: Tensor | float
) -> tuple[FoundPlan, ...]:
    """The plans for an operation by what was chosen, the first to be tried first."""
    inputs, tolerances = _split(given)
    if not isinstance(chosen, _CHOICES):
        return ()
    if (
        fast_path.otherwise
        and isinstance(chosen, Policy)
        and fast_path.policy_operation not in chosen.operations
    ):
        chosen = fast_path.otherwise
    device, *others = [tensor.device for tensor in inputs]
    if any(other != device for other in others) or is_captured(inputs[0]):
        return ()
    layouts = [(tensor.shape, tensor.stride(), tensor.dtype) for tensor in inputs]
    return _find(fast_path, chosen, device, tolerances, *layouts)


@functools.lru_cache(maxsize=4096)
def _find(
    fast_path: FastPath,
    chosen: Policy | Strategy | str,
    device: torch.device,
    tolerances: tuple[float, ...],
    *inputs: tuple[tuple[int, ...], tuple[int, ...], torch.dtype],
) -> tuple[FoundPlan, ...]:
    """The plans for inputs of such sizes, strides and dtypes."""
    sizes = [size for size, *_ in inputs]
    dtype = inputs[0][2]
    kinds = (dtype, dtype, torch.int32)  # of A, B, and LAPACK's pivots
    if len(sizes[0]) < 2 or any(
        own != kind for (_, _, own), kind in zip(inputs, kinds, strict=False)
    ):
        return ()
    key = key_of_sizes(fast_path.policy_operation, dtype, device, *sizes)
    candidates = policy.ranked(chosen, key, any_rank=fast_path.any_rank)
    held = kernels_of(candidates[0])
    if device.type == "cuda":
        is_usual = "factors" in held and not (tolerances or fast_path.reports)
        on_cuda = cuda.plan(fast_path.operation, device, dtype, *sizes) if is_usual else None
        return (FoundPlan(on_cuda, False, fast_path, candidates),) if on_cuda else ()
    layouts = [(size, stride) for size, stride, _ in inputs]
    if copies := not all(is_sequence(layout, len(sizes[0]) - 2) for layout in layouts):
        layouts = [(size, torch.empty(size, device="meta").stride()) for size, _ in layouts]
    plans = (
        plan(
            holds,
            fast_path.operation,
            dtype,
            *layouts,
            tolerances=tolerances,
            not_saved=fast_path.unread_outputs if fast_path.explicit else None,
            reports=fast_path.reports,
        )
        for holds in held
    )
    return tuple(
        FoundPlan(found, copies, fast_path, candidates, tolerances)
        for found in plans
        if found is not None
    )


def _is_on_cuda(tensor: object) -> bool:
    return isinstance(tensor, Tensor) and tensor.is_cuda

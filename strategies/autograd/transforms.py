"""An autograd function at every level of torch.func's transforms, and forward mode without one.

What `torch.autograd.Function.apply` does there, for tensors that are in batches alike: PyTorch's
own way takes any structure of arguments apart at every level, which costs more than a small factorization.
The interpreters of the transforms are not public.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from strategies.autograd.levels import forward_mode, tangent_of, with_tangent
from strategies.kernels import extension
from strategies.kernels.memory import with_memory

Tensors = tuple[Tensor, ...]
Gradients = tuple[Tensor | None, ...]
Dims = Sequence[int | None]
Result = TypeVar("Result")

OverBatch = Callable[
    [Callable[..., Tensors], int, Sequence[Tensor], Dims], tuple[Sequence[Tensor], Dims]
]
"""Takes what computes, a size, tensors and the mapped dimension of each; outputs, and theirs."""

_functorch: Any = torch._C._functorch
_GRAD, _JVP, _VMAP = (getattr(_functorch.TransformType, name) for name in ("Grad", "Jvp", "Vmap"))
_INTERPRETERS = {
    _GRAD: _functorch.CGradInterpreterPtr,
    _JVP: _functorch.CJvpInterpreterPtr,
    _VMAP: _functorch.CVmapInterpreterPtr,
}

_BATCHED = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)


class AtOneLevel(torch.autograd.function._SingleLevelFunction):
    """A function at one level of differentiation.

    Its first argument, for which there is no gradient, computes the outputs from the others, at the levels
    below. `setup_context`, `backward` and `jvp` are as in `torch.autograd.Function`.
    """

    @staticmethod
    def forward(below: Callable[..., Tensors], _: Any, *tensors: Tensor) -> Tensors:
        return below(*tensors)


def over_equal_batches(
    compute: Callable[..., Tensors], size: int, tensors: Sequence[Tensor], dims: Dims
) -> tuple[Sequence[Tensor], Dims]:
    """`vmap` of what takes tensors in batches alike, as `OverBatch`.

    Example:
        >>> tensors = torch.ones(2, 5), torch.ones(2)
        >>> over_equal_batches(lambda x, y: (x * y,), 5, tensors, [1, None])[0][0].shape
        torch.Size([5, 2])
    """
    outputs = compute(
        *[
            each.expand(size, *each.shape) if dim is None else each.movedim(dim, 0) if dim else each
            for each, dim in zip(tensors, dims, strict=True)
        ]
    )
    return outputs, [0] * len(outputs)


def at_all_levels(
    function: Any,
    call: Any,
    compute: Callable[..., Tensors],
    tensors: Sequence[Tensor],
    over_batch: OverBatch = over_equal_batches,
) -> Tensors:
    """The outputs of a function, differentiable and mapped at every level of the transforms in force.

    Args:
        function: a subclass of `AtOneLevel`.
        call: its second argument, which is no tensor.
        compute: takes the tensors; what the function does where there are no transforms.
        tensors: by default in batches alike.
        over_batch: maps; by default the mapped dimension is the first of the batch of all tensors and
            outputs.
    """
    tensors = [without_ended_levels(each) for each in tensors]
    if not torch._C._are_functorch_transforms_active():
        return _at_base(function, call, compute, tensors)
    transform = Transform()
    level = transform.level

    def below(*unwrapped: Tensor) -> Tensors:
        with transform:
            return at_all_levels(function, call, compute, unwrapped, over_batch)

    if transform.kind == _VMAP:
        return _mapped(transform, below, tensors, over_batch)

    def at_this_level(*wrapped: Tensor) -> Tensors:
        unwrapped = [_functorch._unwrap_for_grad(each, level) for each in wrapped]
        with torch.enable_grad(), forward_mode(on=True):
            outputs = below(*unwrapped)
        return tuple(_functorch._wrap_for_grad(each, level) for each in outputs)

    lifted = [transform.interpreter.lift(each) for each in tensors]
    with enable_single_level_autograd_function():
        found: Tensors = function.apply(at_this_level, call, *lifted)
    return found


def _at_base(
    function: Any, call: Any, compute: Callable[..., Tensors], tensors: Sequence[Tensor]
) -> Tensors:
    is_recorded = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    if not (is_recorded or forward_ad._current_level >= 0):
        return compute(*tensors)
    with enable_single_level_autograd_function():
        found: Tensors = function.apply(compute, call, *tensors)
    return found


def over_samples(compute: Callable[..., Any], tensors: Sequence[Tensor]) -> Any:
    """What is computed of all samples of the `vmap` around, which is the innermost transform.

    Args:
        compute: takes tensors with samples as their first dimension, of one entry where they are not
            mapped; returns a tensor or a named tuple of tensors with that dimension.
        tensors: at the level of the `vmap`. What is computed of those alone that are not mapped is not.
    """
    if (module := extension.load()) is not None:
        return module.over_samples(compute, tensors)
    found: Any = None

    def over_batch(
        below: Callable[..., Tensors], size: int, tensors: Sequence[Tensor], dims: Dims
    ) -> tuple[Sequence[Tensor], Dims]:
        moved = [
            each.unsqueeze(0) if dim is None else each.movedim(dim, 0) if dim else each
            for each, dim in zip(tensors, dims, strict=True)
        ]
        outputs = below(*moved)
        new_dims = [0 if each.shape[0] == size else None for each in outputs]
        pairs = zip(outputs, new_dims, strict=True)
        return [each.squeeze(0) if dim is None else each for each, dim in pairs], new_dims

    transform = Transform()

    def below(*unwrapped: Tensor) -> Tensors:
        nonlocal found
        with transform:
            found = compute(*unwrapped)
        return (found,) if isinstance(found, Tensor) else tuple(found)

    outputs = _mapped(
        transform, below, [without_ended_levels(each) for each in tensors], over_batch
    )
    return outputs[0] if isinstance(found, Tensor) else found._make(outputs)


def below_vmap(
    compute: Callable[..., Tensors], tensors: Sequence[Tensor], over_batch: OverBatch
) -> Tensors:
    """What is computed one level below a `vmap`, whose kernel of an operator the dispatcher has called."""
    if not torch._C._are_functorch_transforms_active():
        raise RuntimeError("an operator of a tensor that has left the vmap it belongs to")
    with torch._C._ExcludeDispatchKeyGuard(_BATCHED):
        return _mapped(Transform(), compute, tensors, over_batch)


def below_levels(compute: Callable[[], Result], tensors: Sequence[Tensor]) -> Result:
    """What is computed below all transforms, unless one of them maps or differentiates a tensor."""
    if not torch._C._are_functorch_transforms_active() or any(
        map(_functorch.is_functorch_wrapped_tensor, tensors)
    ):
        return compute()
    with Transform():
        return below_levels(compute, tensors)


def _mapped(
    transform: "Transform",
    below: Callable[..., Tensors],
    tensors: Sequence[Tensor],
    over_batch: OverBatch,
) -> Tensors:
    level, size = transform.level, transform.interpreter.batchSize()
    values, dims = zip(*(_functorch._unwrap_batched(each, level) for each in tensors), strict=True)
    if all(dim is None for dim in dims):
        return below(*tensors)
    pairs = zip(*over_batch(below, size, values, dims), strict=True)
    return tuple(
        each if dim is None else _functorch._add_batch_dim(each, dim, level) for each, dim in pairs
    )


def with_tangents(
    compute: Callable[[Tensors, Gradients], tuple[Tensors, Tensors] | None],
    inputs: Sequence[Tensor],
) -> Tensors | None:
    """Outputs of what is computed below the level around, which is one of forward mode.

    Args:
        compute: takes inputs and tangents, None being zero, as they are at the level below. The outputs and
            the tangents of the first of them; None where it has none.
        inputs: at this level.

    Returns:
        None where the level is another, or `compute` has no outputs; outside of torch.func also where no
        input has a tangent.
    """
    transform = Transform() if torch._C._are_functorch_transforms_active() else None
    if transform is not None and transform.kind != _JVP:
        return None
    tangents = [None if each is None else with_memory(each) for each in map(tangent_of, inputs)]
    if transform is None:
        if all(each is None for each in tangents):
            return None
        primals = tuple([forward_ad.unpack_dual(each).primal for each in inputs])
        found = compute(primals, tuple(tangents))
        return None if found is None else _duals(*found)
    level, unwrap, wrap = transform.level, _functorch._unwrap_for_grad, _functorch._wrap_for_grad
    primals = tuple([unwrap(without_ended_levels(each), level) for each in inputs])
    below = tuple([None if each is None else unwrap(each, level) for each in tangents])
    with transform:
        if (found := compute(primals, below)) is None:
            return None
        outputs, of_outputs = found[0], _laid_out(*found)
    return _duals(*([wrap(each, level) for each in some] for some in (outputs, of_outputs)))


def forward_rule(
    compute: Callable[[Tensors, Gradients], Tensors], saved: Tensors, tangents: Gradients
) -> Tensors:
    """What `compute` makes of saved tensors and tangents, in the forward rule of the level around.

    Nothing of that has tangents of that level, so that under torch.func it is computed at the level below.
    """
    if not torch._C._are_functorch_transforms_active() or (transform := Transform()).kind != _JVP:
        with forward_mode(on=True):
            return compute(without_tangents(saved), tangents)
    level, unwrap = transform.level, _functorch._unwrap_for_grad
    below = tuple([unwrap(each, level) for each in saved])
    moved = tuple([None if each is None else unwrap(each, level) for each in tangents])
    with forward_mode(on=True), transform:
        found = compute(below, moved)
    return tuple([_functorch._wrap_for_grad(each, level) for each in found])


def without_tangents(tensors: Tensors) -> Tensors:
    """The tensors without the tangents of the innermost level, for a forward rule of that level.

    The tangents of other levels stay.
    """
    if torch._C._are_functorch_transforms_active() and (transform := Transform()).kind == _JVP:
        level, wrap = transform.level, _functorch._wrap_for_grad
        return tuple([wrap(_functorch._unwrap_for_grad(each, level), level) for each in tensors])
    # Copies: views would find the tangents of their bases.
    return tuple(forward_ad.unpack_dual(each, level=0).primal.clone() for each in tensors)


class Transform:
    """The innermost transform; within `with`, what is called is called below it.

    It does what PyTorch's `FuncTorchInterpreter` does, in a fifth of the time.
    """

    def __init__(self) -> None:
        self._layer = _functorch.peek_interpreter_stack()  # which the next points to
        self.kind, self.level = self._layer.key(), self._layer.level()
        self.interpreter = _INTERPRETERS[self.kind](self._layer)

    def __enter__(self) -> None:
        self._mode: contextlib.AbstractContextManager[Any] | None = None
        if self.kind == _GRAD and not self.interpreter.prevGradMode():
            self._mode = torch.no_grad()
        elif self.kind == _JVP and not self.interpreter.prevFwdGradMode():
            self._mode = forward_mode(on=False)
        if self._mode is not None:
            self._mode.__enter__()
        self._popped = _functorch.pop_dynamic_layer_stack()

    def __exit__(self, *error: object) -> None:
        _functorch.push_dynamic_layer_stack(self._popped)
        if self._mode is not None:
            self._mode.__exit__(None, None, None)


def _laid_out(outputs: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
    """Tangents in the layout of the outputs: forward mode copies others, level by level."""
    return [
        each
        if each.stride() == output.stride()
        else each.new_empty_strided(output.shape, output.stride()).copy_(each)
        for output, each in zip(outputs, tangents, strict=False)
    ]


def _duals(outputs: Sequence[Tensor], tangents: Sequence[Tensor]) -> Tensors:
    """Outputs, of which the first have tangents."""
    pairs = zip(outputs, tangents, strict=False)
    return *(with_tangent(*pair) for pair in pairs), *outputs[len(tangents) :]


def without_ended_levels(tensor: Tensor) -> Tensor:
    """What wrappers of ended levels hold, as where a program calls what `torch.func.vjp` has returned.

    Example:
        >>> left = []
        >>> gradient = torch.func.grad(lambda x: left.append(x) or x)(torch.tensor(3.0))
        >>> without_ended_levels(left[0])
        tensor(3.)
    """
    while (wrapped := _functorch.unwrap_if_dead(tensor)) is not tensor:
        tensor = wrapped
    return tensor

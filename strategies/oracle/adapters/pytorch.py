"""PyTorch: reverse mode, forward mode, and second derivatives by three compositions of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

Arrays = Sequence[np.ndarray[Any, Any]]
Tensors = tuple[torch.Tensor, ...]


def functions(
    linalg: Any, cholesky_solve: Any, cholesky_inverse: Any
) -> dict[str, Callable[..., Tensors]]:
    """The differentiable outputs of every operation, by a module with torch.linalg's functions."""
    return {
        "cholesky": lambda A: (linalg.cholesky(A),),
        "cholesky_inverse": lambda L: (cholesky_inverse(L),),
        "cholesky_solve": lambda L, B: (cholesky_solve(B, L),),
        "det": lambda A: (linalg.det(A),),
        # The sign of a real determinant has no derivative.
        "slogdet": lambda A: tuple(linalg.slogdet(A))[0 if A.is_complex() else 1 :],
        "inv": lambda A: (linalg.inv(A),),
        "lstsq": lambda A, B: (linalg.lstsq(A, B).solution,),
        "lu_factor": lambda A: (linalg.lu_factor(A)[0],),
        "lu": lambda A: tuple(linalg.lu(A)[1:]),
        "pinv": lambda A: (linalg.pinv(A),),
        "solve": lambda A, B: (linalg.solve(A, B),),
    }


def derivatives(known: Mapping[str, Callable[..., Tensors]]) -> dict[str, Callable[..., Any]]:
    """The functions of an adapter."""

    def value(operation: str, inputs: Arrays) -> Any:
        return _arrays(known[operation](*_tensors(inputs)))

    def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
        x = _leaves(inputs)
        return _arrays(torch.autograd.grad(known[operation](*x), x, _tensors(cotangents)))

    def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
        return _arrays(torch.func.jvp(known[operation], _tensors(inputs), _tensors(tangents))[1])

    def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
        x, bars = _leaves(inputs), _tensors(cotangents)
        gradients = torch.autograd.grad(known[operation](*x), x, bars, create_graph=True)
        return _gradient_along(gradients, x, _tensors(tangents))

    def hvp__reverse_over_forward(
        operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays
    ) -> Any:
        x = _leaves(inputs)
        moved = torch.func.jvp(known[operation], x, _tensors(tangents))[1]
        return _gradient_along(moved, x, _tensors(cotangents))

    def hvp__forward_over_reverse(
        operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays
    ) -> Any:
        def gradients(*x: torch.Tensor) -> Any:
            return torch.func.vjp(known[operation], *x)[1](_tensors(cotangents))

        return _arrays(torch.func.jvp(gradients, _tensors(inputs), _tensors(tangents))[1])

    defined = (value, vjp, jvp, hvp, hvp__reverse_over_forward, hvp__forward_over_reverse)
    return {function.__name__: function for function in defined}


def _gradient_along(values: Sequence[torch.Tensor], x: Tensors, along: Tensors) -> Any:
    """The gradient of Re ⟨along, values⟩."""
    pairs = zip(along, values, strict=True)
    loss = torch.stack([(a.conj() * v).real.sum() for a, v in pairs]).sum()
    # Where the values are constants, as the VJP of a linear function is, there is no graph.
    if not loss.requires_grad:
        return _arrays([torch.zeros_like(each) for each in x])
    return _arrays(torch.autograd.grad(loss, x, allow_unused=True, materialize_grads=True))


def _tensors(arrays: Arrays) -> Tensors:
    return tuple(torch.from_numpy(np.array(each)) for each in arrays)


def _leaves(arrays: Arrays) -> Tensors:
    return tuple(each.requires_grad_() for each in _tensors(arrays))


def _arrays(tensors: Sequence[torch.Tensor]) -> list[np.ndarray[Any, Any]]:
    return [each.detach().resolve_conj().numpy() for each in tensors]


def version() -> str:
    return f"PyTorch {torch.__version__}"


globals().update(derivatives(functions(torch.linalg, torch.cholesky_solve, torch.cholesky_inverse)))

"""PyTorch: reverse mode, forward mode, and second derivatives by three compositions of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

Arrays = Sequence[np.ndarray[Any, Any]]
Tensors = tuple[torch.Tensor, ...]


def _slogdet(slogdet: Callable[..., Any]) -> Callable[..., Tensors]:
    """The sign of a real determinant has no derivative."""

    def outputs(A: torch.Tensor) -> Tensors:
        sign, logabsdet = slogdet(A)
        return (sign, logabsdet) if A.is_complex() else (logabsdet,)

    return outputs


def functions(
    linalg: Any, cholesky_solve: Any, cholesky_inverse: Any
) -> dict[str, Callable[..., Tensors]]:
    """The differentiable outputs of every operation, by a module with torch.linalg's functions."""
    return {
        "cholesky": lambda A: (linalg.cholesky(A),),
        "cholesky_inverse": lambda L: (cholesky_inverse(L),),
        "cholesky_solve": lambda L, B: (cholesky_solve(B, L),),
        "det": lambda A: (linalg.det(A),),
        "slogdet": _slogdet(linalg.slogdet),
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
        x = [each.requires_grad_() for each in _tensors(inputs)]
        return _arrays(torch.autograd.grad(known[operation](*x), x, _tensors(cotangents)))

    def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
        primals = tuple(_tensors(inputs))
        return _arrays(torch.func.jvp(known[operation], primals, tuple(_tensors(tangents)))[1])

    def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
        x = [each.requires_grad_() for each in _tensors(inputs)]
        outputs, bars = known[operation](*x), _tensors(cotangents)
        gradients = torch.autograd.grad(outputs, x, bars, create_graph=True)
        return _gradient_along(gradients, x, _tensors(tangents))

    def hvp__reverse_over_forward(
        operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays
    ) -> Any:
        x = [each.requires_grad_() for each in _tensors(inputs)]
        moved = torch.func.jvp(known[operation], tuple(x), tuple(_tensors(tangents)))[1]
        return _gradient_along(moved, x, _tensors(cotangents))

    def hvp__forward_over_reverse(
        operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays
    ) -> Any:
        bars = tuple(_tensors(cotangents))

        def gradients(*x: torch.Tensor) -> Any:
            return torch.func.vjp(known[operation], *x)[1](bars)

        primals, directions = tuple(_tensors(inputs)), tuple(_tensors(tangents))
        return _arrays(torch.func.jvp(gradients, primals, directions)[1])

    defined = (value, vjp, jvp, hvp, hvp__reverse_over_forward, hvp__forward_over_reverse)
    return {function.__name__: function for function in defined}


def _gradient_along(
    values: Sequence[torch.Tensor], x: list[torch.Tensor], along: list[torch.Tensor]
) -> Any:
    """The gradient of Re ⟨along, values⟩."""
    loss = torch.stack(
        [(a.conj() * v).real.sum() for a, v in zip(along, values, strict=True)]
    ).sum()
    # Where the values are constants, as the VJP of a linear function is, there is no graph.
    if not loss.requires_grad:
        return _arrays([torch.zeros_like(each) for each in x])
    return _arrays(torch.autograd.grad(loss, x, allow_unused=True, materialize_grads=True))


def _tensors(arrays: Arrays) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(each)) for each in arrays]


def _arrays(tensors: Sequence[torch.Tensor]) -> list[np.ndarray[Any, Any]]:
    return [each.detach().resolve_conj().numpy() for each in tensors]


def version() -> str:
    """What is judged."""
    return f"PyTorch {torch.__version__}"


globals().update(derivatives(functions(torch.linalg, torch.cholesky_solve, torch.cholesky_inverse)))

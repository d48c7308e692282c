"""The operations under test, each as a function of float tensors only."""

import os
import shutil

import pytest
import torch

import strategies
from strategies import operations, registry

STRATEGIES = [name for name in strategies.available() if name != "native"]
ANY_RANK = [name for name in STRATEGIES if not strategies.get(name).requires_full_rank]
DTYPES = [torch.float64, torch.complex128]
ALL_DTYPES = [*DTYPES, torch.float32, torch.complex64]
OPERATIONS = [operations.get(name) for name in operations.names()]

each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
real_first, complex_first = (
    pytest.mark.parametrize("dtype", [first, pytest.param(other, marks=pytest.mark.slow)], ids=str)
    for first, other in (DTYPES, DTYPES[::-1])
)


needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None,
    reason="PyTorch's default backend needs a C++ compiler",
)


def compiled(function):
    """The function in one graph, whatever was compiled before."""
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def function(operation, strategy):
    """The differentiable outputs by a strategy, of what the operation reads of a matrix."""
    return lambda A, *rest: operation.outputs(
        operation.function(operation.domain.part(A), *rest, strategy=strategy)
    )


def reference(operation):
    """The differentiable outputs of PyTorch's own function."""
    return lambda A, *rest: operation.outputs(operation.of_torch(operation.domain.part(A), *rest))


def inputs_of(operation, shape, batch=(), dtype=torch.float64, seed=0):
    """A, and B where the operation takes one, away from singular matrices."""
    generator = torch.Generator().manual_seed(seed)
    m, n = shape
    A = torch.randn(*batch, m, n, dtype=dtype, generator=generator)
    A = operation.domain.member(A + 2 * torch.eye(m, n, dtype=dtype))
    B = torch.randn(*batch, m, 2, dtype=dtype, generator=generator)
    return tuple(value.requires_grad_() for value in (A, B)[: operation.arity])


def shapes_of(operation, shapes):
    """Of some shapes those that an operation takes."""
    return [(m, n) for m, n in shapes if m == n or not operation.square]


def own_strategies(operation):
    """The strategies whose code for an operation is not another's, which they inherit."""
    return [name for name in registry.distinct(operation.stem) if name in STRATEGIES]


def expect_known_failure(request, operation, strategy):
    """Marks what PyTorch's own derivatives do wrong in forward mode. (2.13)"""
    if (operation.name, strategy) == ("cholesky_inverse", "native"):
        reason = "PyTorch's forward mode of cholesky_inverse is wrong"
        request.applymarker(pytest.mark.xfail(reason=reason))


def pairs(names=None, *, others=False):
    """Every operation by these strategies, or by its own; the others, if wanted, marked slow."""
    return [
        pytest.param(
            operation,
            strategy,
            id=f"{operation.name}-{strategy}",
            marks=[] if strategy in usual else [pytest.mark.slow],
        )
        for operation in OPERATIONS
        for usual in [own_strategies(operation) if names is None else names]
        for strategy in (strategies.available() if others else usual)
    ]


def mode(*names, usual, dtypes=each_dtype):
    """For a test of every operation and strategy, which fills these columns of docs/modes.md."""
    each = pytest.mark.parametrize(("operation", "strategy"), pairs(usual, others=True))
    return lambda test: pytest.mark.mode(*names)(dtypes(each(test)))

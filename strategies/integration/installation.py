"""`install`: the fast path computes operators of PyTorch wherever they are called.

Kernels are registered in PyTorch's dispatcher (`csrc/torch/aten.hpp`), below the functions that programs
call: so names that were bound before, C++ and TorchScript come to them. A call goes to PyTorch's own
kernel
- unless its tensors are plain ones of the CPU, without tangents, outside of transforms and modes of torch;
- where the fast path has no plan, or the plan declines the values of the matrices;
- from within this package, and from within a strategy that computes.
"""

import functools
import itertools
import warnings
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from strategies import operations
from strategies.autograd.computing import is_computing
from strategies.autograd.cpp import aten_operator
from strategies.errors import UnsupportedError
from strategies.integration.scope import Scope, selected
from strategies.kernels import extension
from strategies.kernels.cpu import library
from strategies_autoload import VARIABLE, is_asked_for

_registered: set[str] = set()


class Installation(Scope):
    """What `install` has done."""

    _noun, _in_force = "installation", Counter()

    def _write(self) -> None:
        """Registers kernels, or takes them back."""
        for name in self.names:
            is_held = self.holds(name)
            if is_held != (name in _registered):
                _registered.symmetric_difference_update({name})
                for operator in _operators(name):
                    (operator.install if is_held else operator.uninstall)()


def install(operators: Iterable[str] | None = None) -> Installation:
    """Let the compiled kernels compute operators of PyTorch, and their gradients.

    From then on, or within the `with` block, that holds for the whole process and its threads, whoever
    calls the operators: functions that were looked up before, operators of PyTorch that are made of them,
    C++, TorchScript. It holds for plain tensors on the CPU; all else goes to PyTorch's own kernels. What
    `strategies.use` and calibrations say of "auto" holds, but where that is a strategy without compiled
    kernels, PyTorch computes. Installations nest.

    Args:
        operators: their names in `torch.ops.aten`; by default all for which there are kernels.

    Returns:
        A context manager; its method `undo` takes the place of the `with` block.

    Raises:
        ValueError: there are no kernels for an operator.
        UnsupportedError: the fast path in C++ was not built for this PyTorch (`strategies.warmup` does).

    Example:
        >>> import torch, strategies
        >>> is_built_now = strategies.warmup()
        >>> with strategies.install(["linalg_inv"]):
        ...     inverse = torch.linalg.inv(torch.tensor([[2.0]]))
        ...     strategies.is_installed("linalg_inv"), strategies.is_installed("linalg_det")
        (True, False)
    """
    names = selected("operator", operators, {name.partition(".")[0] for name in _calls()})
    if any(None in _operators(name) for name in names):
        if reason := library.missing():
            raise UnsupportedError(f"install needs compiled kernels, and there are none, {reason}")
        raise UnsupportedError(
            "install needs the fast path in C++, which was not built for this PyTorch: `backward-"
            "strategies warmup` or strategies.warmup() builds it; strategies.replace_torch() does without"
        )
    return Installation(names)


def uninstall() -> None:
    """Undo all installations: PyTorch's own kernels compute again.

    Example:
        >>> uninstall()
        >>> is_installed()
        False
    """
    Installation.undo_all()


def is_installed(operator: str | None = None) -> bool:
    """Whether this operator of `torch.ops.aten` is installed; by default, whether any is.

    Example:
        >>> is_installed("linalg_inv")
        False
    """
    return Installation.holds(operator)


def install_if_asked() -> None:
    """Install all operators if the environment variable `BACKWARD_STRATEGIES_INSTALL` is 1.

    Where that is impossible, a warning says why.
    """
    if is_asked_for():
        try:
            install()
        except UnsupportedError as error:
            warnings.warn(f"{VARIABLE}=1 has no effect: {error}", RuntimeWarning, stacklevel=2)


@functools.cache
def _calls() -> dict[str, list[Any]]:
    """Those for which there are plans, by operator and overload."""
    by_operator = attrgetter("operator")
    found = sorted(operations.aten_calls(), key=by_operator)
    return {name: [*calls] for name, calls in itertools.groupby(found, by_operator)}


@functools.cache
def _operators(name: str) -> list[Any]:
    """What installs and uninstalls each of its overloads; None where there is no fast path in C++."""
    return [
        aten_operator(overload, calls, is_computing)
        for overload, calls in _calls().items()
        if overload.partition(".")[0] == name
    ]


extension.DEPENDENT_CACHES.append(_operators)

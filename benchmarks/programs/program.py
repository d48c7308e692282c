"""What all programs have in common."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Step = Callable[[], Tensor]
"""One forward, backward and step of the optimizer; the loss before it."""


@dataclass(frozen=True)
class Program:
    """A model of the training step of the program `source`.

    Attributes:
        make: from a size to a step, with parameters and data of its own, drawn from torch's generator.
        same: the largest relative difference of losses, over the first steps, that rounding explains.
        differs: why losses by PyTorch's gradients are others; empty where they are not.
    """

    make: Callable[..., Step]
    source: str
    sizes: Mapping[str, Mapping[str, int]]
    same: float
    differs: str

    @property
    def name(self) -> str:
        """Of its file."""
        return self.make.__module__.rpartition(".")[2]

    @property
    def title(self) -> str:
        """What it is, in some words: the first line of its file."""
        return self._text[0].removesuffix(".")

    @property
    def description(self) -> str:
        """What it computes, and how: the other lines."""
        return " ".join(self._text[2:])

    @property
    def _text(self) -> list[str]:
        return inspect.cleandoc(sys.modules[self.make.__module__].__doc__ or "").splitlines()

    def step(self, size: str = "small", **sizes: object) -> Step:
        """A new step in a size of which `sizes` changes parts; `algebra`, where a program takes one.

        Equal ones take equal courses.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.make(**{**self.sizes[size], **sizes})


def model_of(
    source: str, *, same: float = 1e-8, differs: str = "", **sizes: Mapping[str, int]
) -> Callable[[Callable[..., Step]], Program]:
    """Makes the program of a function that is its `make`, with `small` and `full` sizes."""
    return lambda make: Program(make, source, sizes, same, differs)


def training(objective: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> Step:
    """The step that trains by an objective."""

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = objective()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def real_and_imaginary(*shape: int) -> Tensor:
    """Complex normal noise in double precision."""
    return torch.randn(*shape, dtype=torch.complex128)

"""`python -m benchmarks.microseconds "inv 4x4"`: where the time of a small call goes."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from unittest.mock import patch

import torch
import typer
from torch import Tensor

from strategies import operations
from strategies.autograd import fast_path
from strategies.builtin.fused import Fused
from strategies.cli.common import console, reports_errors
from strategies.kernels import extension
from strategies.kernels.cpu.plans import plan
from strategies.measuring import Case, backward_of
from strategies.measuring.clock import sampler
from strategies.measuring.timing import interleaved
from strategies.policy import BASELINE
from strategies.policy.calibration import counted
from strategies.selection.text import table


class Generic(Fused):
    """`fused` by the generic path: a subclass has no kernels but its own."""

    name = "generic"


GENERAL = Generic()


@reports_errors
def main(
    text: Annotated[str, typer.Argument(metavar="CASE", help='As "inv 4x4".')] = "inv 4x4",
    budget: Annotated[float, typer.Option(help="Seconds for the rounds.")] = 5.0,
    python: Annotated[
        bool, typer.Option(help="Take the fast path in Python, as if that in C++ were not built.")
    ] = False,
) -> None:
    """Time the parts of a call, forward and backward, in the same rounds; medians in microseconds."""
    case, is_compiled = Case.parse(text), not python and extension.load() is not None
    no_fast_path = patch.object(fast_path, "_compiled", lambda _: None)
    with contextlib.nullcontext() if is_compiled else no_fast_path:
        samplers = {name: sampler(call) for name, call in parts(case).items()}
        timings = interleaved(samplers, budget=budget, max_rounds=400)
    language = "C++" if is_compiled else "Python"
    threads = counted(torch.get_num_threads(), "thread")
    console.print(f"{case}, {threads}, the fast path in {language}")
    shown = table("", ["part"], ["µs"])
    for name in samplers:
        shown.add_row(name, f"{timings[name].seconds * 1e6:.1f}")
    console.print(shown)


def parts(case: Case) -> Mapping[str, Callable[[], object]]:
    """What is called, by name; ValueError if the fast path does not take the case."""
    record, inputs = operations.get(case.operation), case.inputs()
    detached = tuple(tensor.detach() for tensor in inputs)
    layouts = [(tensor.shape, tensor.stride()) for tensor in inputs]
    found = plan("factors", case.operation, case.dtype, *layouts)
    computed = None if found is None else found.forward(detached)
    if found is None or computed is None:
        raise ValueError(f"the fast path does not take {case}")
    outputs, kept = computed
    saved = (*detached, *(outputs[i] for i in found.saved), *kept)
    cotangents = tuple(torch.ones_like(outputs[i]) for i in found.cotangents)
    native: Callable[..., Any] = getattr(torch.linalg, case.operation)

    def fast() -> object:
        return record.function(*inputs, strategy="fused")

    x = torch.ones(1, requires_grad=True)
    apply: Any = _Nothing.apply
    y = apply(x)
    return {
        "forward: torch.linalg": lambda: native(*inputs),
        "forward: generic path": lambda: record.function(*inputs, strategy=GENERAL),
        "forward: fast path": fast,
        "forward: fast path in no_grad": torch.no_grad()(fast),
        "forward: its compiled loop": lambda: found.forward(detached),
        "backward: torch.linalg": backward_of(case, BASELINE),
        "backward: generic path": backward_of(case, GENERAL),
        "backward: fast path": backward_of(case, "fused"),
        "backward: its compiled loop": lambda: found.backward(saved, cotangents),
        "backward: an empty Function": lambda: torch.autograd.grad(y, x, x, retain_graph=True),
    }


class _Nothing(torch.autograd.Function):
    """What autograd takes for any function that is written in Python."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(_ctx: Any, cotangent: Tensor) -> Tensor:
        return cotangent


if __name__ == "__main__":
    typer.run(main)

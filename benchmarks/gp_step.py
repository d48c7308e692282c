"""`python -m benchmarks.gp_step`: a training step in GPyTorch, functions replaced and operators installed.

GPyTorch is in the requirements of `make clients`.
"""

import contextlib
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Annotated, Any

import torch
import typer

import strategies
from strategies.cli.common import console, reports_errors
from strategies.selection.text import table

_WAYS: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "PyTorch": contextlib.nullcontext,
    "replace_torch": strategies.replace_torch,
    "install": strategies.install,
}


@reports_errors
def main(
    points: Annotated[list[int] | None, typer.Argument(help="By default 50, 200 and 800.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="In each of them all ways, in turns.")] = 41,
) -> None:
    """Time steps in one thread: medians of paired processor times, PyTorch's over ours."""
    torch.set_num_threads(1)
    ours = list(_WAYS)[1:]
    shown = table("PyTorch's time over ours", ["points"], ours)
    for count in points or (50, 200, 800):
        step = _step(count)
        measured = [{way: _seconds(step, way) for way in _WAYS} for _ in range(rounds)]
        ratios = (
            statistics.median(each["PyTorch"] / each[way] for each in measured) for way in ours
        )
        shown.add_row(str(count), *(f"{ratio:.2f}" for ratio in ratios))
    console.print(shown)


def _seconds(step: Callable[[], None], way: str) -> float:
    with _WAYS[way]():
        return timeit.timeit(step, timer=time.process_time, number=1)


def _step(points: int) -> Callable[[], None]:
    """A step of Adam for an exact Gaussian process with a kernel of two length scales, in float64."""
    import gpytorch

    torch.manual_seed(0)
    X = torch.rand(points, 2, dtype=torch.float64)
    y = X.sum(-1).sin()

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean = gpytorch.means.ConstantMean()
            of_scales = gpytorch.kernels.RBFKernel(ard_num_dims=2)
            self.kernel = gpytorch.kernels.ScaleKernel(of_scales)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model().double()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        (-likelihood(model(X), y)).backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    typer.run(main)

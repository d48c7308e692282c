"""The experiments: each gives a table of errors, and those by hand draw their figure, too."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

import strategies
from plots import rows, style
from strategies import linalg, operations
from strategies.accuracy import Certified, gallery, gradient, lu_gradient_at_factors
from strategies.cli.common import notes
from strategies.cli.progress import progress
from strategies.errors import LinAlgError
from strategies.measuring import Case, Run, machine, measure

LARGEST_POWER = {torch.float32: 8, torch.float64: 15}
MATRICES = gallery.WELL_POSED
SIZES = (4, 16, 64, 192)
KAHAN_SIZES = (8, 16, 32, 48, 64, 96)
SEEDS = range(5)
"""Errors vary by a factor of a few from matrix to matrix: the page shows medians over these."""

AT_A, ADDED = "against the gradient at A", "against that at the stored LU"
NOISE = {
    "consistent right-hand side": 0.0,
    "right-hand side with 1 % noise": 0.01,
    "random right-hand side": None,
}
"""The norm of the part off the range of A over that of the part in it."""


def conditioned() -> pd.DataFrame:
    """κ = 10, 100, … on several matrices."""
    powers = [(dtype, i + 1) for dtype, most in LARGEST_POWER.items() for i in range(most)]
    return _measured(
        _case(name, (32, 32), (80, 10), dtype=dtype, log10_cond=power, seed=seed)
        for name, (dtype, power), seed in itertools.product(operations.measured(), powers, SEEDS)
    )


def over_gallery() -> pd.DataFrame:
    """Every matrix of the gallery that has full rank."""
    return _measured(
        _case(name, (12, 12), (20, 6), matrix=matrix)
        for name, matrix in itertools.product(operations.measured(), MATRICES)
    )


def sized() -> pd.DataFrame:
    """Small and large matrices with κ = 10."""
    return _measured(
        _case(name, (n, n), (8 * n, n), log10_cond=1.0)
        for name, n in itertools.product(operations.measured(), SIZES)
    )


def kahan() -> pd.DataFrame:
    """Errors of lu_factor on Kahan's matrix: in all, and what the backward adds by itself."""
    found = []
    for n in KAHAN_SIZES:
        A = gallery.make("kahan", (n, n), torch.float64).matrix
        G = torch.randn(n, n, dtype=A.dtype, generator=torch.Generator().manual_seed(1))
        LU, pivots = torch.linalg.lu_factor(A)
        at_A = gradient("lu_factor", (A,), (G,), pivots=pivots)
        for kind, exact in {AT_A: at_A, ADDED: lu_gradient_at_factors(LU, pivots, G)}.items():
            errors = _errors(lambda *A, **s: linalg.lu_factor(*A, **s).LU, (A,), G, exact)
            found.append(errors.assign(n=n, kind=kind))
    return pd.concat(found)


def draw_kahan(rows: pd.DataFrame) -> Figure:
    """Left the error against the exact gradient at A, right what is added to the stored factors'."""
    panel = functools.partial(style.errors, x="n", xlabel="rows and columns n")
    title = "lu_factor of Kahan's matrix, float64"
    figure = style.figure(rows, panel, title, by="kind", ylabel=style.ERROR)
    style.powers_of_two(figure.axes[0])
    return figure


def residuals() -> pd.DataFrame:
    """Errors of lstsq in single precision, for right-hand sides in and off the range of A."""
    found = []
    for (kind, noise), power, seed in itertools.product(NOISE.items(), range(1, 7), SEEDS):
        A = gallery.random_with_condition((80, 10), torch.float32, power, seed=seed).matrix
        off = _normal(80, 10 + seed)
        B = A.double() @ _normal(10, 20 + seed)
        B = off if noise is None else B + noise * B.norm() / off.norm() * off
        inputs, G = (A, B.float()), _normal(10, 30 + seed).float()
        exact = gradient("lstsq", inputs, (G,))
        errors = _errors(lambda *AB, **s: linalg.lstsq(*AB, **s).solution, inputs, G, exact)
        found.append(errors.assign(kind=kind, log10_cond=power, kappa=10.0**power))
    return pd.concat(found)


def draw_residuals(rows: pd.DataFrame) -> Figure:
    """A panel a kind of right-hand side, the condition number κ across."""
    panel = functools.partial(style.errors, x="kappa", xlabel="condition number κ")
    title = "Error of lstsq, 80x10 float32"
    note = "Above 1 no digit is right. A line that ends: beyond it the strategy refuses the matrix"
    return style.figure(rows, panel, title, note, by="kind", ylabel=style.ERROR)


def truncation() -> pd.DataFrame:
    """Cutting singular values that are not noise answers another question than was asked."""
    case = Case("pinv", (80, 10), log10_cond=8.0)
    (A,) = case.inputs()
    (G,) = case.cotangents((A.mH,))
    exact = gradient("pinv", (A,), (G,))
    found = []
    for rtol in (1e-15, 1e-9, 3e-8, 1e-4):
        kept = int((torch.linalg.svdvals(A) > rtol * torch.linalg.matrix_norm(A, 2)).sum())
        errors = _errors(functools.partial(linalg.pinv, rtol=rtol), (A,), G, exact)
        found.append(errors.assign(rtol=f"{rtol:.0e}", **{"kept of 10": kept}))
    rows = pd.concat(found)
    return rows[~rows["strategy"].map(lambda name: strategies.get(name).requires_full_rank)]


def singular_det() -> pd.DataFrame:
    """The gradient of det of a singular matrix is its adjugate, which is not zero."""
    found = {"exact": "[[6, -3], [-4, 2]]"}
    for name in strategies.available():
        A = torch.tensor([[2.0, 4.0], [3.0, 6.0]], dtype=torch.float64, requires_grad=True)
        (computed,) = torch.autograd.grad(linalg.det(A, strategy=name), A)
        found[name] = str([[round(x, 12) + 0.0 for x in row] for row in computed.tolist()])
    return pd.DataFrame({"strategy": found.keys(), "gradient": found.values()})


def _case(name: str, square: tuple[int, int], tall: tuple[int, int], **options: Any) -> Case:
    return Case(name, tall if operations.get(name).truncates else square, **options)


def _measured(cases: Iterable[Case]) -> pd.DataFrame:
    """The table of `plots.rows` of cases."""
    every, cells = list(cases), []
    with progress(len(every), notes) as begin:
        for case in every:
            begin(str(case))
            cells.append(measure(case, strategies.available(), objectives=()))
    return rows.table([Run("grid", machine.describe(), {}, tuple(cells))])


def _errors(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], cotangent: Tensor, exact: Certified
) -> pd.DataFrame:
    """A row a strategy, unless it refuses, with the error of its gradients of a function."""
    found, here = [], machine.describe()
    for name in strategies.available():
        leaves = [each.detach().requires_grad_() for each in inputs]
        with contextlib.suppress(LinAlgError):
            computed = torch.autograd.grad(function(*leaves, strategy=name), leaves, cotangent)
            error = exact.relative_error(computed)
            found.append({"strategy": name, "error": error, "measured_on": here})
    return pd.DataFrame(found)


def _normal(rows: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 1, dtype=torch.float64, generator=generator)

"""`python -m plots.accuracy_study --out docs/figures`: the numbers and figures of docs/accuracy.md.

Every error is measured against a certified exact gradient. Tables are printed as Markdown.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from torch import Tensor

import strategies
from benchmarks import machine
from benchmarks.suite import gradient_error, prepared
from plots import (
    added_on_kahan,
    error_against_conditioning,
    error_against_size,
    error_over_gallery,
    lstsq_residuals,
)
from plots.__main__ import save
from strategies import linalg
from strategies.accuracy import gallery, gradient, measures
from strategies.accuracy.classes import WELL_POSED
from strategies.commands.common import notes, tells_errors
from strategies.commands.progress import progress
from strategies.measuring import Case
from strategies.measuring.case import SQUARE_ONLY
from strategies.selection.rows import tidy

OPERATIONS = ("lu_factor", "pinv", "lstsq", "solve", "inv", "det")
SIZES = (4, 16, 64, 192)
KAHAN_SIZES = (8, 16, 32, 48, 64, 96)
SEEDS = range(5)
"""Errors vary by a factor of a few from matrix to matrix: medians over these are tabled."""


@tells_errors
def main(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figures go.")] = Path("out"),
) -> None:
    """Measure, print the tables, draw the figures."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        _study(out)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"figures so far are in {out}; the study starts anew") from None


def _study(out: Path) -> None:
    conditioned = _measured(_conditioning())
    for dtype, rows in conditioned.groupby("dtype"):
        _print(f"Median error against κ, {dtype}", _by_condition(rows))
        figure = error_against_conditioning.draw(_medians(rows))
        save(figure, out / f"error_against_conditioning_{dtype}")
    _print("Error of explicit_inverse / error of triangular_solve, medians", _inverse(conditioned))
    _print("Largest κ = 10^j at which an error is below 10 %, float32", _worthless(conditioned))
    named = _measured(_over_gallery())
    _print("Error / κ u on the gallery, float64: the largest of all operations", _largest(named))
    growth = named[named["matrix"].eq("wilkinson_growth")]
    _print("Error / κ u on Wilkinson's matrix", _wide(growth, "operation", "test_ratio"))
    save(error_over_gallery.draw(named), out / "error_over_gallery_float64")
    sized = _measured(_sizes())
    _print("Error against size at κ = 10, float64, largest of all operations", _by_size(sized))
    save(error_against_size.draw(sized), out / "error_against_size_float64")
    kahan = pd.DataFrame(_kahan())
    _print(
        "LU of Kahan's matrix, float64: what the backward adds", _wide(kahan, "n", "added_error")
    )
    save(added_on_kahan.draw(kahan), out / "added_on_kahan")
    noisy = pd.DataFrame(_right_hand_sides())
    for kind, rows in noisy.groupby("rhs_kind", sort=False):
        _print(f"lstsq 80x10, float32, {kind}", _wide(rows, "log10_cond", "error"))
    save(lstsq_residuals.draw(noisy), out / "lstsq_residuals")
    _print("Truncating above κ: pinv 80x10, float64, κ = 1e8", _truncation())
    _print("det of [[2, 4], [3, 6]]: the gradient", _corank_one())


def _conditioning() -> Iterator[Case]:
    for operation, dtype, seed in itertools.product(
        OPERATIONS, (torch.float32, torch.float64), SEEDS
    ):
        shape = (80, 10) if operation in ("pinv", "lstsq") else (32, 32)
        for log10_cond in range(1, 9 if dtype == torch.float32 else 16):
            yield Case(operation, shape, dtype=dtype, log10_cond=log10_cond, seed=seed)


def _over_gallery() -> Iterator[Case]:
    for operation, matrix in itertools.product(OPERATIONS, WELL_POSED):
        square = operation in SQUARE_ONLY or operation == "lu_factor"
        yield Case(operation, (12, 12) if square else (20, 6), matrix=matrix)


def _sizes() -> Iterator[Case]:
    for operation, n in itertools.product(OPERATIONS, SIZES):
        shape = (8 * n, n) if operation in ("pinv", "lstsq") else (n, n)
        yield Case(operation, shape, log10_cond=1.0)


def _measured(cases: Iterable[Case]) -> pd.DataFrame:
    """A row for every case and strategy."""
    every = list(cases)
    with progress(len(every), notes) as begin:
        records = []
        for case in every:
            begin(case.label)
            records += list(_records(case))
    return tidy(pd.DataFrame(records))


def _records(case: Case) -> Iterator[dict[str, Any]]:
    """One row a strategy; those that refuse the case have no error."""
    log10_cond = case.log10_cond
    if case.matrix is not None:
        log10_cond = math.log10(gallery.make(case.matrix, case.shape, case.dtype).condition)
    for name in strategies.available():
        record = _provenance() | {
            "operation": case.operation,
            "m": case.shape[0],
            "n": case.shape[1],
            "dtype": str(case.dtype).removeprefix("torch."),
            "device": case.device,
            "log10_cond": log10_cond,
            "matrix": case.matrix,
            "strategy": name,
            "source": f"seed {case.seed}",
        }
        try:
            yield record | {
                "error": gradient_error(case, prepared(case, name)[0]), "status": "ok"
            }  # fmt: skip
        except NotImplementedError:
            yield record | {"status": "n/a"}


@functools.cache
def _provenance() -> dict[str, Any]:
    run = machine.provenance()
    return run | {"started_at": pd.Timestamp(run["started_at"], unit="ms", tz="UTC")}


def _kahan() -> Iterator[dict[str, Any]]:
    for n in KAHAN_SIZES:
        A = gallery.make("kahan", (n, n), torch.float64).matrix
        G = _normal((n, n), torch.float64, 1)
        LU, pivots = torch.linalg.lu_factor(A)
        exact = gradient("lu_factor", (A,), (G,), pivots=pivots)
        for name in strategies.available():
            leaf = A.clone().requires_grad_()
            output = linalg.lu_factor(leaf, strategy=name).LU
            (computed,) = torch.autograd.grad(output, leaf, G)
            yield _provenance() | {
                "n": n,
                "device": "cpu",
                "strategy": name,
                "error": exact.relative_error((computed,)),
                "added_error": measures.added_error(LU, pivots, G, computed),
            }


def _right_hand_sides() -> Iterator[dict[str, Any]]:
    for kind, noise in (("consistent", 0.0), ("1 % noise", 0.01), ("random", math.inf)):
        for log10_cond in (1, 2, 3, 4, 5, 6):
            errors: dict[str, list[float]] = {name: [] for name in strategies.available()}
            for seed in SEEDS:
                A, B, G = _least_squares(log10_cond, noise, seed)
                exact = gradient("lstsq", (A, B), (G,))
                for name, found in errors.items():
                    found.append(_lstsq_error(A, B, G, name, exact))
            for name, found in errors.items():
                yield _provenance() | {
                    "rhs_kind": kind,
                    "device": "cpu",
                    "log10_cond": log10_cond,
                    "strategy": name,
                    "error": float(np.median(found)),
                }


def _least_squares(log10_cond: float, noise: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    A = gallery.random_with_condition((80, 10), torch.float32, log10_cond, seed=seed).matrix
    off = _normal((80, 1), torch.float64, 10 + seed)
    B = A.double() @ _normal((10, 1), torch.float64, 20 + seed)
    mixed = off if math.isinf(noise) else B + noise * B.norm() / off.norm() * off
    return A, mixed.float(), _normal((10, 1), torch.float32, 30 + seed)


def _lstsq_error(A: Tensor, B: Tensor, G: Tensor, name: str, exact: Any) -> float:
    leaves = A.clone().requires_grad_(), B.clone().requires_grad_()
    try:
        X = linalg.lstsq(leaves[0], leaves[1], strategy=name).solution
        return float(exact.relative_error(torch.autograd.grad(X, leaves, G)))
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        return math.nan


def _truncation() -> pd.DataFrame:
    """Cutting singular values that are not noise answers another question than was asked."""
    case = Case("pinv", (80, 10), log10_cond=8.0)
    (A,) = case.inputs()
    found = []
    for rtol in (1e-15, 1e-9, 3e-8, 1e-4):
        kept = int((torch.linalg.svdvals(A) > rtol * torch.linalg.matrix_norm(A, 2)).sum())
        row: dict[str, Any] = {"rtol": f"{rtol:.0e}", "kept of 10": kept}
        for name in strategies.available():
            if strategies.get(name).requires_full_rank:
                continue
            X = linalg.pinv(A, rtol=rtol, strategy=name)
            (G,) = case.cotangents((X,))
            row[name] = gradient("pinv", (A,), (G,)).relative_error(torch.autograd.grad(X, A, G))
        found.append(row)
    return pd.DataFrame(found)


def _corank_one() -> pd.DataFrame:
    found = {"exact": "[[6, -3], [-4, 2]]"}
    for name in strategies.available():
        A = torch.tensor([[2.0, 4.0], [3.0, 6.0]], dtype=torch.float64, requires_grad=True)
        (found_here,) = torch.autograd.grad(linalg.det(A, strategy=name), A)
        found[name] = str([[round(x, 12) + 0.0 for x in row] for row in found_here.tolist()])
    return pd.DataFrame({"strategy": found.keys(), "gradient": found.values()})


def _normal(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def _medians(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for all seeds of a case."""
    keys = ["operation", "log10_cond", "strategy"]
    median = rows.groupby(keys, sort=False)["error"].transform("median")
    return rows.assign(error=median).drop_duplicates(keys)


def _by_condition(rows: pd.DataFrame) -> pd.DataFrame:
    chosen = _medians(rows[rows["log10_cond"].isin([1, 3, 5, 7, 9, 12, 15])])
    table = chosen.pivot(index=["operation", "log10_cond"], columns="strategy", values="error")
    return table[list(strategies.available())].reset_index()


def _inverse(rows: pd.DataFrame) -> pd.DataFrame:
    keys = ["operation", "dtype", "log10_cond", "source"]
    errors = rows.pivot(index=keys, columns="strategy", values="error")
    ratio = (errors["explicit_inverse"] / errors["triangular_solve"]).rename("ratio").reset_index()
    ratio = ratio[ratio["log10_cond"].isin([1, 3, 5, 7, 9, 12])]
    table = ratio.pivot_table(
        index=["dtype", "operation"], columns="log10_cond", values="ratio", aggfunc="median"
    )
    return table.rename(columns=lambda c: f"κ=1e{c:.0f}").reset_index()


def _worthless(rows: pd.DataFrame) -> pd.DataFrame:
    single = _medians(rows[rows["dtype"].eq("float32")])
    usable = single[single["error"].lt(0.1)]
    table = usable.pivot_table(
        index="operation", columns="strategy", values="log10_cond", aggfunc="max"
    )
    return table[list(strategies.available())].reset_index()


def _largest(rows: pd.DataFrame) -> pd.DataFrame:
    return _wide(rows, "matrix", "test_ratio")


def _by_size(rows: pd.DataFrame) -> pd.DataFrame:
    return _wide(rows, "n", "error")


def _wide(rows: pd.DataFrame, index: str, values: str) -> pd.DataFrame:
    table = rows.pivot_table(index=index, columns="strategy", values=values, aggfunc="max")
    return table[list(strategies.available())].reset_index()


def _print(title: str, table: pd.DataFrame) -> None:
    print(f"\n**{title}**\n")
    print("| " + " | ".join(map(str, table.columns)) + " |")
    print("|" + " --- |" * len(table.columns))
    for row in table.itertuples(index=False):
        print("| " + " | ".join(_text(value) for value in row) + " |")


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "—"
    return f"{value:g}" if value == round(value) and value < 1000 else f"{value:.1e}"


if __name__ == "__main__":
    typer.run(main)

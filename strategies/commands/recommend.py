"""`backward-strategies recommend`: what to use, and why."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

import strategies
from strategies.commands.common import DEFAULT_RESULTS, Results, console, notes, tells_errors
from strategies.commands.progress import progress
from strategies.selection import markdown, nearest, on_the_spot, recommendation, rows, verdicts
from strategies.selection.asv_files import parse_shape


@tells_errors
def recommend(
    results: Results = DEFAULT_RESULTS,
    operation: Annotated[str | None, typer.Option(help="A name of torch.linalg.")] = None,
    shape: Annotated[
        str | None, typer.Option(help="As 4096x32, or '8192x64 k=16', or '512x64 rank=16'.")
    ] = None,
    batch: Annotated[int, typer.Option(min=0, help="Number of matrices; 0 is one matrix.")] = 0,
    dtype: Annotated[str | None, typer.Option(help="As float64.")] = None,
    device: Annotated[str | None, typer.Option(help="As cpu or cuda:0.")] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(help="Largest relative error accepted. [default: ten times the best]"),
    ] = None,
    memory: Annotated[float | None, typer.Option(help="Most bytes the backward may take.")] = None,
    objective: Annotated[
        verdicts.Objective, typer.Option(help="What is to be small.")
    ] = verdicts.Objective.BACKWARD,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the case now, instead of looking it up.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JSON there too.")] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help="Put a Markdown table between its markers there too."
        ),
    ] = None,
) -> None:
    """Recommend a strategy for every measured case, or for the one described.

    Given an operation and a shape, it ranks the strategies of the nearest measured cases. What is
    not given (dtype, device) may be anything.
    """
    criteria = verdicts.Criteria(objective, accuracy, memory)
    question = nearest.Question(operation, shape, batch, dtype, device)
    if shape is not None and operation is None:
        raise ValueError("--shape needs --operation")
    measured = _measured_now(question) if measure else rows.load(results)
    judged = verdicts.judge(measured, strategies.available(), criteria)
    if measure:
        cells = [judged.assign(distance=0.0)]
    else:
        judged = nearest.matching(judged, question)
        cells = nearest.nearest_cells(judged, question) if shape else [judged]
    shown = pd.concat(cells, ignore_index=True)
    if out is not None:
        recommendation.write(shown, criteria, out)
    if into is not None:
        table = markdown.answer(shown, measured, strategies.available())
        markdown.put_between_markers(into, table)
    if as_json:
        content = recommendation.as_json(shown, criteria)
        if shape is not None:
            content["asked"] = asdict(question) | {"ranking": nearest.answer(cells, question)}
        print(json.dumps(content, indent=1, ensure_ascii=False))
    elif shape is None:
        console.print(recommendation.overview(shown))
    else:
        _print_rankings(cells, question)
    if not as_json:
        _print_provenance(shown)


def _measured_now(question: nearest.Question) -> pd.DataFrame:
    if question.operation is None or question.shape is None:
        raise ValueError("--measure needs --operation and --shape")
    case = on_the_spot.question_case(
        question.operation,
        parse_shape(question.shape),
        question.batch,
        question.dtype or "float64",
        question.device or "cpu",
    )
    names = strategies.available()
    with progress(len(names), notes) as begin:
        return on_the_spot.measure(
            case, names, begins=lambda name: begin(f"measuring {case.label}: {name}")
        )


def _print_rankings(cells: list[pd.DataFrame], question: nearest.Question) -> None:
    console.print(recommendation.ranking(cells[0]))
    distance = cells[0]["distance"].iloc[0]
    if distance > 0:
        asked = f"{question.batch} of {question.shape}" if question.batch else question.shape
        console.print(
            f"{asked} itself was not measured. This is the nearest case, a factor of "
            f"{2**distance:.2g} away; --measure measures yours."
        )
        names = nearest.answer(cells, question)
        if names:
            console.print(
                f"Weighted by nearness, this case and the next {len(cells) - 1} say: "
                f"{', then '.join(names)}."
            )
    if len(cells) > 1:
        others = pd.concat(cells[1:], ignore_index=True)
        console.print(recommendation.overview(others, title="The next nearest"))


def _print_provenance(shown: pd.DataFrame) -> None:
    for run in recommendation.provenance(shown):
        parts = [run["cpu"], run["gpu"], f"{run['threads']} threads" if run["threads"] else ""]
        parts += [f"torch {run['torch']}" if run["torch"] else "", run["commit"][:8]]
        parts += [run["started_at"] or "", run["source"]]
        console.print("measured on " + ", ".join(part for part in parts if part), style="dim")

"""`backward-strategies recommend`: what to use, and why."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
import typer

from strategies import operations, policy, registry
from strategies.cli import common
from strategies.cli.common import DEFAULT_RESULTS, console, file_option, notes, writable
from strategies.cli.policy import defaults_table
from strategies.cli.progress import progress
from strategies.cli.stability import judged_first
from strategies.files.documents import json_text
from strategies.files.writing import write_text
from strategies.measuring import TIMED, Case, Machine, Objective, Run, describe, measure, store
from strategies.measuring.noise import with_load_and_noise
from strategies.measuring.stability import judged_cells
from strategies.policy.schema import Evidence, Policy
from strategies.selection import markdown, nearest, recommendation
from strategies.selection.draws import hard_cases
from strategies.selection.eligibility import Criteria
from strategies.selection.policies import policy_key
from strategies.selection.stability import evidence_in, summary
from strategies.selection.text import provenance, quietness
from strategies.selection.verdicts import JudgedCell, judge, judge_cell, machines

_MEASURE = f"`backward-strategies measure {DEFAULT_RESULTS}/mine.json`"

HARD_CASES = 60
"""How many show whether a strategy is stable of which the shipped policy knows nothing."""


def recommend(
    results: common.Results = DEFAULT_RESULTS,
    operation: common.Operation = None,
    shape: Annotated[
        str | None, typer.Option(help="As 4096x32, or '8192x64 k=16', or '512x64 rank=16'.")
    ] = None,
    batch: Annotated[int, typer.Option(min=0, help="Number of matrices; 0 is one matrix.")] = 0,
    dtype: common.Dtype = None,
    device: Annotated[str | None, typer.Option(help="As cpu or cuda:0.")] = None,
    accuracy: common.Accuracy = None,
    memory: common.Memory = None,
    objective: common.Goal = Objective.FORWARD_BACKWARD,
    measure_now: Annotated[
        bool, typer.Option("--measure", help="Measure the case now, instead of looking it up.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
    out: Annotated[Path | None, file_option("Write JSON there too.", callback=writable)] = None,
    into: Annotated[
        Path | None,
        file_option("Put a Markdown table between its markers there too.", "--markdown"),
    ] = None,
) -> None:
    """Recommend a strategy for every measured case, or for the one described.

    Given an operation and a shape, it ranks the strategies of the nearest measured cases. What is
    not given (dtype, device) may be anything. Without results, the shipped policy answers.
    """
    criteria = Criteria(objective, accuracy, memory)
    asked = _asked(operation, shape, batch, dtype, device)
    if measure_now:
        runs, judged = _measured_now(asked, criteria)
    elif results == DEFAULT_RESULTS and not results.exists():
        if into or criteria != Criteria():
            wanted = "--markdown, --accuracy, --memory and --objective need results"
            raise ValueError(f"{wanted}; {_MEASURE} measures this machine")
        only = operations.get(operation).policy_operation if operation else None
        _tell_shipped(only, asked, as_json, out)
        return
    else:
        runs = store.load(results)
        columns = {"operation": operation, "dtype": dtype, "device": device}
        judged = nearest.matching(judge(runs, criteria), **columns)
        judged = nearest.nearest_cells(judged, asked) if asked else judged
    content = recommendation.as_json(judged, criteria)
    if asked is not None:
        content["asked"] = asked.columns() | {"ranking": nearest.answer(judged, asked)}
    if out is not None:
        write_text(out, json_text(content))
    if into is not None:
        markdown.update(into, judged, runs, objective)
    if as_json:
        print(json_text(content), end="")
        return
    if busy := quietness(machines(judged)):
        console.print(f"when measuring began: {busy}")
    if asked is None:
        console.print(recommendation.overview(judged, objective))
        for line in recommendation.in_words(judged):
            console.print(line, highlight=False)
    else:
        _print_rankings(judged, asked, objective)
    _print_provenance(machines(judged))
    sources = ", ".join(sorted({cell.source for cell in judged}))
    console.print(sources if measure_now else f"in {sources}", style="dim")


def _asked(
    operation: str | None, shape: str | None, batch: int, dtype: str | None, device: str | None
) -> Case | None:
    """The case described; None where all of them are asked for."""
    if operation is not None:
        operations.get(operation)
    if shape is None:
        return None
    if operation is None:
        raise ValueError("--shape needs --operation")
    sizes = f"{batch}x{shape}" if batch else shape
    case = Case.parse(" ".join(filter(None, (operation, sizes, dtype))))
    return replace(case, device=device) if device else case


def _measured_now(asked: Case | None, criteria: Criteria) -> tuple[list[Run], list[JudgedCell]]:
    if asked is None:
        raise ValueError("--measure needs --operation and --shape")
    names, machine = registry.available(), with_load_and_noise(describe())
    with progress(len(names) + len(TIMED), notes) as begin:
        cell = measure(asked, names, begins=lambda step: begin(f"measuring {asked}: {step}"))
    judged = judge_cell(machine, cell, criteria, _stability(asked, names), "measured now")
    return [Run("grid", machine, {}, (cell,))], [judged]


def _stability(asked: Case, names: Sequence[str]) -> dict[str, Evidence]:
    """What the shipped policy knows of these strategies, and of others what hard cases show now."""
    known = dict(evidence_in(Policy.read(policy.SHIPPED), asked))
    if missing := [name for name in names if name not in known]:
        drawn = hard_cases(asked.device, 0, [asked.operation], [asked.dtype_name])
        writer = store.Writer(None, "stability", {}, describe())
        judged = partial(judged_cells, names=missing)
        for by_name in summary(judged_first(drawn, HARD_CASES, judged, writer)).values():
            known |= by_name
    return known


def _tell_shipped(
    operation: str | None, asked: Case | None, as_json: bool, out: Path | None
) -> None:
    """What "auto" uses where nothing was measured on this machine."""
    device = asked.device if asked else "cpu"
    found, source = Policy.read(policy.SHIPPED), "the shipped policy"
    shipped, source = policy.resolve_for_machine(found, source, device, torch.get_num_threads())
    content: dict[str, Any] = {"provenance": shipped.provenance, "cells": []}
    ranked: tuple[str, ...] = ()
    is_near = False
    if asked is not None:
        key, is_deficient = policy_key(asked), asked.rank is not None
        ranked = shipped.ranking(key, deficient=is_deficient)
        is_near = bool(shipped.nearest(key, deficient=is_deficient))
        content["asked"] = asked.columns() | {"ranking": ranked}
    if out is not None:
        write_text(out, json_text(content))
    if as_json:
        print(json_text(content), end="")
        return
    console.print(
        f"There are no results in {DEFAULT_RESULTS}; {_MEASURE} measures this machine. Until then "
        f"{source} answers."
    )
    if asked is None:
        console.print(defaults_table(shipped, operation))
    else:
        said = ", then ".join(ranked) or "it was not measured there either"
        first = f"For {asked}" if is_near or not ranked else f"Nothing near {asked} was measured"
        console.print(f"{first}: {said}.")
    _print_provenance(msgspec.convert(run, Machine) for run in shipped.provenance)


def _print_rankings(cells: list[JudgedCell], asked: Case, objective: Objective) -> None:
    console.print(recommendation.ranking(cells[0], objective))
    distance = nearest.distance(cells[0].case, asked)
    if distance > 0:
        factor = f"{2**distance:.2g}"
        away = "of about that size" if factor == "1" else f"a factor of {factor} away"
        console.print(
            f"{asked.sizes} itself was not measured. This is the nearest case, {away}; --measure "
            "measures yours."
        )
        if names := ", then ".join(nearest.answer(cells, asked)):
            count = len(cells) - 1
            console.print(f"Weighted by nearness, this case and the next {count} say: {names}.")
    if len(cells) > 1:
        console.print(recommendation.overview(cells[1:], objective, title="The next nearest"))


def _print_provenance(machines: Iterable[Machine]) -> None:
    for line in provenance(machines):
        console.print(f"measured on {line}", style="dim")

"""Pages that mkdocs makes from the code: one a strategy, and the table of what each supports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from mkdocs.structure.files import File, Files

import strategies
from strategies import operations
from strategies.accuracy.reference import gradient
from strategies.errors import LinAlgError
from strategies.formulas.accuracy_classes import AccuracyClass
from strategies.measuring import Case, backward_of, forward

LARGEST_ERROR = 1e-10


def on_config(config: Any) -> Any:
    """Lists the strategies in the navigation."""
    names = [{name: f"strategies/{name}.md"} for name in strategies.available()]
    for entry in config["nav"]:
        if "Strategies" in entry:
            entry["Strategies"] = ["strategies/index.md", *names]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages."""
    pages = {name: _page(name) for name in strategies.available()} | {"index": _index()}
    for name, text in pages.items():
        files.append(File.generated(config, f"strategies/{name}.md", content=text))
    return files


def _page(name: str) -> str:
    kind = type(strategies.get(name))
    options = "    options:\n      show_root_heading: false\n"
    return f"# {name}\n\n::: {kind.__module__}.{kind.__qualname__}\n{options}"


def _index() -> str:
    names = strategies.available()
    summaries = "\n".join(
        f"| [`{name}`]({name}.md) | {strategies.get(name).summary} |" for name in names
    )
    rows = "\n".join(
        f"| `{name}` | {' | '.join(_support(each, name) for each in operations.names())} |"
        for name in names
    )
    return f"""# Strategies

| strategy | what it forms, and how that is applied |
| --- | --- |
{summaries}

## What each one supports

Found by running every pair when this page was built: real and complex, one matrix and
batches, compared with exact gradients. *Any rank*: the gradient of a rank-deficient matrix is right too.
**Own** marks a backward that the strategy has for this operation; all others follow from its `factor`.
`lu_factor` raises at a zero pivot, as PyTorch's does; `lu` goes on.
The [table of modes](../modes.md) says the same of higher derivatives and transforms.

| strategy | {" | ".join(f"`{name}`" for name in operations.names())} |
| --- |{" --- |" * len(operations.names())}
{rows}

## What a gradient may lose beyond rounding

Where nothing is said, it loses nothing that the conditioning of the problem does not explain.

| strategy | operations | class | why |
| --- | --- | --- | --- |
{_losses()}
"""


def _support(operation: str, name: str) -> str:
    record = operations.get(operation)
    shape = (4, 4) if record.square else (6, 4)
    full = [
        Case(operation, shape, batch, dtype)
        for batch in (0, 3)
        for dtype in (torch.float64, torch.complex128)
    ]
    if not all(_is_right(case, name) for case in full):
        return "no"
    is_own = hasattr(strategies.get(name), f"{record.stem}_backward")
    any_rank = not record.needs_full_rank and _is_right(Case(operation, shape, rank=3), name)
    return f"{'**own**, ' if is_own else ''}{'any' if any_rank else 'full'} rank"


def _losses() -> str:
    """A line for all strategies that lose the same in the same operations."""
    losing: dict[tuple[str, AccuracyClass], list[str]] = {}
    for name in strategies.available():
        accuracy = strategies.get(name).accuracy
        for declared in dict.fromkeys(accuracy.values()):
            stems = ", ".join(f"`{stem}`" for stem in accuracy if accuracy[stem] is declared)
            losing.setdefault((stems, declared), []).append(f"`{name}`")
    return "\n".join(
        f"| {', '.join(names)} | {stems} | {declared.name} | {declared.reason} |"
        for (stems, declared), names in losing.items()
    )


def _is_right(case: Case, name: str) -> bool:
    try:
        computed = operations.get(case.operation).defined(backward_of(case, name)())
        outputs = forward(case, name)
        exact = gradient(case.operation, case.inputs(), case.cotangents(outputs), rank=case.rank)
    except (LinAlgError, NotImplementedError, RuntimeError):
        return False
    return exact.relative_error(computed) < LARGEST_ERROR

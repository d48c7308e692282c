"""Pages that mkdocs makes from the code: one a strategy, and the table of what each supports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from mkdocs.structure.files import File, Files

import strategies
from strategies.accuracy.reference import gradient
from strategies.errors import LinAlgError
from strategies.measuring import Case, backward_of, forward

CASES = {
    "lu": ((6, 6), 3),
    "pinv": ((6, 4), 2),
    "lstsq": ((6, 4), 2),
    "solve": ((4, 4), None),
    "inv": ((4, 4), None),
    "det": ((4, 4), 3),
    "slogdet": ((4, 4), None),
}
"""For every operation a shape, and a deficient rank at which it has a gradient."""

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
        f"| `{name}` | " + " | ".join(_support(operation, name) for operation in CASES) + " |"
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
`lu` stands for `lu_factor` and `lu_factor_ex` too; `lu_factor` raises at a zero pivot, as PyTorch's does.
The [table of modes](../modes.md) says the same of higher derivatives and transforms.

| strategy | {" | ".join(f"`{operation}`" for operation in CASES)} |
| --- | {" | ".join("---" for _ in CASES)} |
{rows}
"""


def _support(operation: str, name: str) -> str:
    shape, deficient = CASES[operation]
    full = [
        Case(operation, shape, batch, dtype)
        for batch in (0, 3)
        for dtype in (torch.float64, torch.complex128)
    ]
    if not all(_is_right(case, name) for case in full):
        return "no"
    entry = "full rank"
    if deficient is not None and _is_right(Case(operation, shape, rank=deficient), name):
        entry = "any rank"
    method = operation.removeprefix("slog") + "_backward"
    kind = type(strategies.get(name))
    is_own = getattr(kind, method) is not getattr(strategies.Strategy, method)
    return f"**own**, {entry}" if is_own else entry


def _is_right(case: Case, name: str) -> bool:
    try:
        computed = backward_of(case, name)()
    except (LinAlgError, NotImplementedError, RuntimeError):
        return False
    outputs = forward(case, name)
    exact = gradient(case.operation, case.inputs(), case.cotangents(outputs), rank=case.rank)
    return exact.relative_error(computed) < LARGEST_ERROR

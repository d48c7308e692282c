"""`backward-strategies policy`: the defaults as a file, what is in force here, and what was calibrated."""

from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.table import Table

from strategies.cli import common
from strategies.cli.common import DEFAULT_RESULTS, console
from strategies.errors import UnusableFileError
from strategies.files.documents import says
from strategies.measuring import Case, Objective, store
from strategies.policy import BASELINE, active, calibration, resolve_for_machine, validators
from strategies.policy.calibration import Calibration, counted
from strategies.policy.schema import Cell, Part, Policy
from strategies.selection import policies
from strategies.selection.eligibility import Criteria
from strategies.selection.text import table

app = typer.Typer(
    help="Build, show and compare policies; move what was calibrated.", no_args_is_help=True
)

PolicyFile = Annotated[Path, typer.Argument(metavar="FILE")]

CASE = "operation", "case", "dtype", "device"


@app.command()
def build(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the policy.")],
    results: common.Results = DEFAULT_RESULTS,
    accuracy: common.Accuracy = None,
    memory: common.Memory = None,
    objective: common.Goal = Objective.FORWARD_BACKWARD,
    base: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The machine that it is of; others answer near them."),
    ] = None,
) -> None:
    """Build a policy from the results of one machine, or of several of which one is named.

    Where that policy is followed, the machine that is nearest answers.
    """
    policy = policies.build(store.load(results), Criteria(objective, accuracy, memory), base)
    policy.save(out)
    beside = [f"{part.machine['name']} ({part.device})" for part in policy.others]
    others = f"; beside it {', '.join(beside)}" if beside else ""
    console.print(f"{len(policies.by_case(policy))} cells written to {out}{others}", soft_wrap=True)


@app.command()
def show(file: Annotated[Path | None, typer.Argument(metavar="FILE")] = None) -> None:
    """Show what "auto" follows, and why; or what a file says, and the single default of operations."""
    path = file or calibration.location()
    if file is None:
        _, source = active()
        threads = counted(torch.get_num_threads(), "thread")
        console.print(f'"auto" follows {source}, with {threads}.')
        if not path.exists():
            console.print(f"Nothing was calibrated: there is no {path}.")
            return
    if file is None or says(path, Calibration().format):
        _tell_parts(path, Calibration.read(path) if file else calibration.known())
        return
    policy = Policy.read(path)
    console.print(defaults_table(policy))
    choices = "use", "as good", "else"
    lines = table("By case", (*CASE, *choices), ["× native"], wraps=(*CASE, *choices))
    for case, cell in policies.by_case(policy).items():
        native = cell.times.get(BASELINE)
        over = "-" if native is None else f"{native / cell.times.get(cell.use, 1.0):.3g}"
        lines.add_row(*_words(case), cell.use, ", ".join(cell.ties), _next(cell), over)
    console.print(lines)
    if policy.others:
        _tell_others(policy)


@app.command()
def diff(old: PolicyFile, new: PolicyFile) -> None:
    """Compare two policies, cell by cell; exit code 1 if they differ beyond ties."""
    one, other = Policy.read(old), Policy.read(new)
    shared = policies.differences(one, other)
    changed = [each for each in shared if each.is_change]
    decided = [each for each in shared if not each.is_tie]
    beyond = sum(each.is_change for each in decided)
    alone = len(policies.by_case(one)) + len(policies.by_case(other)) - 2 * len(shared)
    if changed:
        lines = table("Changed", (*CASE, "old", "new", ""), wraps=(*CASE, "old", "new"))
        for each in changed:
            note = "a tie" if each.is_tie else ""
            lines.add_row(*_words(each.case), each.old.use, each.new.use, note)
        console.print(lines)
    console.print(
        f"{len(shared)} cells in both: {len(shared) - len(changed)} agree, "
        f"{len(changed) - beyond} differ within a tie, {beyond} differ; {alone} in one only"
    )
    if decided:
        agreeing = len(decided) - beyond
        share = f"{agreeing / len(decided):.1%}"
        console.print(f"of the {len(decided)} that are no tie, {agreeing} agree: {share}")
    if beyond:
        raise typer.Exit(1)


@app.command()
def clear() -> None:
    """Delete what was calibrated; "auto" follows the shipped policy again."""
    path = calibration.location()
    if not path.exists():
        console.print(f"There is no {path}: nothing was calibrated.")
        return
    try:
        path.unlink()
    except OSError as error:
        raise UnusableFileError(path, f"cannot be deleted ({error.strerror})") from error
    console.print(f"{path} is deleted.")


@app.command()
def export(out: PolicyFile) -> None:
    """Write what was calibrated to a file, for machines of the same kind."""
    found = calibration.known()
    if not found.parts:
        wanted = "`backward-strategies calibrate` measures this machine"
        raise ValueError(f"nothing was calibrated: there is no {calibration.location()}; {wanted}")
    found.save(out, parents=True)
    console.print(f"{counted(len(found.parts), 'part')} written to {out}")


@app.command("import")
def import_(file: PolicyFile) -> None:
    """Take over what was calibrated on a machine of the same kind; refuse that of any other.

    What is known here of other machines, and of other cases, stays.
    """
    given, path = Calibration.read(file), calibration.location()
    fitting = [part for part in given.parts if not _differences(part)]
    if not fitting:
        reasons = min((_differences(part) for part in given.parts), key=len, default=["nothing"])
        raise UnusableFileError(file, f"is of another machine: here is {'; '.join(reasons)}")
    calibration.known().having(fitting).save(path, parents=True)
    left = len(given.parts) - len(fitting)
    others = f"; {counted(left, 'part')} of other machines left out" if left else ""
    console.print(f"{counted(len(fitting), 'part')} imported into {path}{others}")


def defaults_table(policy: Policy, only: str | None = None) -> Table:
    """The strategy of every operation, or of one, to keep if only one may be kept."""
    left, right = ("operation", "matrices", "use"), ("worst regret", "mean regret", "not covered")
    lines = table("If only one may be kept", left, right)
    for operation, entry in policy.operations.items():
        if only not in (None, operation):
            continue
        for matrices, default in (("full rank", entry.full_rank), ("any rank", entry.any_rank)):
            if default is not None:
                regrets = f"{default.worst_regret:.2f}×", f"{default.mean_regret:.2f}×"
                uncovered = f"{default.uncovered} of {default.cells}"
                lines.add_row(operation, matrices, default.strategy, *regrets, uncovered)
    return lines


def _words(case: Case) -> tuple[str, ...]:
    return case.operation, case.sizes, case.dtype_name, case.device


def _next(cell: Cell) -> str:
    """The fastest that is slower, and by how much: what is lost where the others are missing."""
    slower = cell.times.keys() - {cell.use, *cell.ties}
    if not slower:
        return "-"
    name = min(slower, key=cell.times.__getitem__)
    return f"{name} {cell.times[name] / cell.times.get(cell.use, 1.0):.3g}×"


def _tell_parts(path: Path, found: Calibration) -> None:
    """Every part of a calibration, and why it does not hold here."""
    left, right = ("processor", "device", "here"), ("threads", "cells")
    lines = table("Calibrated", left, right, wraps=["here"])
    for part in found.parts:
        here = "; ".join(_differences(part)) or "yes"
        name = part.validators.gpu or part.validators.cpu
        lines.add_row(name, part.device, here, str(part.threads), str(cells_of(part)))
    console.print(lines)
    console.print(f"in {path}", style="dim", soft_wrap=True)


def _tell_others(policy: Policy) -> None:
    """The other machines that a policy knows, and which of all answers here."""
    left, right = ("machine", "processor", "device"), ("threads", "torch", "cells")
    lines = table("Other machines", left, right)
    for part in policy.others:
        found = part.validators
        model, version = found.gpu or found.cpu, found.torch
        name = part.machine.get("name", "")
        lines.add_row(name, model, part.device, str(part.threads), version, str(cells_of(part)))
    console.print(lines)
    for device in sorted({"cpu", *(part.device for part in policy.others)}):
        threads = torch.get_num_threads()
        _, source = resolve_for_machine(policy, "the nearest machine", device, threads)
        console.print(f"Here, {device}, {counted(threads, 'thread')}: {source}", soft_wrap=True)


def cells_of(part: Part) -> int:
    """How many cells a part holds."""
    return sum(len(cells) for by_dtype in part.cells.values() for cells in by_dtype.values())


def _differences(part: Part) -> list[str]:
    """Why a part does not hold here, in words."""
    try:
        return validators.here(part.device).differences(part.validators)
    except RuntimeError as error:
        return [str(error)]

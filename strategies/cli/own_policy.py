"""`backward-strategies policy clear | export | import`, and what is in force here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from strategies import policy
from strategies.cli.common import console, reports_errors
from strategies.files import UnusableFileError
from strategies.policy import calibration, resolve_for_machine, validators
from strategies.policy.calibration import Calibration, threads_in_words
from strategies.policy.schema import Part, Policy
from strategies.selection.text import table

File = Annotated[Path, typer.Argument(metavar="FILE")]


@reports_errors
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


@reports_errors
def export(out: File) -> None:
    """Write what was calibrated to a file, for machines of the same kind."""
    found = calibration.read(calibration.location())
    calibration.save(out, found)
    console.print(f"{counted(len(found.parts), 'part')} written to {out}")


@reports_errors
def import_(file: File) -> None:
    """Take over what was calibrated on a machine of the same kind; refuse that of any other.

    What is known here of other machines, and of other cases, stays.
    """
    given, path = calibration.read(file), calibration.location()
    fitting = [part for part in given.parts if not differences(part)]
    if not fitting:
        reasons = min((differences(part) for part in given.parts), key=len, default=["nothing"])
        raise UnusableFileError(file, f"is of another machine: here is {'; '.join(reasons)}")
    calibration.save(path, known().having(fitting))
    left = len(given.parts) - len(fitting)
    others = f"; {counted(left, 'part')} of other machines left out" if left else ""
    console.print(f"{counted(len(fitting), 'part')} imported into {path}{others}")


def known() -> Calibration:
    """What the user's file holds."""
    path = calibration.location()
    return calibration.read(path) if path.exists() else Calibration()


def tell_in_force() -> None:
    """What "auto" follows here and now, and what else the user's file holds."""
    _, source = policy.active()
    console.print(f'"auto" follows {source}, with {threads_in_words(torch.get_num_threads())}.')
    path = calibration.location()
    if path.exists():
        tell_parts(path, calibration.read(path))
    else:
        console.print(f"Nothing was calibrated: there is no {path}.")


def tell_parts(path: Path, found: Calibration) -> None:
    """Every part of a calibration, and why it does not hold here."""
    columns = "processor", "device", "here"
    lines = table("Calibrated", columns, ("threads", "cells"), wraps=["here"])
    for part in found.parts:
        here = "; ".join(differences(part)) or "yes"
        name = part.validators.gpu or part.validators.cpu
        lines.add_row(name, part.device, here, str(part.threads), str(cells_of(part)))
    console.print(lines)
    console.print(f"in {path}", style="dim", soft_wrap=True)


def tell_others(policy: Policy) -> None:
    """The other machines that a policy knows, and which of all answers here."""
    lines = table(
        "Other machines", ("machine", "processor", "device"), ("threads", "torch", "cells")
    )
    for part in policy.others:
        found = part.validators
        model, version = found.gpu or found.cpu, found.torch
        name = part.machine.get("name", "")
        lines.add_row(name, model, part.device, str(part.threads), version, str(cells_of(part)))
    console.print(lines)
    for device in sorted({"cpu", *(part.device for part in policy.others)}):
        threads = torch.get_num_threads()
        _, source = resolve_for_machine(policy, "the nearest machine", device, threads)
        console.print(f"Here, {device}, {threads_in_words(threads)}: {source}", soft_wrap=True)


def cells_of(part: Part) -> int:
    """How many cells a part holds."""
    return sum(len(cells) for by_dtype in part.cells.values() for cells in by_dtype.values())


def differences(part: Part) -> list[str]:
    """Why a part does not hold here, in words."""
    try:
        return validators.here(part.device).differences(part.validators)
    except RuntimeError as error:
        return [str(error)]


def counted(number: int, what: str) -> str:
    """As "1 part" or "2 parts"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

"""What `backward-strategies calibrate` has measured on the machines of a user, as a file.

It is JSON, described by `Calibration`. A part is of one machine, kind of device and number of threads, and
holds there: it corrects what the shipped policy says of other cases when "auto" is first asked
(`strategies.policy.adaptation`).
"""

import math
from collections.abc import Iterable
from pathlib import Path

import msgspec

from strategies.errors import UnusableFileError
from strategies.files.documents import Document
from strategies.files.folders import configuration_directory
from strategies.policy.schema import Part
from strategies.policy.validators import Validators


class Calibration(Document, frozen=True, eq=False, kw_only=True):
    """The content of the file: a part for each machine, kind of device and number of threads."""

    format: str = "backward-strategies calibration"
    version: int = 1
    parts: tuple[Part, ...] = ()

    def of(self, validators: Validators, device: str) -> list[Part]:
        """The parts that hold for a kind of device of a machine."""
        return [p for p in self.parts if (p.validators, p.device) == (validators, device)]

    def why_not(self, validators: Validators, device: str) -> list[str]:
        """What differs from the most similar machine that it knows; empty where it knows none."""
        known = (p.validators for p in self.parts if p.device == device)
        return min((validators.differences(each) for each in known), key=len, default=[])

    def having(self, parts: Iterable[Part]) -> "Calibration":
        """The same with other parts, over those of the same place."""
        found = {part.place: part for part in self.parts}
        for part in parts:
            older = found.get(part.place)
            found[part.place] = part.over(older) if older else part
        return msgspec.structs.replace(self, parts=tuple(found.values()))


def location() -> Path:
    """Where the calibration of the user is, if there is one."""
    return configuration_directory() / "policy.json"


def known() -> Calibration:
    """What the user's file holds, if there is one; UnusableFileError with a remedy else."""
    path = location()
    try:
        return Calibration.read(path) if path.exists() else Calibration()
    except UnusableFileError as error:
        problem = f"{error.problem}; `backward-strategies policy clear` deletes it"
        raise UnusableFileError(path, problem) from error


def counted(number: int, what: str) -> str:
    """As "1 part" or "2 parts"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def factor(threads: int, others: int) -> float:
    """How far two numbers of threads are apart, as a logarithm."""
    return abs(math.log2(max(threads, 1) / max(others, 1)))

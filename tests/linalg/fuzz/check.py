"""One call, made by this package and by torch."""

from __future__ import annotations

import functools

import torch

from strategies import linalg

from .calls import Call
from .compare import Deviation, deviations
from .differences import unnamed
from .outcome import outcome


def check(call: Call) -> tuple[set[str], list[Deviation]]:
    """The documented differences that a call shows, and what else is not as in torch."""
    function = functools.partial(getattr(linalg, call.operation), strategy=call.strategy)
    ours = outcome(call, function)
    theirs = outcome(call, getattr(torch.linalg, call.operation))
    return unnamed(call, deviations(call, ours, theirs), ours, theirs)

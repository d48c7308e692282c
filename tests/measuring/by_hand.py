"""Measurements made by hand: times that are known, each within a factor of `spread`."""

from strategies.measuring.case import Case
from strategies.measuring.measurement import Cell, Measurement, Timing


def timing(seconds, spread=1.0, halves=None):
    return Timing(seconds, seconds / spread, seconds * spread, halves or (seconds, seconds))


def took(strategy, seconds, spread=1.0):
    return Measurement(strategy, forward_backward=timing(seconds, spread))


def cell(case, spread=1.0, **seconds):
    """The time of forward and backward by each strategy."""
    return Cell(Case.parse(case), tuple(took(*each, spread) for each in seconds.items()))

"""From what `recommend` says to the numbers in the file that it names."""

from pathlib import Path

from strategies.measuring.store import load
from strategies.selection import recommendation
from strategies.selection.eligibility import Criteria
from strategies.selection.verdicts import judge

RESULTS = Path(__file__).parents[2] / "results" / "epyc-2cores" / "grid"


def test_every_number_is_in_the_file_that_is_named():
    runs = load(RESULTS, "grid")
    cells = judge(runs)
    kept = {run.path: {cell.case: cell for cell in run.cells} for run in runs}
    for cell, said in zip(cells, recommendation.as_json(cells, Criteria())["cells"], strict=True):
        in_file = kept[said["source"]][cell.case]
        for each in said["strategies"]:
            measured = in_file.get(each["strategy"])
            for name in ("forward_backward", "error", "peak_bytes"):
                assert each[name] == getattr(measured, name)

"""Runs with cells of every kind that a figure can be drawn from."""

import pytest
import torch
from by_hand import cell_of, timing
from typer import Typer
from typer.testing import CliRunner

from plots.rows import table
from strategies.measuring import Case, store
from strategies.measuring.machine import Machine
from strategies.measuring.measurement import Cell, Measurement, Stability, Status
from strategies.measuring.store import Run

MACHINE = Machine("reference-machine", "Reference CPU", started_at="2023-11-14T22:13:20+00:00")
SPEEDUPS = {"native": 1.0, "triangular_solve": 3.0, "qr_pinv": 2.9, "somebody_elses": 0.5}
TIMED = ("16x16", "256x256", "64x8", "4096x16", "1000x4x4", "64x16 rank=5")
JUDGED = (
    *("32x8 cond=1e1", "32x8 cond=1e5", "32x8 cond=1e9", "64x16 cond=1e1", "256x64 cond=1e1"),
    *("20x6 matrix=kahan", "20x6 matrix=graded_rows"),
)


def measured(text, speedups=SPEEDUPS):
    """The cell of a case: times if it is one that is timed, else errors and memory."""
    case = Case.parse(text)
    (m, n), eps = case.shape, torch.finfo(case.dtype).eps
    is_timed = case.log10_cond is None and case.matrix is None
    strategies = []
    for name, speedup in speedups.items():
        seconds = 1e-9 * m * n * n * max(case.batch, 1) / speedup
        error = speedup * eps * 10 ** (case.log10_cond or 1)
        found = {"error": error, "peak_bytes": 16 * m * (m if name == "native" else n)}
        times = {"backward": timing(seconds / 2, 1.02), "forward_backward": timing(seconds, 1.02)}
        strategies.append(Measurement(name, **found, **(times if is_timed else {})))
    return Cell(case, tuple(strategies))


def judged(text, ratios):
    """The cell of a hard case: stability ratios by strategy, None where it refused."""
    found = [
        Measurement(name, Status.NOT_APPLICABLE)
        if ratio is None
        else Measurement(name, stability=Stability(0.5, 0.5, ratio / 2, ratio))
        for name, ratio in ratios.items()
    ]
    return cell_of(*found, case=text)


HARD = judged(
    "solve 9x9 cond=1e9 B=image",
    {"native": 3e12, "explicit_inverse": None, "qr_pinv": 4.4, "auto": 4.4},
)
EASY = judged(
    "solve 9x9 G=ones", {"native": 1e30, "explicit_inverse": 250.0, "qr_pinv": 0.5, "auto": 0.5}
)
STABLE = tuple(judged(f"{name} 4x4", dict.fromkeys(SPEEDUPS, 2.0)) for name in ("lstsq", "pinv"))
OTHERS = judged("solve 9x9 cond=1e9 B=image", {"jax": 2.0, "lineax": None})


@pytest.fixture(scope="session")
def runs():
    grid = [measured(f"{name} {text}") for name in ("lstsq", "pinv") for text in TIMED]
    grid += [measured(f"pinv {text}") for text in JUDGED]
    grid += [measured("solve 32x32", {"triangular_solve": 1.0, "explicit_inverse": 0.5})]
    peers = measured("pinv 4096x16", {"native": 1.0, "qr_pinv": 3.0, "jax": 2.0})
    return [
        Run("grid", MACHINE, {}, tuple(grid)),
        Run("peers", MACHINE, {}, (peers,)),
        Run("stability", MACHINE, {}, (HARD, EASY, *STABLE)),
        Run("peer_stability", MACHINE, {}, (OTHERS,)),
    ]


@pytest.fixture(scope="session")
def few(runs):
    """Two timed cases and other libraries: what some figures are quickly drawn from."""
    cells = tuple(measured(text) for text in ("pinv 64x8", "lstsq 16x16"))
    return [Run("grid", MACHINE, {}, cells), runs[1], Run("stability", MACHINE, {}, STABLE)]


@pytest.fixture
def rows(runs):
    return table(runs)


@pytest.fixture
def run():
    """Runs a command as from a shell."""

    def run(main, *arguments):
        app = Typer()
        app.command()(main)
        return CliRunner().invoke(app, [*map(str, arguments)])

    return run


@pytest.fixture
def page(tmp_path):
    """Makes a page with places for parts."""

    def page(*names):
        path = tmp_path / "page.md"
        places = (f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in names)
        path.write_text("".join(places))
        return path

    return page


@pytest.fixture
def fill(run, tmp_path):
    """Writes a page and runs a command on it: what it says, and the page then."""

    def fill(main, text, *options):
        path = tmp_path / "page.md"
        path.write_text(text)
        return run(main, path, *options), path.read_text()

    return fill


@pytest.fixture(scope="session")
def texts():
    """What stands in a figure."""

    def texts(figure):
        figure.draw_without_rendering()
        found = figure.findobj(lambda artist: hasattr(artist, "get_text"))
        return [text.get_text() for text in found]

    return texts


@pytest.fixture(scope="session")
def write_runs():
    """Writes runs into a folder, as the commands that measure them do."""

    def write(runs, folder):
        for run in runs:
            store.write(folder / f"{run.kind}.json", run)

    return write

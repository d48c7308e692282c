"""What holds for all tests."""

import importlib.metadata
import importlib.util
import os
import shutil
from importlib.metadata import EntryPoint

import pytest
import torch

# What "auto" is does not depend on who runs the tests.
os.environ["BACKWARD_STRATEGIES_CONFIG"] = os.devnull

if not torch.cuda.is_available():
    # Read when triton is imported, which is later: its kernels then run on the CPU, one by one.
    os.environ["TRITON_INTERPRET"] = "1"

# pytest-xdist fills the cores with processes; threads within each only wait for one another.
torch.set_num_threads(1)


def _missing_tools():
    """Those without which some tests are skipped."""
    from strategies.kernels import extension
    from strategies.kernels.cpu import library

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    are_there = {
        "a C++ compiler": shutil.which(os.environ.get("CXX", "c++")),
        "the kernel library": library.is_available(),
        "the fast path in C++ (backward-strategies warmup)": extension.load(),
        "Chromium and its driver": chromium and shutil.which("chromedriver"),
        "JAX and lineax (extra peers)": _are_installed("jax", "lineax", "flint"),
        "Triton": _are_installed("triton"),
        "expecttest": _are_installed("expecttest"),
        "linear_operator": _are_installed("linear_operator"),
    }
    return [name for name, is_there in are_there.items() if not is_there]


def _are_installed(*names):
    return all(map(importlib.util.find_spec, names))


def pytest_addoption(parser):
    parser.addoption("--require-tools", action="store_true", help="fail where a tool is missing")
    parser.addoption("--part", metavar="I/N", help="only each N-th test, from test I on")


def pytest_collection_modifyitems(config, items):
    if part := config.getoption("--part"):
        first, step = map(int, part.split("/"))
        config.hook.pytest_deselected(items=[x for i, x in enumerate(items) if i % step != first])
        items[:] = items[first::step]


def pytest_sessionstart(session):
    is_worker = hasattr(session.config, "workerinput")
    if session.config.getoption("--require-tools") and not is_worker and (gone := _missing_tools()):
        raise pytest.UsageError(f"tests would be skipped for want of {', '.join(gone)}")


def pytest_terminal_summary(terminalreporter):
    if gone := _missing_tools():
        terminalreporter.write_sep("-", "not tested for want of a tool")
        terminalreporter.write_line(", ".join(gone))


@pytest.fixture(autouse=True)
def same_random_numbers_every_time():
    torch.manual_seed(0)


@pytest.fixture(
    params=[
        "cpu",
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.cuda,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
            ],
        ),
    ]
)
def device(request):
    return request.param


@pytest.fixture
def offer(monkeypatch):
    """Offers plug-ins by name: each a class, what its import raises, or where it is to be imported from."""
    from strategies import registry

    load = EntryPoint.load

    def offer(**plug_ins):
        def loaded(point):
            found = plug_ins[point.name]
            if isinstance(found, BaseException):
                raise found
            return load(point) if isinstance(found, str) else found

        def point(name, found):
            value = found if isinstance(found, str) else "package.module:Kind"
            return EntryPoint(name, value, registry.ENTRY_POINT_GROUP)

        points = [*map(point, plug_ins, plug_ins.values())]
        monkeypatch.setattr(EntryPoint, "load", loaded)
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
        registry._strategies.cache_clear()

    yield offer
    registry._strategies.cache_clear()


@pytest.fixture(scope="session")
def package():
    """Makes a folder that on PYTHONPATH is as good as an installed package with an entry point."""

    def package(site, group, entry):
        metadata = site / "lent-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lent\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")

    return package


@pytest.fixture
def configuration(monkeypatch, tmp_path):
    """The folder of a user who has calibrated nothing yet; "auto" is asked for the first time."""
    from strategies import policy

    folder = tmp_path / "configuration"
    monkeypatch.setenv("BACKWARD_STRATEGIES_CONFIG", str(folder))
    monkeypatch.delenv("BACKWARD_STRATEGIES_USE", raising=False)
    policy.refresh()
    yield folder
    policy.refresh()


@pytest.fixture
def few(tmp_path):
    """The first case of each operation in the oracle's set."""
    from strategies.oracle import grader
    from strategies.oracle.asking import CORE

    path = tmp_path / "few.jsonl"
    path.write_text("\n".join(grader.lines(CORE)[:12]), encoding="utf-8")
    return path

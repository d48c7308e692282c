"""Results to select from: real files as asv wrote them, and tables made by hand."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from strategies.selection.rows import tidy

DATA = Path(__file__).parent / "data"
ORDER = ("native", "triangular_solve", "explicit_inverse", "qr_pinv", "svd_truncated_pinv")


@pytest.fixture
def asv_folder(tmp_path):
    """A copy of asv results of the tiny grid (lu and pinv), to be damaged at will."""
    return Path(shutil.copytree(DATA / "asv", tmp_path / "asv"))


@pytest.fixture
def result_file(asv_folder):
    return next(asv_folder.glob("*/*-*.json"))


def make_rows(*strategies, **case):
    """Rows of one case; each strategy is a dict with at least its name."""
    defaults = {
        "operation": "pinv",
        "m": 64,
        "n": 8,
        "dtype": "float64",
        "device": "cpu",
        "status": "ok",
        "machine": "here",
        "source": "here/run.json",
        "started_at": 1_700_000_000_000,
        "error": 1e-15,
    }
    return tidy(pd.DataFrame([defaults | case | strategy for strategy in strategies]))


def speed(strategy, value, spread=1.0, **others):
    """A strategy that is `value` times as fast as native, within a factor of `spread`."""
    return {
        "strategy": strategy,
        "speedup_over_native": value,
        "speedup_over_native_low": value / spread,
        "speedup_over_native_high": value * spread,
        "backward_seconds": 1e-3 / value,
        **others,
    }


@pytest.fixture
def order():
    return ORDER


@pytest.fixture
def rows_of():
    return make_rows


@pytest.fixture
def at_speed():
    return speed

"""The folders of a user."""

import os
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """Where what takes long to compute is kept.

    That is $BACKWARD_STRATEGIES_CACHE, or this project's folder in the user's cache; RuntimeError if the
    user has no home directory to have one in.
    """
    if chosen := os.environ.get("BACKWARD_STRATEGIES_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "backward-strategies"


def configuration_directory() -> Path:
    """Where what was decided for a user is kept: the calibration.

    That is $BACKWARD_STRATEGIES_CONFIG, or this project's folder in the user's configuration.
    """
    if chosen := os.environ.get("BACKWARD_STRATEGIES_CONFIG"):
        return Path(chosen)
    return platformdirs.user_config_path("backward-strategies", appauthor=False)

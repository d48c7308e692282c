"""Where this package keeps what was decided for a user: the calibrated policy."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def configuration_directory() -> Path:
    """$BACKWARD_STRATEGIES_CONFIG, or this project's folder in the user's configuration."""
    if chosen := os.environ.get("BACKWARD_STRATEGIES_CONFIG"):
        return Path(chosen)
    return platformdirs.user_config_path("backward-strategies", appauthor=False)

import logging

import pytest

import strategies
from strategies.integration import replacement


@pytest.fixture
def told(caplog):
    """Why calls went to PyTorch, while everything is replaced."""
    replacement._told.clear()
    with caplog.at_level(logging.INFO, replacement.log.name), strategies.replace_torch():
        yield lambda: [record.getMessage() for record in caplog.records]

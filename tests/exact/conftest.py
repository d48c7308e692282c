import pytest
from flint import ctx


@pytest.fixture(autouse=True)
def _exactly():
    with ctx.workprec(512):
        yield

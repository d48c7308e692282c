"""The fast path in either language, and whether a call took it."""

import pytest

from strategies.autograd import fast_path, fast_path_node
from strategies.autograd.fast_path import FastPath
from strategies.operations import traceable
from tests.autograd.plain_calls import needs_extension


@pytest.fixture(params=[pytest.param("C++", marks=needs_extension), "Python"])
def language(request, monkeypatch):
    """What the fast path is written in."""
    if request.param == "Python":
        monkeypatch.setattr(fast_path, "_compiled", lambda _: None)
        monkeypatch.setattr(traceable, "usual_calls", lambda _: None)


@pytest.fixture
def taken(monkeypatch, language):
    """Whether each call took the fast path; and "backward" for every backward that left it."""
    taken = []
    call, differentiated = FastPath.__call__, fast_path_node.differentiated
    usual_calls = traceable.usual_calls

    def seen_call(self, *arguments):
        outputs = call(self, *arguments)
        taken.append(outputs is not None)
        return outputs

    def seen_by_cpp(function):
        if (compute := usual_calls(function)) is None:
            return None

        def seen(*arguments):
            if (result := compute(*arguments)) is not None:
                taken.append(True)
            return result

        return seen

    def seen_backward(*arguments):
        taken.append("backward")
        return differentiated(*arguments)

    monkeypatch.setattr(FastPath, "__call__", seen_call)
    monkeypatch.setattr(traceable, "usual_calls", seen_by_cpp)
    monkeypatch.setattr(fast_path_node, "differentiated", seen_backward)
    return taken

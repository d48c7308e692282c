"""Which strategies a call stands for, where that is no question to a policy."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from strategies.autograd import choice


def test_auto_is_pytorchs_own_while_a_cuda_graph_is_captured(monkeypatch):
    with FakeTensorMode():
        A = torch.empty(3, 3, device="cuda")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    names = [each.name for each in choice.choose("auto", "inv", A, square=True)]
    assert names == ["native"]
    (named,) = choice.choose("qr_pinv", "inv", A, square=True)
    assert named.name == "qr_pinv"


def test_no_graph_is_captured_on_a_cpu():
    assert not choice.is_captured(torch.ones(2, 2))

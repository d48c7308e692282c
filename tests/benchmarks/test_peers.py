"""The comparison with other libraries, in this process where it can be."""

import numpy as np
import pytest
import torch

from benchmarks.peers.comparison import GRIDS, Timed, cases
from benchmarks.peers.worker import Peer
from strategies.measuring import Case, backward_of, paired_samples
from strategies.selection import rows

CASES = [
    Case("lu_factor", (9, 9)),
    Case("lu_factor", (9, 4)),
    Case("lu_factor", (4, 4), batch=5),
    Case("pinv", (9, 4), dtype=torch.float32),
    Case("lstsq", (9, 4)),
    Case("solve", (9, 9)),
    Case("inv", (9, 9)),
]


@pytest.fixture(params=["jax", "lineax"], scope="module")
def peer(request):
    pytest.importorskip(request.param)
    with Peer(request.param, threads=1) as process:
        yield process


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_a_peer_does_the_same_work_or_refuses(peer, case):
    try:
        gradients = peer.prepare(case)
    except NotImplementedError:
        assert peer.name == "lineax"
        assert case.operation not in ("lstsq", "solve")
        return
    for computed, expected in zip(gradients, backward_of(case, "native")(), strict=True):
        assert computed.dtype == expected.numpy().dtype
        np.testing.assert_allclose(
            computed, expected, rtol=2e-3 if case.dtype.itemsize == 4 else 1e-8
        )
    assert all(peer.sampler(objective)() > 0 for objective in ("backward", "forward_backward"))


@pytest.mark.parametrize("grid", GRIDS)
def test_cases_are_made(grid):
    assert all(case.device == "cpu" for case in cases(grid))


def test_what_is_written_is_read_as_rows_that_no_verdict_counts(tmp_path):
    report = pytest.importorskip("benchmarks.peers.report")
    pair = {name: paired_samples(lambda: 3.0, lambda: 1.0, budget=0) for name in report.OBJECTIVES}
    seconds = dict.fromkeys(report.OBJECTIVES, 3.0)
    native, ours = Timed("native", seconds, pair), Timed("qr_pinv", seconds, {})
    refused = Timed("torch", {}, {}, "cannot")
    results = [(Case("pinv", (9, 4)), [native, ours, refused])]
    report.write(tmp_path / "peers.json", results, ["torch"])
    read = rows.load(tmp_path).set_index("strategy")
    assert read["is_peer"].all()
    assert read["speedup_over_native"].to_dict() == pytest.approx(
        {"native": 1.0, "qr_pinv": 3.0, "torch": float("nan")}, nan_ok=True
    )
    assert (
        "| pinv 9x4 | qr_pinv | 3 s | 3 s = 3.00× [3.00, 3.00] | n/a |"
        in (tmp_path / "peers.md").read_text()
    )

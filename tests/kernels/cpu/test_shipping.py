"""What a wheel carries is what a call looks for."""

import platform

import pytest
import torch
from llvmlite import binding

from strategies.kernels.cpu import compilation, shipping

LOOP = "inspection.inverse_order"


@pytest.fixture(autouse=True)
def _nothing_is_compiled_yet(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, "SHIPPED", tmp_path / "compiled")
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path / "cache"))
    caches = compilation.entry, compilation._folder, compilation._shipped
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64")
    or not binding.get_host_cpu_features().get("avx2"),
    reason="wheels carry code for x86-64-v3",
)
def test_a_call_finds_what_was_compiled_for_the_baseline(monkeypatch):
    code = f"""
import torch
from strategies.kernels.cpu import compilation
compilation.entry({LOOP!r}, torch.float64)
"""
    monkeypatch.setattr(shipping, "_COMPILE_ALL", code)
    shipping.ship()
    assert compilation.is_kept(LOOP, torch.float64)
    assert not compilation.is_kept(LOOP, torch.float32)


def test_other_machines_are_told_how_to_build_a_wheel(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(NotImplementedError, match="not for aarch64: build it without them"):
        shipping.ship()

import multiprocessing
import os
import warnings

import numpy as np
import pytest
import torch

from strategies.accuracy import Cache, Certified, gradient
from strategies.accuracy.cache import fingerprint
from strategies.accuracy.certified import ScaledPair

KEY = "a" * 64


def _result(value=1.0, size=1):
    matrix = np.full((size, size), value)
    pair = ScaledPair(matrix, 2.0**-60 * matrix, np.array(3, np.int32))
    return Certified((pair, pair), 2.0**-104, 256)


def _assert_same(first, second):
    assert (first.radius, first.bits) == (second.radius, second.bits)
    for a, b in zip(first.parts, second.parts, strict=True):
        for one, other in ((a.high, b.high), (a.low, b.low), (a.exponent, b.exponent)):
            np.testing.assert_array_equal(one, other, strict=True)


def test_returns_what_was_stored_and_nothing_before(tmp_path):
    cache = Cache(tmp_path / "made when it is written to")
    assert cache.load(KEY) is None
    cache.store(KEY, _result())
    loaded = cache.load(KEY)
    assert loaded is not None
    _assert_same(loaded, _result())


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut short"])
def test_damaged_file_is_a_miss_and_removed(tmp_path, content):
    path = tmp_path / f"{KEY}.npz"
    path.write_bytes(content)
    assert Cache(tmp_path).load(KEY) is None
    assert not path.exists()


def test_least_recently_used_goes_first(tmp_path):
    cache = Cache(tmp_path)
    keys = [letter * 64 for letter in "abcd"]
    for age, key in enumerate(keys[:3]):
        cache.store(key, _result(size=10))
        os.utime(tmp_path / f"{key}.npz", (1000 + age, 1000 + age))
    cache.load(keys[0])
    size = (tmp_path / f"{keys[0]}.npz").stat().st_size
    Cache(tmp_path, limit=3 * size).store(keys[3], _result(size=10))
    assert [cache.load(key) is not None for key in keys] == [True, False, True, True]


def test_abandoned_temporary_files_go(tmp_path):
    for name in ("old.tmp", "fresh.tmp"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "old.tmp", (0, 0))
    Cache(tmp_path).store(KEY, _result())
    assert [path.name for path in tmp_path.glob("*.tmp")] == ["fresh.tmp"]


def test_a_folder_that_cannot_be_made_costs_only_a_warning(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="not cached"):
        Cache(tmp_path / "file" / "below").store(KEY, _result())


def test_every_bit_counts_in_the_fingerprint():
    zero = np.zeros((2, 3))
    arrays = zero, -zero, zero.reshape(3, 2), zero.astype(np.float32), zero.astype(np.int64)
    found = [fingerprint("pinv", 2, [array]) for array in arrays]
    found += [fingerprint("pinv", 1, [zero]), fingerprint("lstsq", 2, [zero])]
    assert len(set(found)) == len(found)


def test_gradient_uses_it():
    matrix, cotangent = torch.eye(32), torch.ones(32, 32)
    first = gradient("inv", (matrix,), (cotangent,))
    (path,) = Cache().directory.glob("*.npz")
    Cache().store(path.stem, _result(7.0))
    assert gradient("inv", (matrix,), (cotangent,)).gradients[0].item() == 56.0
    path.unlink()
    _assert_same(gradient("inv", (matrix,), (cotangent,)), first)


def _write_and_read(directory, writer):
    warnings.simplefilter("error")
    cache = Cache(directory, limit=20_000)
    for turn in range(60):
        cache.store(f"{turn % 5:064d}", _result(float(turn % 5), size=20))
        other = (turn + writer) % 5
        found = cache.load(f"{other:064d}")
        assert found is None or (found.parts[0].high == other).all()


def test_concurrent_writers_never_show_half_a_file(tmp_path):
    with multiprocessing.get_context("fork").Pool(2) as writers:
        writers.starmap(_write_and_read, [(tmp_path, 0), (tmp_path, 1)])
    assert not list(tmp_path.glob("*.tmp"))

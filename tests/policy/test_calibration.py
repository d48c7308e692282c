import functools
import json
import subprocess
import sys
import threading

import msgspec
import pytest
from by_hand import STABLE, part_of, policy_cell

from strategies.errors import UnusableFileError
from strategies.files.documents import json_text
from strategies.policy import validators
from strategies.policy.calibration import Calibration

HERE = validators.here()
ELSEWHERE = msgspec.structs.replace(HERE, cpu="another", torch="1.0")
JUDGED = {"inv": {"fused": STABLE}}

cell = functools.partial(policy_cell, use="fused")


def part(*cells, operation="inv", dtype="float64", **others):
    return part_of({operation: {dtype: cells}}, **others)


def test_a_file_says_what_was_written(tmp_path):
    path = tmp_path / "new" / "policy.json"
    Calibration(parts=(part(cell(8)), part(threads=2, stability=JUDGED))).save(path, parents=True)
    one, two = Calibration.read(path).parts
    assert one.cells == {"inv": {"float64": (cell(8),)}}
    assert (two.threads, two.stability) == (2, JUDGED)


def test_a_part_replaces_what_it_has_measured_anew_and_keeps_the_rest():
    mine = part(cell(8), cell(16), stability=JUDGED)
    old = Calibration(parts=(mine, part(cell(8), validators=ELSEWHERE)))
    again = part(cell(8, use="qr_pinv"))
    mine, others = old.having([again, part(cell(4), operation="det")]).parts
    assert mine.cells["inv"]["float64"] == (cell(8, use="qr_pinv"), cell(16))
    assert mine.cells["det"]["float64"] == (cell(4),)
    assert mine.stability == JUDGED
    assert others.validators == ELSEWHERE


def test_only_parts_of_this_machine_hold():
    known = Calibration(parts=(part(validators=ELSEWHERE), part(threads=4)))
    assert [p.threads for p in known.of(HERE, "cpu")] == [4]
    assert known.of(HERE, "cuda") == []
    assert known.why_not(HERE, "cpu") == []
    (_, of_torch) = Calibration(parts=(part(validators=ELSEWHERE),)).why_not(HERE, "cpu")
    assert of_torch == f"torch {HERE.torch}, not 1.0"


def test_a_file_with_an_unknown_dtype_is_named(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json_text(Calibration(parts=(part(),))).replace("float64", "float8"))
    with pytest.raises(UnusableFileError, match=r"policy\.json: .*float8"):
        Calibration.read(path)


READER = """
import sys, json
from strategies.policy import calibration
from strategies.policy.calibration import Calibration
from strategies.policy import active
seen = set()
print("ready", flush=True)
while (parts := Calibration.read(calibration.location()).parts)[0].threads < 20:
    (of,) = {len(c) for p in parts for by in p.cells.values() for c in by.values()}
    assert of == parts[0].threads, (of, parts[0].threads)
"""


def test_readers_of_other_processes_see_the_old_file_or_the_new_one(configuration):
    path = configuration / "policy.json"

    def write(threads):
        cells = [cell(size) for size in range(1, threads + 1)]
        Calibration(parts=(part(*cells, threads=threads),)).save(path, parents=True)

    write(1)
    command = [sys.executable, "-c", READER]
    readers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for reader in readers:
        assert reader.stdout.readline() == b"ready\n"
    writers = [threading.Thread(target=write, args=(threads,)) for threads in range(2, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    write(20)
    for reader in readers:
        _, errors = reader.communicate(timeout=60)
        assert reader.returncode == 0, errors
    assert json.loads(path.read_text())["parts"][0]["threads"] == 20

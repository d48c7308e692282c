"""The result store: what it keeps, and what it refuses."""

import json

import msgspec
import pytest

from strategies.measuring import Case, Cell, Machine, Measurement, Status, Timing, store
from strategies.measuring.store import UnusableFileError, Writer

MACHINE = Machine("somewhere", cpu="abacus", threads=2, torch="2.13.0", started_at="2026-01-02")
TIMING = Timing(2.0, 1.0, 3.0, (2.0, 2.5))
CELL = Cell(
    Case.parse("lstsq 10x8x4 k=2 float32"),
    (
        Measurement("native", backward=TIMING, forward_backward=TIMING, error=1e-7, peak_bytes=123),
        Measurement("other", Status.NOT_APPLICABLE, note="does not want to"),
    ),
)
OTHER = Cell(Case("inv", (3, 3)), (Measurement("native", error=0.0, flops=2**53 + 1, calls=3),))


def write(path, *cells, kind="grid", machine=MACHINE, **arguments):
    writer = Writer(path, kind, arguments, machine)
    for cell in cells:
        writer.append(cell)
    return writer


def test_what_is_written_is_read(tmp_path):
    write(tmp_path / "new" / "a.json", CELL, OTHER, grid="tiny")
    (run,) = store.load(tmp_path)
    assert run == store.Run("grid", MACHINE, {"grid": "tiny"}, (CELL, OTHER), "new/a.json")
    assert store.load(tmp_path / "new" / "a.json")[0].cells == run.cells


def test_times_and_errors_have_four_digits(tmp_path):
    times = Timing(1 / 3, 1 / 3, 2 / 3, (1 / 3, 1 / 3))
    write(tmp_path / "a.json", Cell(CELL.case, (Measurement("native", backward=times),)))
    (cell,) = store.load(tmp_path)[0].cells
    assert cell.get("native").backward == Timing(0.3333, 0.3333, 0.6667, (0.3333, 0.3333))


def test_a_cell_is_a_line_and_small(tmp_path):
    write(tmp_path / "a.json", CELL, OTHER)
    _, *cells, _ = (tmp_path / "a.json").read_text().splitlines()
    assert [json.loads(line.removesuffix(","))["case"] for line in cells] == [
        str(CELL.case),
        str(OTHER.case),
    ]
    assert len(cells[0]) < 400


def test_runs_are_in_the_order_of_time_and_of_one_kind_if_wanted(tmp_path):
    for name, day, kind in (("a", 2, "grid"), ("b", 1, "grid"), ("c", 3, "peers")):
        machine = msgspec.structs.replace(MACHINE, started_at=f"2026-01-0{day}")
        write(tmp_path / f"{name}.json", CELL, machine=machine, kind=kind)
    assert [run.path for run in store.load(tmp_path)] == ["b.json", "a.json", "c.json"]
    assert [run.path for run in store.load(tmp_path, "peers")] == ["c.json"]
    with pytest.raises(UnusableFileError, match="holds no results of kind draw"):
        store.load(tmp_path, "draw")


def test_the_newest_cell_of_a_machine_and_case_counts():
    older = Cell(CELL.case, ())
    elsewhere = msgspec.structs.replace(MACHINE, name="elsewhere")
    runs = [
        store.Run("grid", MACHINE, {}, (older, OTHER)),
        store.Run("grid", elsewhere, {}, (older,)),
        store.Run("grid", MACHINE, {}, (CELL,)),
    ]
    expected = [(MACHINE, OTHER), (elsewhere, older), (MACHINE, CELL)]
    assert store.newest_cells(runs) == expected


def test_a_run_is_resumed(tmp_path):
    path = tmp_path / "a.json"
    write(path, CELL, grid="tiny")
    before = path.read_bytes()
    later = msgspec.structs.replace(MACHINE, started_at="2027-01-01", load=1.5, noise=1.2)
    writer = Writer(path, "grid", {"grid": "tiny"}, later)
    assert writer.cells == [CELL]
    assert path.read_bytes() == before
    writer.append(OTHER)
    (run,) = store.load(path)
    assert run.cells == (CELL, OTHER)
    assert run.machine.started_at == MACHINE.started_at


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"grid": "full"}, "grid tiny, not full"),
        ({"budget": 2}, "budget None, not 2"),
        ({"kind": "peers"}, "kind grid, not peers"),
        ({"machine": Machine("somewhere", cpu="lathe", threads=2, torch="2.13.0")}, "cpu abacus"),
    ],
)
def test_a_file_of_another_run_is_left_alone(tmp_path, changed, said):
    path = tmp_path / "a.json"
    write(path, CELL, grid="tiny")
    before = path.read_bytes()
    with pytest.raises(UnusableFileError, match=f"was measured with {said}"):
        write(path, CELL, **{"grid": "tiny", **changed})
    assert path.read_bytes() == before


def test_what_cannot_be_written_is_known_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableFileError, match=r"file/a\.json: cannot be written"):
        Writer(tmp_path / "file" / "a.json", "grid", {}, MACHINE)


def test_no_results_are_told_apart_from_no_folder(tmp_path):
    with pytest.raises(UnusableFileError, match="is not a folder"):
        store.load(tmp_path / "nowhere")
    with pytest.raises(UnusableFileError, match=r"holds no results; .*measure"):
        store.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("backward-strategies results", "something else"),
        ('"version":1', '"version":2'),
        ('"version":1', '"version":"1"'),
        ('"kind":"grid"', '"kind":"guess"'),
        ('"machine":{"name":"somewhere",', '"machine":{'),
        ('"case"', '"cas"'),
        ("lstsq 10x8x4", "qr 10x8x4"),
        ("lstsq 10x8x4", "lstsq 10x-8x4"),
        ('"case":"lstsq', '"case":["lstsq'),
        ('"n/a"', '"maybe"'),
        ("[2.0,1.0,3.0", "[-2.0,1.0,3.0"),
        ("[2.0,1.0,3.0", "[0,0,3.0"),
        ("[2.0,1.0,3.0", "[NaN,1.0,3.0"),
        ("[2.0,1.0,3.0", "[1e308,1.0,1e308"),
        ("[2.0,1.0,3.0", "[4.0,1.0,3.0"),
        ("[2.0,1.0,3.0", '["2","1","3"'),
        ('"error":1e-7', '"error":-1e-7'),
        ('"error":1e-7', '"error":1e308'),
        ('"peak_bytes":123', '"peak_bytes":-1'),
        ('"peak_bytes":123', '"peak_bytes":[1]'),
        ('"arguments":{}', '"arguments":' + "[" * 100_000),
        ("}", ""),
    ],
)
def test_what_is_damaged_is_named_in_a_line_and_kept(tmp_path, old, new):
    path = tmp_path / "a.json"
    write(path, CELL)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    before = path.read_bytes()
    for read in (store.load, lambda path: write(path, CELL)):
        with pytest.raises(UnusableFileError) as refused:
            read(path)
        assert str(refused.value).startswith(f"{path}: ")
        assert len(str(refused.value).splitlines()) == 1
    assert path.read_bytes() == before


def test_one_damaged_file_stops_everything(tmp_path):
    write(tmp_path / "a.json", CELL)
    (tmp_path / "b.json").write_bytes(b"\xff")
    with pytest.raises(UnusableFileError, match=r"b\.json"):
        store.load(tmp_path)

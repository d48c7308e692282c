import gzip

import pytest

from strategies.errors import UnusableFileError
from strategies.files.documents import Document, json_text, says
from strategies.files.writing import write_text


class Note(Document, kw_only=True):
    format: str = "note"
    version: int = 1
    text: str


def of(text):
    return f'{{"format": "note", "version": 1, "text": "{text}"}}'.encode()


@pytest.mark.parametrize(
    ("name", "kept"),
    [("note.json", of("κ" * 100)), ("note.json.gz", gzip.compress(of("κ" * 100), mtime=0))],
    ids=["plain", "packed"],
)
def test_what_was_written_is_read_and_packed_where_it_is_called_gz(tmp_path, name, kept):
    path = tmp_path / name
    write_text(path, of("κ" * 100).decode())
    assert path.read_bytes() == kept
    assert Note.read(path) == Note(text="κ" * 100)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not valid JSON, or cut off"),
        (of("x")[:-3], "is not valid JSON, or cut off"),
        (b"\xff\xfe", "is not valid JSON, or cut off"),
        (b"[" * 100_000, "is not a note file"),
        (b'{"format": "note", "version": 1, "text":' + b"[" * 100_000, "is not valid JSON"),
        (b"[1]", "is not a note file"),
        (of("x").replace(b"note", b"novel"), "is not a note file"),
        (of("x").replace(b"1", b"2"), "has version 2; this package reads 1: upgrade the package"),
        (of("x").replace(b"1", b"0"), "has version 0; this package reads 1: make the file anew"),
        (of("x").replace(b'"x"', b"3"), "is damaged: Expected `str`, got `int` - at `$.text`"),
        (gzip.compress(of("x"), mtime=0)[:-9], "cannot be unpacked"),
        (b"\x1f\x8b\x08", "cannot be unpacked"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_that_names_it(tmp_path, data, said):
    path = tmp_path / "note.json"
    path.write_bytes(data)
    with pytest.raises(UnusableFileError) as caught:
        Note.read(path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path}: ")
    assert said in line


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(UnusableFileError, match=r"note\.json: cannot be read"):
        Note.read(tmp_path / "note.json")


def test_what_fits_a_line_is_on_one():
    lines = json_text({"short": [1, 2], "long": [{"name": "x" * 90}] * 4}).splitlines()
    assert lines[1] == ' "short": [1, 2],'
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"format": "a", "version": 9}', True),
        ('{"format": "b", "version": 1}', False),
        ("{", False),
    ],
)
def test_a_format_is_recognized_whatever_else_is_wrong(tmp_path, text, expected):
    path = tmp_path / "file.json"
    path.write_text(text)
    assert says(path, "a") is expected
    assert not says(tmp_path / "nowhere", "a")

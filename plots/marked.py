"""Pages of which parts are generated: each stands between two markers, all else is written by hand."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from strategies.errors import UnusableFileError
from strategies.files.documents import unpacked
from strategies.files.writing import write_text
from strategies.selection.text import NOTHING

Page = Annotated[Path, typer.Argument(metavar="PAGE", help="A Markdown file.")]
Figures = Annotated[Path, typer.Option("--figures", metavar="DIR")]


def table(head: Sequence[str], lines: Iterable[Sequence[str]], left: int) -> str:
    """A Markdown table whose first columns are of words, and the others of numbers."""
    rules = ["---"] * left + ["--:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rules, *lines))


def table_without_empty(head: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """A table without the columns in which no line says anything but nothing or none."""
    kept = [i for i in range(len(head)) if {line[i] for line in lines} - {NOTHING, "0"}]
    chosen = [[line[i] for i in kept] for line in (head, *lines)]
    return table(chosen[0], chosen[1:], sum(i < left for i in kept))


def folded(title: str, content: str) -> str:
    """What opens when its title is clicked."""
    return f'<details markdown="1"><summary>{title}</summary>\n\n{content}\n\n</details>'


def fill(path: Path, parts: Mapping[str, str]) -> None:
    """Puts every part of a page between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    UnusableFileError if there is no page, or it lacks some markers; it is left as it is.
    """
    text = _text(path)
    for name, content in parts.items():
        start, end = _place(path, text, name)
        text = f"{text[:start]}{content}\n{text[end:]}"
    write_text(path, text)


def has(path: Path, name: str) -> bool:
    """Whether a page has the markers of a part."""
    return f"<!-- {name}: begin -->" in _text(path)


def part(path: Path, name: str) -> str:
    """What stands between the markers of a part; UnusableFileError if the page lacks them."""
    text = _text(path)
    return text[slice(*_place(path, text, name))].rstrip("\n")


def _text(path: Path) -> str:
    return unpacked(path).decode()


def _place(path: Path, text: str, name: str) -> tuple[int, int]:
    marked = re.compile(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", re.DOTALL)
    if not (found := marked.search(text)):
        raise UnusableFileError(path, f"lacks <!-- {name}: begin --> and <!-- {name}: end -->")
    return found.span(1)

"""A library's answers, given in a process and, where needed, an environment of its own."""

import json
import subprocess
import sys
from pathlib import Path

from strategies.oracle import grader

CORE = Path(__file__).with_name("core.jsonl.gz")
"""The set that comes with the package."""

_MOST_DEATHS = 50

_FOLDER = Path(__file__).parent / "adapters"


def adapters() -> tuple[str, ...]:
    """The names of the libraries that there is an adapter for."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("[a-z]*.py")))


def adapter(library: str) -> Path:
    """The file of an adapter, by a library's name or by its path; ValueError if there is none."""
    path = Path(library) if library.endswith(".py") else _FOLDER / f"{library}.py"
    if not path.is_file():
        raise ValueError(f"no adapter {library}; there is {', '.join(adapters())}, or a .py file")
    return path


def ask(library: str, of: Path, answers: Path, *, python: str = sys.executable) -> None:
    """Writes a file of answers, which must not exist, to a set by a library or the path of an adapter.

    A case that ends the process is refused, and the next one begins in a new process, of an interpreter
    that has the library and NumPy. ValueError, with its message, if it cannot import the library.
    """
    _, cases = grader.read(of)
    command = [python, grader.__file__, "ask", str(of), str(adapter(library)), str(answers)]
    for _ in range(_MOST_DEATHS):
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        except OSError as error:
            raise ValueError(f"{python} cannot be run: {error.strerror}") from error
        if done.returncode == 0:
            return
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        lines = answers.read_text(encoding="utf-8").count("\n") if answers.exists() else 0
        if lines == 0:
            raise ValueError(f"{python} cannot ask {library}: {last}")
        case = cases[lines - 1]
        died = {"refused": f"the process ended with exit code {done.returncode}"}
        answer = {"id": case["id"], **dict.fromkeys(case["results"], died)}
        with answers.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")
    raise ValueError(f"{library} ended its process {_MOST_DEATHS} times")

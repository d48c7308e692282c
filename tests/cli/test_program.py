"""A program run by `execute` says and returns what it does when `python` runs it."""

import py_compile
import signal
import sys
import zipfile
from pathlib import Path

import pytest

import strategies

ALONE = f"""
import sys, types
sys.modules["strategies"] = package = types.ModuleType("strategies")  # not torch, which takes long
package.__path__ = [{str(Path(strategies.__file__).parent)!r}]
from strategies.cli.program import execute
execute(sys.argv[1:])
"""


@pytest.fixture
def same(python):
    """Runs a command line in both ways, and requires the same output and exit code."""

    def same(*command, stdin="", flags=()):
        of_python, ours = (
            python(*flags, *before, *command, stdin=stdin) for before in ((), ("-c", ALONE))
        )
        for what in ("stdout", "stderr", "returncode"):
            assert getattr(ours, what) == getattr(of_python, what)
        return of_python

    return same


def write(folder, text, name="program.py"):
    """Writes a file, and returns the name that a command line in its folder has for it."""
    (folder / name).write_text(text, encoding="utf-8")
    return name


FAILING = {
    "plain": "def f():\n    1 / 0\nf()",
    "chained": "try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('then') from e",
    "in a handler": "try:\n    1 / 0\nexcept Exception:\n    int('x')",
    "with notes": "e = ValueError('x')\ne.add_note('a note')\nraise e",
    "a group": "raise ExceptionGroup('both', [ValueError('a'), KeyError('b')])",
    "in a library": "import json\njson.loads('{')",
    "in an import": "import missing",
    "the end of input": "input()",
    "a broken pipe": "raise BrokenPipeError(32, 'Broken pipe')",
    "no syntax": "def f(:\n    pass",
    "no indentation": "if True:\npass",
    "in a thread": "import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()",
    "at exit": "import atexit\natexit.register(print, 'bye')\nraise ValueError",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING.keys())
def test_an_exception_is_told_as_by_python(same, tmp_path, text):
    assert same(write(tmp_path, text)).stderr


@pytest.mark.parametrize("code", ["", "None", "0", "3", "True", "'a message'", "(1, 2)", "-1"])
def test_an_exit_code_is_passed_on(same, tmp_path, code):
    same(write(tmp_path, f"import sys\nsys.exit({code})"))


HOOKS = {
    "of the program": "lambda kind, value, tb: print(kind, value, tb.tb_frame.f_code.co_name)",
    "that fails": "lambda *_: [][0]",
    "that exits": "lambda *_: exit(7)",
    "that is none": "None",
}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS.keys())
def test_an_excepthook_is_called(same, tmp_path, hook):
    same(write(tmp_path, f"import sys\nsys.excepthook = {hook}\n1 / 0"))


INTERRUPTED = """
import atexit, os, signal
atexit.register(print, "bye")
log = open("log", "w")
log.write("not flushed")
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have ignored
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there, Ctrl-C is no signal")
@pytest.mark.parametrize("form", [["program.py"], ["-m", "program"], ["-c", INTERRUPTED]])
def test_ctrl_c_ends_it_by_the_signal(same, tmp_path, form):
    write(tmp_path, INTERRUPTED)
    assert same(*form).returncode == -signal.SIGINT
    assert (tmp_path / "log").read_text() == "not flushed"


def test_ctrl_c_that_the_program_handles_is_its_own(same, tmp_path):
    text = f"try:\n    {INTERRUPTED.strip().splitlines()[0]}\n    raise KeyboardInterrupt\n"
    assert same(write(tmp_path, text + "except KeyboardInterrupt:\n    exit(4)")).returncode == 4


STATE = """
import sys, __main__
print(sys.argv, sys.path, __name__, __main__.__dict__ is globals())
for name, value in sorted(globals().items()):
    print(name, value if isinstance(value, (str, dict, type(None))) else type(value))
"""


@pytest.fixture
def files(tmp_path):
    """What a command line can name."""
    (tmp_path / "folder").mkdir()
    write(tmp_path, STATE)
    write(tmp_path, STATE, "folder/__main__.py")
    (tmp_path / "link.py").symlink_to(tmp_path / "folder" / "__main__.py")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", STATE)
    py_compile.compile(str(tmp_path / "program.py"), str(tmp_path / "compiled.pyc"))


FORMS = {
    "a file": ["program.py"],
    "a file here": ["./program.py"],
    "a file by way of a folder": ["folder/../program.py"],
    "a link": ["link.py"],
    "a folder": ["folder"],
    "an archive": ["archive.zip"],
    "compiled": ["compiled.pyc"],
    "a module": ["-m", "program"],
    "a package": ["-m", "folder"],
    "no module": ["-m", "none"],
    "code": ["-c", STATE],
    "stdin": ["-"],
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_finds_what_python_sets(same, form):
    same(*form, "--lr", "-m", stdin=STATE)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("form", ["a file", "a folder", "a module", "code"])
def test_no_folder_is_put_on_the_path_that_python_does_not_put_there(same, form):
    same(*FORMS[form], flags=["-P"])


@pytest.mark.parametrize("form", [["-c", FAILING["plain"]], ["-"], ["-m", "program"]])
def test_every_form_shows_its_frames(same, tmp_path, form):
    write(tmp_path, FAILING["plain"])
    same(*form, stdin=FAILING["plain"])


@pytest.mark.parametrize("form", [["-c", "f("], ["-"], ["-m", "program"]])
def test_every_form_shows_where_syntax_is_wrong(same, tmp_path, form):
    write(tmp_path, "f(")
    same(*form, stdin="f(")


PROCESSES = """
import multiprocessing, pickle

class Mine:
    pass

def double(number):
    return 2 * number

if __name__ == "__main__":
    print(type(pickle.loads(pickle.dumps(Mine()))) is Mine)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
"""


@pytest.mark.parametrize("form", [["program.py"], ["-m", "program"]])
def test_its_classes_are_pickled_and_its_functions_found_by_other_processes(same, tmp_path, form):
    write(tmp_path, PROCESSES)
    assert same(*form).stdout == "True\n[2, 4]\n"


def test_it_has_the_future_of_no_other_module(same, tmp_path):
    same(write(tmp_path, "def f(x: int): pass\nprint(f.__annotations__)"))

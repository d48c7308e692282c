"""A Python program in this process, as `python` itself would run it.

That sets `sys.argv`, `sys.path[0]` and the names in `__main__` for each form of a command line
(https://docs.python.org/3/using/cmdline.html#interface-options). Of an exception that ends the program, the
interpreter would show the frames of this package above those of the program.
"""

import builtins
import io
import linecache
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from strategies.integration.call_site import is_own

_RUNPY: Any = runpy  # what `python -m` calls is private


def execute(command: Sequence[str]) -> None:
    """Runs what follows `python` in a command line to its end, and tells an exception that ends it.

    Afterwards the process has to end: `sys` and `__main__` stay as the program leaves them. The exception
    is raised again, and the interpreter exits by it as it should, without another word.
    """
    error = _caught(lambda: _run(command))
    if error is not None:
        _tell(error)
        raise error


def _run(command: Sequence[str]) -> None:
    sys.modules["__main__"] = main = ModuleType("__main__")
    names = vars(main)
    names.update(__loader__=BuiltinImporter, __annotations__={}, __builtins__=builtins)
    match command:
        case ["-m", module, *arguments]:
            sys.argv = ["-m", *arguments]
            _put_on_path(str(Path.cwd()))
            _RUNPY._run_module_as_main(module)
        case ["-c", code, *arguments]:
            sys.argv = ["-c", *arguments]
            _put_on_path("")
            if sys.version_info >= (3, 13):  # its tracebacks show lines of `-c CODE`
                lines = [f"{line}\n" for line in code.splitlines()]
                linecache.cache["<string>"] = (len(code), None, lines, "<string>")
            exec(_compiled(code, "<string>"), names)  # noqa: S102 - as asked
        case ["-", *_]:
            sys.argv = [*command]
            _put_on_path("")
            names.update(__file__="<stdin>", __cached__=None)
            exec(_compiled(sys.stdin.buffer.read(), "<stdin>"), names)  # noqa: S102
        case [file, *_]:
            sys.argv = [*command]
            _run_file(file if Path(file).is_absolute() else f"{Path.cwd()}{os.sep}{file}", names)


def _run_file(file: str, names: dict[str, Any]) -> None:
    if pkgutil.get_importer(file) is not None:  # a folder or an archive, with a __main__.py
        _put_on_path(file, always=True)
        _RUNPY._run_module_as_main("__main__", alter_argv=False)
        return
    _put_on_path(str(Path(file).resolve().parent))
    loader: type[SourceFileLoader | SourcelessFileLoader] = SourcelessFileLoader
    with io.open_code(file) as stream:
        code = pkgutil.read_code(stream)
        if code is None:
            loader = SourceFileLoader
            stream.seek(0)
            code = _compiled(stream.read(), file)
    names.update(__file__=file, __cached__=None, __loader__=loader("__main__", file))
    exec(code, names)  # noqa: S102


def _compiled(source: str | bytes, file: str) -> CodeType:
    """The code of a program, which has none of the __future__ of this module."""
    return compile(source, file, "exec", dont_inherit=True)


def _put_on_path(folder: str, *, always: bool = False) -> None:
    """Puts a folder where the interpreter has put that of this package's command, if it has."""
    if not sys.flags.safe_path:
        sys.path[0] = folder
    elif always:
        sys.path.insert(0, folder)


def _caught(call: Callable[[], object]) -> BaseException | None:
    """What a call raises, without the frames of this package; but SystemExit has none to show."""
    try:
        call()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - Ctrl-C is told, too
        traceback = error.__traceback__
        while traceback is not None and is_own(traceback.tb_frame):
            traceback = traceback.tb_next
        return error.with_traceback(traceback)
    return None


def _tell(error: BaseException) -> None:
    """Shows an exception by `sys.excepthook`, which then is silent when the interpreter exits by it.

    Where the hook fails, both exceptions are shown.
    """
    hook = sys.excepthook
    failure = _caught(lambda: hook(type(error), error, error.__traceback__))
    if failure is not None:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)

    def others(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        if value is not error:
            hook(kind, value, traceback)

    sys.excepthook = others

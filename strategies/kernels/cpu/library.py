"""The library of compiled kernels, which is built when the package is installed: see `csrc/include/api.h`.

There is one for processors with AVX2, and one for all others. It calls the BLAS and LAPACK of PyTorch,
whose addresses it is given. Without a compiler the package is installed without it, and operations of
PyTorch do what kernels would do.
"""

import ctypes
import functools
import itertools
import logging
import sys
from pathlib import Path
from typing import Any

import torch

from strategies.kernels.cpu import openmp

DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
"""Of the matrices that kernels are compiled for, in the order of `bs_dtype`."""

INTERFACE_VERSION = 3

FOLDER = "_native"
"""Of the library, in the package."""

Kernel = Any  # an instance of ENTRY

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""The type of a kernel in C. It releases the interpreter's lock while it runs."""

# In the order of `bs_routine`; the last two are named otherwise for real matrices.
_ROUTINES = "gemm", "trsm", "getrf", "getrs", "potrf", "potri", "geqrf", "gesdd", "ungqr", "unmqr"
_SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}

_log = logging.getLogger("strategies")


@functools.cache
def kernel(name: str, dtype: torch.dtype, rows: int = 0) -> Kernel:
    """A kernel for matrices of a dtype: one compiled for that number of rows, if there is such a one.

    LookupError if there is none of that name, or no library.
    """
    if (library := _library()) is None:
        raise LookupError(missing())
    found = library.bs_lookup(name.encode(), DTYPES.index(dtype), rows)
    if not found:
        raise LookupError(f"the kernel library has no {name!r} for {dtype}")
    return ENTRY(found)


def is_available() -> bool:
    """Whether there is a library that this process can use. If there is none, says so once."""
    return _library() is not None


def names() -> list[str]:
    """All kernels that there are, sorted."""
    if (library := _library()) is None:
        return []
    found = itertools.takewhile(bool, map(library.bs_name, itertools.count()))
    return sorted({name.decode() for name in found})


def missing() -> str:
    """Why there is no library, and what to do; empty if there is one."""
    return _found()[1]


def path() -> Path | None:
    """The file of the library, if there is one for this processor."""
    suffix = _SUFFIXES.get(sys.platform, ".so")
    capability = torch.backends.cpu.get_cpu_capability()
    levels = ("generic",) if capability in ("DEFAULT", "NO AVX") else ("avx2", "generic")
    found = (native_file(f"kernels_{level}{suffix}") for level in levels)
    return next(filter(None, found), None)


def native_file(name: str) -> Path | None:
    """A file that was installed beside the library, if it was."""
    # Of an editable installation the package has two folders: sources, and what was built.
    folders = sys.modules[__name__.partition(".")[0]].__path__
    return next((file for each in folders if (file := Path(each) / FOLDER / name).is_file()), None)


def _library() -> ctypes.CDLL | None:
    return _found()[0]


@functools.cache
def _found() -> tuple[ctypes.CDLL | None, str]:
    library, reason = _load()
    if library is None:
        _log.warning(
            "strategies: there are no compiled kernels, %s. Operations of PyTorch are used instead; "
            "reinstall the package where there is a C++ compiler to have the faster ones",
            reason,
        )
    return library, reason


def _load() -> tuple[ctypes.CDLL | None, str]:
    if (file := path()) is None:
        return None, "as none was built for this processor when the package was installed"
    if sys.byteorder != "little":
        return None, "as they are for little-endian machines"
    if (found := _addresses()) is None:
        return None, "as this build of PyTorch exports no LAPACK"
    addresses, set_threads = found
    try:
        library = ctypes.CDLL(str(file))
        version = library.bs_abi_version()
    except (OSError, AttributeError) as error:
        return None, f"as {file} cannot be loaded: {error}"
    if version != INTERFACE_VERSION:
        return None, f"as {file} is of version {version}, not {INTERFACE_VERSION}"
    library.bs_lookup.argtypes = ctypes.c_char_p, ctypes.c_int, ctypes.c_int64
    library.bs_lookup.restype = ctypes.c_void_p
    library.bs_name.restype = ctypes.c_char_p
    library.bs_set_routines(addresses)
    library.bs_set_thread_control(set_threads)
    library.bs_set_team.argtypes = (ctypes.c_void_p,)
    library.bs_set_team.restype = None
    openmp.provide(library.bs_set_team)
    return library, ""


def _addresses() -> tuple[Any, Any] | None:
    """Of the routines that PyTorch itself calls, and of what sets their threads, if there is that.

    None if this build of PyTorch does not export them.
    """
    folder = Path(torch.__file__).parent / "lib"
    for file in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            torch_library = ctypes.CDLL(str(folder / file))
            found = [
                ctypes.cast(
                    torch_library[f"{letter}{routine.replace('un', unitary)}_"], ctypes.c_void_p
                ).value
                for routine in _ROUTINES
                for letter, unitary in zip("sdcz", ("or", "or", "un", "un"), strict=True)
            ]
        except (OSError, AttributeError):
            continue
        control = getattr(torch_library, "MKL_Set_Num_Threads_Local", None)
        set_threads = None if control is None else ctypes.cast(control, ctypes.c_void_p)
        return (ctypes.c_void_p * len(found))(*found), set_threads
    return None

"""Products and triangular solves inside compiled loops, by the BLAS that torch itself calls.

From Python every product of small blocks costs several times what it computes. These are the same
routines, in the same threads, called from machine code. Arrays hold their columns one after the
other, as LAPACK's do; one that is written to overlaps no other operand.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import torch
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["IS_AVAILABLE", "solve_unit_lower_from_right", "solve_upper", "subtract_product"]

_LETTERS = {
    types.float32: "s",
    types.float64: "d",
    types.complex64: "c",
    types.complex128: "z",
}
_ROUTINES = ("gemm", "trsm")
_PREFIX = "backward_strategies_"
_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib")


def _share() -> bool:
    """Give the compiler the routines of torch's library, if it exports them."""
    if sys.byteorder != "little":
        return False  # an integer is passed as 64 bits, of which a 32-bit BLAS reads the first 32
    names = [letter + routine for letter in _LETTERS.values() for routine in _ROUTINES]
    for file in _LIBRARIES:
        try:
            library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / file))
            routines = [getattr(library, f"{name}_") for name in names]
        except (OSError, AttributeError):
            continue
        for name, routine in zip(names, routines, strict=True):
            binding.add_symbol(_PREFIX + name, ctypes.cast(routine, ctypes.c_void_p).value)
        return True
    return False


IS_AVAILABLE = _share()
"""Whether a kernel may call what is here: with torch's wheels for Linux and macOS it may."""

_emitting: Any = cgutils  # untyped

_INTEGER = ir.IntType(64)
_CHARACTER = ir.IntType(8)


class _Call:
    """The arguments of a Fortran routine, each by its address."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self._context, self._builder, self._dtype = context, builder, dtype
        self._arguments: list[Any] = []

    def _add(self, kind: Any, value: Any) -> None:
        place = _emitting.alloca_once(self._builder, kind)
        self._builder.store(value, place)
        self._arguments.append(place)

    def letters(self, letters: str) -> None:
        for letter in letters:
            self._add(_CHARACTER, ir.Constant(_CHARACTER, ord(letter)))

    def extents(self, *values: Any) -> None:
        for value in values:
            self._add(_INTEGER, value)

    def number(self, value: int) -> None:
        kind = self._context.get_value_type(self._dtype)
        self._add(kind, self._context.get_constant_generic(self._builder, self._dtype, value))

    def array(self, array: Any) -> None:
        """Address and leading dimension."""
        rows, _ = _emitting.unpack_tuple(self._builder, array.shape)
        _, stride = _emitting.unpack_tuple(self._builder, array.strides)
        leading = self._builder.sdiv(stride, array.itemsize)
        # BLAS asks for this of a single column, too, whose stride may be anything.
        enough = self._builder.icmp_signed(">=", leading, rows)
        self._arguments.append(array.data)
        self.extents(self._builder.select(enough, leading, rows))

    def emit(self, routine: str) -> None:
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in self._arguments])
        name = _PREFIX + _LETTERS[self._dtype] + routine
        function = _emitting.get_or_insert_function(self._builder.module, kind, name)
        self._builder.call(function, self._arguments)


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    return [
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _subtract_product(_typing: Any, C: Any, A: Any, B: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        c, a, b = _arrays(context, builder, signature, arguments)
        rows, columns = _emitting.unpack_tuple(builder, c.shape)
        call = _Call(context, builder, C.dtype)
        call.letters("NN")
        call.extents(rows, columns, _emitting.unpack_tuple(builder, a.shape)[1])
        call.number(-1)
        call.array(a)
        call.array(b)
        call.number(1)
        call.array(c)
        call.emit("gemm")
        return context.get_dummy_value()

    return types.void(C, A, B), generate


def _solve(letters: str) -> Any:
    """An intrinsic for B ← A⁻¹B or B A⁻¹ with the side, triangle and so on that BLAS is told."""

    def solve(_typing: Any, A: Any, B: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            a, b = _arrays(context, builder, signature, arguments)
            call = _Call(context, builder, B.dtype)
            call.letters(letters)
            call.extents(*_emitting.unpack_tuple(builder, b.shape))
            call.number(1)
            call.array(a)
            call.array(b)
            call.emit("trsm")
            return context.get_dummy_value()

        return types.void(A, B), generate

    return intrinsic(solve)


subtract_product: Any = intrinsic(_subtract_product)
"""C ← C − A B."""

solve_upper: Any = _solve("LUNN")
"""B ← U⁻¹ B; below the diagonal of U nothing is read."""

solve_unit_lower_from_right: Any = _solve("RLNU")
"""B ← B L⁻¹; L is read below its diagonal."""

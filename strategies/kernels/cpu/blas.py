"""BLAS and LAPACK inside compiled loops: those that torch itself calls.

From Python every product of small blocks costs several times what it computes. These are the same
routines, in the same threads, called from machine code. Arrays hold their columns one after the
other, as LAPACK's do; one that is written to overlaps no other operand.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "IS_AVAILABLE",
    "add_product",
    "apply_reflectors_adjoint",
    "decompose",
    "eliminate",
    "factor_positive_definite",
    "form_basis",
    "invert_positive_definite",
    "reflect",
    "solve_adjoint_with",
    "solve_lower",
    "solve_lower_adjoint",
    "solve_lower_transposed",
    "solve_unit_lower",
    "solve_unit_lower_from_right",
    "solve_upper",
    "solve_upper_adjoint",
    "solve_upper_adjoint_from_right",
    "solve_upper_transposed",
    "solve_upper_transposed_from_right",
    "solve_with",
    "subtract_adjoint_product",
    "subtract_adjoint_times_transpose",
    "subtract_product",
    "subtract_product_with_adjoint",
    "subtract_product_with_transpose",
    "subtract_twice_transposed_times",
    "write_adjoint_product",
    "write_adjoint_times_transpose",
    "write_minus_adjoint_times_transpose",
    "write_minus_product",
    "write_product",
    "write_product_with_transpose",
]

_LETTERS = {
    types.float32: "s",
    types.float64: "d",
    types.complex64: "c",
    types.complex128: "z",
}
_ROUTINES = {
    "gemm": "sdcz",
    "trsm": "sdcz",
    "getrf": "sdcz",
    "getrs": "sdcz",
    "potrf": "sdcz",
    "potri": "sdcz",
    "geqrf": "sdcz",
    "orgqr": "sd",
    "ungqr": "cz",
    "ormqr": "sd",
    "unmqr": "cz",
    "gesdd": "sdcz",
}
"""And the dtypes that each exists for."""

_PREFIX = "backward_strategies_"
_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib")


def _share() -> bool:
    """Give the compiler the routines of torch's library, if it exports them."""
    if sys.byteorder != "little":
        return False  # an integer is passed as 64 bits, of which a 32-bit BLAS reads the first 32
    names = [letter + routine for routine, letters in _ROUTINES.items() for letter in letters]
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

    def number(self, value: float) -> None:
        kind = self._context.get_value_type(self._dtype)
        self._add(kind, self._context.get_constant_generic(self._builder, self._dtype, value))

    @property
    def is_complex(self) -> bool:
        return isinstance(self._dtype, types.Complex)

    def shape(self, array: Any) -> Any:
        return _emitting.unpack_tuple(self._builder, array.shape)

    def address(self, array: Any) -> None:
        self._arguments.append(array.data)

    def array(self, array: Any) -> None:
        """Address and leading dimension."""
        rows, _ = self.shape(array)
        _, stride = _emitting.unpack_tuple(self._builder, array.strides)
        leading = self._builder.sdiv(stride, array.itemsize)
        # BLAS asks for this of a single column, too, whose stride may be anything.
        enough = self._builder.icmp_signed(">=", leading, rows)
        self._arguments.append(array.data)
        self.extents(self._builder.select(enough, leading, rows))

    def scratch(self, array: Any) -> None:
        """Workspace and how much there is, which LAPACK asks for last, before `info`."""
        self.address(array)
        self.extents(*self.shape(array))
        self.info()

    def info(self) -> None:
        """A place for what LAPACK says of its arguments, which are right."""
        self.extents(ir.Constant(_INTEGER, 0))

    def emit(self, routine: str) -> None:
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in self._arguments])
        name = _PREFIX + _LETTERS[self._dtype] + routine
        function = _emitting.get_or_insert_function(self._builder.module, kind, name)
        self._builder.call(function, self._arguments)


def _code(emit: Callable[..., None]) -> Callable[..., Any]:
    """What Numba calls to write a call of a routine: `emit`, of a `_Call` and the arrays.

    The first of the arrays has the dtype that the routine is for.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        emit(_Call(context, builder, signature.args[0].dtype), *arrays)
        return context.get_dummy_value()

    return generate


def _product(letters: str, factor: int, *, keeps: float = 1) -> Any:
    """An intrinsic for C ← `keeps` C + `factor` op(A) op(B), the letters being those of BLAS.

    C, T and N are the adjoint, the transpose and neither. Where nothing is kept C may be anything.
    """

    def emit(call: _Call, c: Any, a: Any, b: Any) -> None:
        call.letters(letters)
        call.extents(*call.shape(c), call.shape(a)[letters[0] == "N"])
        call.number(factor)
        call.array(a)
        call.array(b)
        call.number(keeps)
        call.array(c)
        call.emit("gemm")

    return intrinsic(lambda _, C, A, B: (types.void(C, A, B), _code(emit)))


def _solve(letters: str) -> Any:
    """An intrinsic for B ← A⁻¹B or B A⁻¹ with the side, triangle and so on that BLAS is told."""

    def emit(call: _Call, a: Any, b: Any) -> None:
        call.letters(letters)
        call.extents(*call.shape(b))
        call.number(1)
        call.array(a)
        call.array(b)
        call.emit("trsm")

    return intrinsic(lambda _, A, B: (types.void(A, B), _code(emit)))


def _solve_with(letter: str) -> Any:
    """An intrinsic for B ← A⁻¹ B, or the transpose's or the adjoint's, from what `eliminate` has left."""

    def emit(call: _Call, lu: Any, swaps: Any, b: Any) -> None:
        call.letters(letter)
        call.extents(*call.shape(b))
        call.array(lu)
        call.address(swaps)
        call.array(b)
        call.info()
        call.emit("getrs")

    return intrinsic(lambda _, LU, swaps, B: (types.void(LU, swaps, B), _code(emit)))


def _eliminate(call: _Call, a: Any, swaps: Any, info: Any) -> None:
    call.extents(*call.shape(a))
    call.array(a)
    call.address(swaps)
    call.address(info)
    call.emit("getrf")


def _lower(routine: str) -> Any:
    """An intrinsic for what LAPACK does with a lower triangle in place."""

    def emit(call: _Call, a: Any, info: Any) -> None:
        call.letters("L")
        call.extents(call.shape(a)[0])
        call.array(a)
        call.address(info)
        call.emit(routine)

    return intrinsic(lambda _, A, info: (types.void(A, info), _code(emit)))


def _reflect(call: _Call, a: Any, scales: Any, scratch: Any) -> None:
    call.extents(*call.shape(a))
    call.array(a)
    call.address(scales)
    call.scratch(scratch)
    call.emit("geqrf")


def _form_basis(call: _Call, a: Any, scales: Any, scratch: Any) -> None:
    rows, columns = call.shape(a)
    call.extents(rows, columns, columns)
    call.array(a)
    call.address(scales)
    call.scratch(scratch)
    call.emit("ungqr" if call.is_complex else "orgqr")


def _apply_reflectors_adjoint(call: _Call, a: Any, scales: Any, b: Any, scratch: Any) -> None:
    call.letters("LC" if call.is_complex else "LT")
    call.extents(*call.shape(b), call.shape(a)[1])
    call.array(a)
    call.address(scales)
    call.array(b)
    call.scratch(scratch)
    call.emit("unmqr" if call.is_complex else "ormqr")


def _decompose(
    call: _Call,
    a: Any,
    s: Any,
    u: Any,
    vh: Any,
    scratch: Any,
    of_reals: Any,
    of_integers: Any,
    info: Any,
) -> None:
    call.letters("S")
    call.extents(*call.shape(a))
    call.array(a)
    call.address(s)
    call.array(u)
    call.array(vh)
    call.address(scratch)
    call.extents(*call.shape(scratch))
    if call.is_complex:
        call.address(of_reals)
    call.address(of_integers)
    call.address(info)
    call.emit("gesdd")


add_product: Any = _product("NN", 1)
"""C ← C + A B."""

subtract_product: Any = _product("NN", -1)
"""C ← C − A B."""

write_product: Any = _product("NN", 1, keeps=0)
"""C ← A B."""

write_adjoint_product: Any = _product("CN", 1, keeps=0)
"""C ← Aᴴ B."""

subtract_adjoint_product: Any = _product("CN", -1)
"""C ← C − Aᴴ B."""

write_minus_product: Any = _product("NN", -1, keeps=0)
"""C ← −A B."""

subtract_product_with_adjoint: Any = _product("NC", -1)
"""C ← C − A Bᴴ."""

write_product_with_transpose: Any = _product("NT", 1, keeps=0)
"""C ← A Bᵀ."""

subtract_product_with_transpose: Any = _product("NT", -1)
"""C ← C − A Bᵀ."""

write_adjoint_times_transpose: Any = _product("CT", 1, keeps=0)
"""C ← Aᴴ Bᵀ."""

write_minus_adjoint_times_transpose: Any = _product("CT", -1, keeps=0)
"""C ← −Aᴴ Bᵀ."""

subtract_adjoint_times_transpose: Any = _product("CT", -1)
"""C ← C − Aᴴ Bᵀ."""

halve_and_subtract_transposed_times: Any = _product("TN", -1, keeps=0.5)
"""C ← C / 2 − Aᵀ B."""

subtract_twice_transposed_times: Any = _product("TN", -2)
"""C ← C − 2 Aᵀ B."""

solve_lower: Any = _solve("LLNN")
"""B ← L⁻¹ B; above the diagonal of L nothing is read."""

solve_lower_adjoint: Any = _solve("LLCN")
"""B ← L⁻ᴴ B; likewise."""

solve_lower_transposed: Any = _solve("LLTN")
"""B ← L⁻ᵀ B; likewise."""

solve_upper: Any = _solve("LUNN")
"""B ← U⁻¹ B; below the diagonal of U nothing is read."""

solve_upper_adjoint: Any = _solve("LUCN")
"""B ← U⁻ᴴ B; likewise."""

solve_upper_transposed: Any = _solve("LUTN")
"""B ← U⁻ᵀ B; likewise."""

solve_upper_adjoint_from_right: Any = _solve("RUCN")
"""B ← B U⁻ᴴ; likewise."""

solve_upper_transposed_from_right: Any = _solve("RUTN")
"""B ← B U⁻ᵀ; likewise."""

solve_unit_lower: Any = _solve("LLNU")
"""B ← L⁻¹ B; L is read below its diagonal."""

solve_unit_lower_from_right: Any = _solve("RLNU")
"""B ← B L⁻¹; likewise."""

eliminate: Any = intrinsic(
    lambda _, A, swaps, info: (types.void(A, swaps, info), _code(_eliminate))
)
"""A = P L U in place with LAPACK pivots; where the first zero pivot is, from 1, or 0."""

solve_with: Any = _solve_with("N")
"""B ← A⁻¹ B, of what `eliminate` has left."""

solve_adjoint_with: Any = _solve_with("C")
"""B ← A⁻ᴴ B; likewise."""

factor_positive_definite: Any = _lower("potrf")
"""A = L Lᴴ in place, of the lower triangle; where the first minor that is not positive is, from 1, or 0."""

invert_positive_definite: Any = _lower("potri")
"""(L Lᴴ)⁻¹ in place of L, the lower triangle; where the first zero of the diagonal is, from 1, or 0."""

reflect: Any = intrinsic(lambda _, A, scales, work: (types.void(A, scales, work), _code(_reflect)))
"""A = Q R in place as reflectors and their scales, of a tall matrix."""

form_basis: Any = intrinsic(
    lambda _, A, scales, work: (types.void(A, scales, work), _code(_form_basis))
)
"""The reflectors of `reflect` overwritten by the columns of Q that span the range."""

apply_reflectors_adjoint: Any = intrinsic(
    lambda _, A, scales, B, work: (
        types.void(A, scales, B, work),
        _code(_apply_reflectors_adjoint),
    )
)
"""B ← Qᴴ B, of what `reflect` has left."""

decompose: Any = intrinsic(
    lambda _, A, s, U, Vh, work, of_reals, of_integers, info: (
        types.void(A, s, U, Vh, work, of_reals, of_integers, info),
        _code(_decompose),
    )
)
"""A = U diag(s) Vᴴ, of which A is scratch; whether it has not converged, or 0."""

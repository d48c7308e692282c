"""How a loop reads its task (`strategies.kernels.cpu.task`), and how its parts are compiled."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np import arrayobj

from strategies.kernels.cpu.task import (
    ARGUMENT_WORDS,
    FINISHED_WORD,
    HEADER_WORDS,
    REPORT_WORD,
)

Array = Any  # NumPy arrays of whatever dtype the loop is compiled for
Task = Any  # the address of a block

compiled: Any = numba.njit(fastmath={"contract"}, error_model="numpy")
"""Decorates what is compiled as part of the loop that calls it."""

inlined: Any = numba.njit(fastmath={"contract"}, error_model="numpy", inline="always")
"""`compiled`, where arguments that the caller writes as numbers are constants."""

reordered: Any = numba.njit(fastmath={"contract", "reassoc"}, error_model="numpy")
"""`compiled`, and free to add up in any order, as vector instructions do."""


def _word(builder: Any, block: Any, position: int | Any) -> Any:
    index = ir.Constant(ir.IntType(64), position) if isinstance(position, int) else position
    return builder.gep(builder.bitcast(block, ir.IntType(64).as_pointer()), [index])


def _increment(position: int) -> Any:
    """A function that adds one to a word of the block, which all threads do, and returns it as it was."""

    def increment(_typing: Any, block: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            one, word = ir.Constant(ir.IntType(64), 1), _word(builder, arguments[0], position)
            return builder.atomic_rmw("add", word, one, "monotonic")

        return types.int64(block), generate

    return intrinsic(increment)


_claimed, _finish = _increment(0), _increment(FINISHED_WORD)


def _header(position: int) -> Any:
    def read(_typing: Any, block: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.load(_word(builder, arguments[0], position))

        return types.int64(block), generate

    return intrinsic(read)


_number_of_matrices, group_size = _header(1), _header(2)


def _report(_typing: Any, block: Any) -> Any:
    """Tell the caller that the loop did not do what it was asked for."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        builder.store(one, _word(builder, arguments[0], REPORT_WORD))
        return context.get_dummy_value()

    return types.void(block), generate


report: Any = intrinsic(_report)


@compiled
def groups(block: Any) -> Iterator[int]:
    """The first matrices of the groups that are this thread's."""
    count, size = _number_of_matrices(block), group_size(block)
    start = _claimed(block) * size
    while start < count:
        yield start
        _finish(block)  # which an exception in between keeps from being counted
        start = _claimed(block) * size


@compiled
def single_matrices(block: Any) -> Iterator[int]:
    """The matrices of this thread's groups, one by one."""
    for start in groups(block):
        stop = min(start + group_size(block), _number_of_matrices(block))
        for matrix in range(start, stop):  # noqa: UP028 - Numba knows no `yield from`
            yield matrix


def _argument(dtype_in: Callable[[Any], Any], ndim: int, layout: Literal["A", "C"] = "A") -> Any:
    """A function of block and position: that argument as an array of so many dimensions."""

    def view(_typing: Any, block: Any, _: Any) -> Any:
        dtype = dtype_in(block)
        kind = types.Array(dtype, ndim, layout)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            first = builder.add(
                builder.mul(arguments[1], ir.Constant(ir.IntType(64), ARGUMENT_WORDS)),
                ir.Constant(ir.IntType(64), HEADER_WORDS),
            )

            def word(offset: int) -> Any:
                at = builder.add(first, ir.Constant(ir.IntType(64), offset))
                return builder.load(_word(builder, arguments[0], at))

            fill: Any = arrayobj.populate_array
            stored = context.get_data_type(dtype)
            itemsize = ir.Constant(ir.IntType(64), context.get_abi_sizeof(stored))
            result = context.make_array(kind)(context, builder)
            fill(
                result,
                data=builder.inttoptr(word(0), stored.as_pointer()),
                shape=[word(1 + i) for i in range(ndim)],
                strides=[builder.mul(word(4 + i), itemsize) for i in range(ndim)],
                itemsize=itemsize,
                meminfo=None,
            )
            return result._getvalue()

        return kind(block, types.int64), generate

    return intrinsic(view)


def _as_packed(_typing: Any, row: Any) -> Any:
    kind = types.Array(row.dtype, row.ndim, "C")

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return impl_ret_borrowed(context, builder, kind, arguments[0])  # type: ignore[no-untyped-call]

    return kind(row), generate


packed: Any = intrinsic(_as_packed)
"""A row whose entries lie side by side, as the caller has seen, of a type that says so: for vectors."""


def _ask_for_large_pages(_typing: Any, array: Any) -> Any:
    """As `strategies.allocation.on_large_pages` does, of a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not hasattr(mmap, "MADV_HUGEPAGE"):
            return context.get_dummy_value()
        word, flag = ir.IntType(64), ir.IntType(32)
        value = context.make_array(signature.args[0])(context, builder, arguments[0])
        start = builder.ptrtoint(value.data, word)
        last = ir.Constant(word, mmap.PAGESIZE - 1)
        first = builder.and_(builder.add(start, last), builder.not_(last))
        stop = builder.add(start, builder.mul(value.nitems, value.itemsize))
        kind = ir.FunctionType(flag, [start.type, word, flag])
        advise = cgutils.get_or_insert_function(builder.module, kind, "madvise")  # type: ignore[no-untyped-call]
        builder.call(
            advise, [first, builder.sub(stop, first), ir.Constant(flag, mmap.MADV_HUGEPAGE)]
        )
        return context.get_dummy_value()

    return types.void(array), generate


ask_for_large_pages: Any = intrinsic(_ask_for_large_pages)

matrices = _argument(lambda block: block.dtype, 3)
contiguous = _argument(lambda block: block.dtype, 3, "C")
numbers = _argument(lambda block: block.dtype, 2)
rows = _argument(lambda block: block.dtype, 2, "C")
reals = _argument(lambda block: getattr(block.dtype, "underlying_float", block.dtype), 2)
integers = _argument(lambda _: types.int64, 2)
pivots = _argument(lambda _: types.int32, 2)
flags = _argument(lambda _: types.boolean, 2)

"""Eight numbers at a time: vectors for kernels whose inner dimension is short.

A compiler turns long loops into vector instructions by itself, but not a loop over eight states
whose results should stay in registers. So here are vectors of eight doubles, and masks of eight
bits, as types of their own, with the few operations that the kernels need. Each is one operation
of LLVM, which splits it where the processor has shorter vectors.

Memory is reached through pointers, which Numba reads and writes like arrays, ``p[i]``: no counting
of references, which costs more than many a short loop, no negative positions, and one word instead
of seven to hand to a function. Who makes a pointer sees to it that the array stays (`keep`).

When nothing is compiled (see :mod:`.jit`), plain Python stands in: :mod:`.lanes_plain`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1, log1p  # noqa: F401 (kernels get them from here)
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from .jit import PLAIN

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)


class _Vector(types.Type):
    def __init__(self) -> None:
        super().__init__(name="vector of 8 doubles")


class _Mask(types.Type):
    def __init__(self) -> None:
        super().__init__(name="mask of 8 bits")


vector, mask = _Vector(), _Mask()


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@register_model(_Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _MASK)


def _operation(result: Any, emit: Callable[..., Any]) -> Any:
    """An intrinsic that takes its arguments as they come and emits one LLVM operation."""

    def typer(*kinds: Any) -> Any:
        return result(*kinds), lambda _context, builder, _sig, args: emit(builder, *args)

    if emit.__code__.co_argcount == 4:
        return intrinsic(lambda _typing, a, b, c: typer(a, b, c))
    return intrinsic(lambda _typing, a, b: typer(a, b))


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    # in one rounding where the processor can, in two where it would have to be emulated
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    f = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f64")
    return builder.call(f, [a, b, c])


add = _operation(vector, lambda do, a, b: do.fadd(a, b))
sub = _operation(vector, lambda do, a, b: do.fsub(a, b))
mul = _operation(vector, lambda do, a, b: do.fmul(a, b))
div = _operation(vector, lambda do, a, b: do.fdiv(a, b))
madd = _operation(vector, _multiply_add)
larger = _operation(vector, lambda do, a, b: do.select(do.fcmp_ordered(">", a, b), a, b))
smaller = _operation(vector, lambda do, a, b: do.select(do.fcmp_ordered("<", a, b), a, b))
above = _operation(mask, lambda do, a, b: do.fcmp_ordered(">", a, b))
at_least = _operation(mask, lambda do, a, b: do.fcmp_ordered(">=", a, b))
both = _operation(mask, lambda do, a, b: do.and_(a, b))
either = _operation(mask, lambda do, a, b: do.or_(a, b))
where = _operation(vector, lambda do, m, a, b: do.select(m, a, b))


@intrinsic
def some(_typing: Any, m: Any) -> Any:
    """Is any bit of the mask set?"""

    def emit(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(m), emit


@intrinsic
def bit_length(_typing: Any, n: Any) -> Any:
    """Number of binary digits of a positive integer."""

    def emit(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.IntType(1)(1))
        return builder.sub(ir.IntType(64)(64), zeros)

    return types.int64(types.int64), emit


@intrinsic
def leading(_typing: Any, m: Any) -> Any:
    """Number of bits set before the first that is not."""

    def emit(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        bits = builder.zext(builder.bitcast(args[0], ir.IntType(LANES)), ir.IntType(64))
        return builder.cttz(builder.not_(bits), ir.IntType(1)(1))

    return types.int64(m), emit


def _spread(builder: Any, x: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), x, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), order)


@intrinsic
def splat(_typing: Any, x: Any) -> Any:
    """The same number in all lanes."""
    return vector(types.float64), lambda _context, builder, _sig, args: _spread(builder, args[0])


@intrinsic
def pointer(_typing: Any, array: Any, i: Any) -> Any:
    """Where ``array[i]`` lies, for a contiguous array or another pointer."""
    inside = isinstance(array, types.CPointer)

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = args[0] if inside else context.make_array(array)(context, builder, args[0]).data
        return builder.gep(data, [args[1]])

    return types.CPointer(array.dtype)(array, types.intp), emit


@intrinsic
def keep(_typing: Any, array: Any) -> Any:
    """Nothing, but what is used here has not been freed before."""
    return types.void(array), lambda context, _builder, _sig, _args: context.get_dummy_value()


@intrinsic
def splat_at(_typing: Any, p: Any, i: Any) -> Any:
    """``p[i]`` in all lanes."""

    def emit(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return _spread(builder, builder.load(builder.gep(args[0], [args[1]])))

    return vector(p, types.intp), emit


def _eight(builder: Any, args: Any) -> Any:
    return builder.bitcast(builder.gep(args[0], [args[1]]), _VECTOR.as_pointer())


@intrinsic
def load(_typing: Any, p: Any, i: Any) -> Any:
    """``p[i:i + 8]``; also of integers, to be stored among integers again."""

    def emit(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.load(_eight(builder, args), align=8)

    return vector(p, types.intp), emit


@intrinsic
def store(_typing: Any, p: Any, i: Any, v: Any) -> Any:
    """``p[i:i + 8] = v``"""

    def emit(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        builder.store(args[2], _eight(builder, args), align=8)
        return context.get_dummy_value()

    return types.void(p, types.intp, v), emit


@intrinsic
def prefetch(_typing: Any, p: Any, i: Any) -> Any:
    """Ask for the cache line of ``p[i]``, which need not exist."""

    def emit(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        at = builder.bitcast(builder.gep(args[0], [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        f = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(f, [at, word(0), word(3), word(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(p, types.intp), emit


if PLAIN:
    from .lanes_plain import *  # noqa: F403

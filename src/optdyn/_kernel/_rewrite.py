"""Computations rewritten so that the emitter of single kernels takes them."""

import math
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax.extend import core

from optdyn._kernel._suitable import LARGEST_SUM, word_type
from optdyn._typing import Array


def pack(arrays: Sequence[Array]) -> Array:
    """The bits of all arrays in one vector of unsigned integers."""
    word = word_type()

    def words(a):
        bits = a if a.dtype == bool else jax.lax.bitcast_convert_type(a, f"uint{8 * a.dtype.itemsize}")
        return jnp.ravel(bits).astype(word)

    return jnp.concatenate([jnp.zeros(1, word), *map(words, arrays)])


def unpack(words: Array, like: Sequence[Array]) -> list[Array]:
    """The arrays that `pack` was given."""
    out, start = [], 1
    for a in like:
        bits = words[start : start + a.size].reshape(a.shape)
        start += a.size
        if a.dtype == bool:
            out.append(bits.astype(bool))
        else:
            out.append(jax.lax.bitcast_convert_type(bits.astype(f"uint{8 * a.dtype.itemsize}"), a.dtype))
    return out


def evaluate_without_products(jaxpr, *operands: Array) -> list[Array]:
    """Outputs of a jaxpr, with every matrix product as a sum of products.

    Some of the compiler's library calls for products cannot be part of a larger kernel, and which ones
    changes with sizes and versions.
    """
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), operands, strict=True))

    def read(var):
        return var.val if isinstance(var, core.Literal) else values[var]

    for equation in jaxpr.eqns:
        inputs = [read(var) for var in equation.invars]
        primitive, params = equation.primitive, dict(equation.params)
        if primitive is jax.lax.dot_general_p:
            left, right = inputs
            dtype = equation.outvars[0].aval.dtype
            outputs = [_sum_of_products(left, right, params["dimension_numbers"], dtype)]
        elif primitive.name == "optdyn_kernel":
            inner = partial(evaluate_without_products, params["jaxpr"])
            outputs = params["mode"].one_after_the_other(inner, len(params["jaxpr"].constvars), *inputs)
        elif primitive.name in ("custom_jvp_call", "custom_vjp_call"):
            closed = params["call_jaxpr"]
            outputs = evaluate_without_products(closed.jaxpr, *closed.consts, *inputs)
        else:
            params = {name: _rewritten(value) for name, value in params.items()}
            outputs = primitive.bind(*inputs, **params)
            outputs = outputs if primitive.multiple_results else [outputs]
        values.update(zip(equation.outvars, outputs, strict=True))
    return [read(var) for var in jaxpr.outvars]


def _rewritten(parameter):
    """A parameter of a primitive, with its inner computations rewritten."""
    if isinstance(parameter, tuple) and any(isinstance(entry, core.ClosedJaxpr) for entry in parameter):
        return tuple(_rewritten(entry) for entry in parameter)
    if not isinstance(parameter, core.ClosedJaxpr):
        return parameter
    inner = partial(evaluate_without_products, parameter.jaxpr, *parameter.consts)
    return jax.make_jaxpr(inner)(*parameter.in_avals)


def _sum_of_products(left: Array, right: Array, dimension_numbers, dtype) -> Array:
    """`jax.lax.dot_general` by broadcasting, row by row where it is large; axes are batch, left, right."""
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    left_free = [i for i in range(left.ndim) if i not in (*left_sum, *left_batch)]
    right_free = [i for i in range(right.ndim) if i not in (*right_sum, *right_batch)]

    def arranged(a, *axes):
        a = a.astype(dtype).transpose([i for group in axes for i in group])
        return a.reshape([math.prod(a.shape[start:stop]) for start, stop in _ranges(axes)])

    left_rows = arranged(left, left_batch, left_free, left_sum)
    right_rows = arranged(right, right_batch, right_free, right_sum)
    shape = [left.shape[i] for i in (*left_batch, *left_free)] + [right.shape[i] for i in right_free]
    if left_rows.shape[1] * right_rows.size <= LARGEST_SUM:
        out = jnp.sum(left_rows[:, :, None] * right_rows[:, None], axis=-1, dtype=dtype)
    else:

        def member(pair):
            rows, matrix = pair
            return jax.lax.map(lambda row: jnp.sum(row[None] * matrix, axis=-1, dtype=dtype), rows)

        out = jax.lax.map(member, (left_rows, right_rows))
    return out.reshape(shape)


def _ranges(groups) -> list[tuple[int, int]]:
    """(start, stop) of consecutive groups."""
    stops = [sum(len(group) for group in groups[: i + 1]) for i in range(len(groups))]
    return [(stop - len(group), stop) for stop, group in zip(stops, groups, strict=True)]

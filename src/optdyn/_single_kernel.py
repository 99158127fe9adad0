"""Compile a computation on small arrays to a single CPU kernel.

XLA's CPU runtime launches one kernel per fused operation. For arrays of a few dozen numbers a launch costs
far more than the arithmetic, and an iterative solver consists of such operations. The compiler can also emit
a whole computation, loops included, as one function, but on its own it does so only for loops that touch
less than a kilobyte. A call that carries the attribute `xla_cpu_small_call` is emitted so whatever its size.

The attribute is a hint about speed. On other platforms, for large batches, and for computations with
anything outside `_SUPPORTED` (LAPACK calls, sorting, callbacks, random bits) the call is compiled as usual.
Setting the environment variable OPTDYN_SINGLE_KERNEL to 0 switches it off altogether.
"""

import math
import os
from collections.abc import Callable, Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from optdyn._typing import Array, PyTree

# Operations of which the emitter of single functions is known to be capable, as a jaxpr names them.
_SUPPORTED = frozenset(
    """
    abs acos acosh add add_any and argmax argmin asin asinh atan atan2 atanh bitcast_convert_type
    broadcast_in_dim cbrt ceil clamp concatenate convert_element_type copy copy_p cos cosh div dot_general
    dynamic_slice dynamic_update_slice eq erf exp exp2 expand_dims expm1 floor gather ge gt imag integer_pow
    iota is_finite le log log1p logistic lt max min mul ne neg nextafter not or pad platform_index
    population_count pow real reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum rem reshape
    rev round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice split
    sqrt square squeeze stack stop_gradient sub tan tanh transpose unstack xor closed_call cond core_call
    custom_jvp_call custom_vjp_call jit pjit remat scan single_kernel while
    """.split()
)
# Larger arrays keep the runtime's own kernels: library calls that may use several threads.
_MOST_ELEMENTS = 3000


def single_kernel(fn: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`fn(*args)`, as one kernel where that is possible; the same numbers in any case.

    Meant for loops that nobody differentiates step by step.
    """
    arrays, rest = eqx.partition(args, eqx.is_array)
    closed, shapes = jax.make_jaxpr(lambda arrays: fn(*eqx.combine(arrays, rest)), return_shape=True)(arrays)
    operands = [*closed.consts, *jax.tree.leaves(arrays)]
    out = _primitive.bind(*operands, jaxpr=closed.jaxpr)
    return jax.tree.unflatten(jax.tree.structure(shapes), out)


_primitive = core.Primitive("single_kernel")
_primitive.multiple_results = True


def _evaluate(jaxpr, *operands: Array) -> list[Array]:
    split = len(jaxpr.constvars)
    return core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, operands[:split]))(*operands[split:])


@_primitive.def_impl
def _run(*operands, jaxpr):
    return jax.jit(partial(_primitive.bind, jaxpr=jaxpr))(*operands)


@_primitive.def_abstract_eval
def _abstract(*_, jaxpr):
    return [var.aval for var in jaxpr.outvars]


def _batch(operands, axes, *, jaxpr):
    batched = jax.vmap(partial(_evaluate, jaxpr), in_axes=list(axes))
    out = single_kernel(batched, *operands)
    return out, [0] * len(out)


def _jvp(primals, tangents, *, jaxpr):
    tangents = tuple(ad.instantiate_zeros(t) for t in tangents)
    return jax.jvp(partial(_evaluate, jaxpr), tuple(primals), tangents)


def _lower(context, *operands, jaxpr):
    def call(*operands):
        if os.environ.get("OPTDYN_SINGLE_KERNEL") == "0" or not _is_suitable(jaxpr):
            return _evaluate(jaxpr, *operands)

        def packed(words):
            # The compiler aborts on a parameter that nothing reads, hence one array for all of them, and
            # an output that depends on it whatever becomes of the others.
            return words[:1], *_evaluate_without_dots(jaxpr, *_unpack(words, operands))

        words = _pack(operands)
        plain = jax.make_jaxpr(packed)(words)
        with set_xla_metadata(xla_cpu_small_call="true", inlineable="false"):
            return jax.jit(core.jaxpr_as_fun(plain))(words)[1:]

    return mlir.lower_fun(call, multiple_results=True)(context, *operands)


def _lower_inline(context, *operands, jaxpr):
    return mlir.lower_fun(partial(_evaluate, jaxpr), multiple_results=True)(context, *operands)


batching.primitive_batchers[_primitive] = _batch
ad.primitive_jvps[_primitive] = _jvp
mlir.register_lowering(_primitive, _lower_inline)
mlir.register_lowering(_primitive, _lower, platform="cpu")


def _pack(arrays: Sequence[Array]) -> Array:
    """The bits of all arrays in one vector of unsigned integers."""
    word = _word_type()

    def words(a):
        bits = a if a.dtype == bool else jax.lax.bitcast_convert_type(a, f"uint{8 * a.dtype.itemsize}")
        return jnp.ravel(bits).astype(word)

    return jnp.concatenate([jnp.zeros(1, word), *map(words, arrays)])


def _unpack(words: Array, like: Sequence[Array]) -> list[Array]:
    """The arrays that `_pack` was given."""
    out, start = [], 1
    for a in like:
        bits = words[start : start + a.size].reshape(a.shape)
        start += a.size
        if a.dtype == bool:
            out.append(bits.astype(bool))
        else:
            out.append(jax.lax.bitcast_convert_type(bits.astype(f"uint{8 * a.dtype.itemsize}"), a.dtype))
    return out


def _word_type():
    return jnp.uint64 if jax.config.jax_enable_x64 else jnp.uint32


def _is_suitable(jaxpr) -> bool:
    if not all(_is_number(var.aval) for var in (*jaxpr.constvars, *jaxpr.invars)):
        return False
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _SUPPORTED and not _is_update_of_one_slice(equation):
            return False
        sizes = [var.aval.size for var in (*equation.invars, *equation.outvars)]
        if equation.primitive is jax.lax.dot_general_p:
            sizes.append(_products(equation))
        if max(sizes, default=0) > _MOST_ELEMENTS:
            return False
        if not all(_is_suitable(inner) for inner in core.jaxprs_in_params(equation.params)):
            return False
    return True


def _is_number(aval) -> bool:
    real = any(jnp.issubdtype(aval.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))
    return real and jnp.dtype(aval.dtype).itemsize <= jnp.dtype(_word_type()).itemsize


def _products(dot) -> int:
    """Number of multiplications of a `dot_general`."""
    left = dot.invars[0].aval
    contracted = math.prod(left.shape[i] for i in dot.params["dimension_numbers"][0][0])
    return dot.outvars[0].aval.size * contracted


def _is_update_of_one_slice(equation) -> bool:
    """`x.at[i].set(y)` and the like, which the compiler turns into a dynamic update; no other scatter."""
    if not equation.primitive.name.startswith("scatter"):
        return False
    *places, _ = equation.invars[1].aval.shape
    return math.prod(places) == 1


def _evaluate_without_dots(jaxpr, *operands: Array) -> list[Array]:
    """`_evaluate` with every matrix product as a sum of products.

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
            outputs = [_sum_of_products(*inputs, params["dimension_numbers"], equation.outvars[0].aval.dtype)]
        elif primitive is _primitive:
            outputs = _evaluate_without_dots(params["jaxpr"], *inputs)
        elif primitive.name in ("custom_jvp_call", "custom_vjp_call"):
            closed = params["call_jaxpr"]
            outputs = _evaluate_without_dots(closed.jaxpr, *closed.consts, *inputs)
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
    inner = partial(_evaluate_without_dots, parameter.jaxpr, *parameter.consts)
    return jax.make_jaxpr(inner)(*parameter.in_avals)


def _sum_of_products(left: Array, right: Array, dimension_numbers, dtype) -> Array:
    """`jax.lax.dot_general` by broadcasting; the result's axes are batch, left, right."""
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    left_free = [i for i in range(left.ndim) if i not in (*left_sum, *left_batch)]
    right_free = [i for i in range(right.ndim) if i not in (*right_sum, *right_batch)]
    batch, num_sum = len(left_batch), len(left_sum)
    left = left.astype(dtype).transpose(*left_batch, *left_free, *left_sum)
    right = right.astype(dtype).transpose(*right_batch, *right_free, *right_sum)
    left = jnp.expand_dims(left, range(batch + len(left_free), batch + len(left_free) + len(right_free)))
    right = jnp.expand_dims(right, range(batch, batch + len(left_free)))
    return jnp.sum(left * right, axis=tuple(range(left.ndim - num_sum, left.ndim)), dtype=dtype)

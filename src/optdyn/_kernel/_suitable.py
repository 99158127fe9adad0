"""Which computations the compiler can emit as a single kernel."""

import math

import jax
import jax.numpy as jnp
from jax.extend import core

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
    custom_jvp_call custom_vjp_call jit pjit scan optdyn_kernel while
    """.split()
)
# Larger ones keep the runtime's own kernels: sums and products are library calls from some size on, which
# cannot be part of a kernel, and elementwise operations may use several threads.
LARGEST_SUM = 4000
_LARGEST_ARRAY = 2**18


def is_suitable(jaxpr) -> bool:
    """Whether every operation of a jaxpr, inner ones included, can be part of a kernel."""
    if not all(_is_number(var.aval) for var in (*jaxpr.constvars, *jaxpr.invars)):
        return False
    for equation in jaxpr.eqns:
        if equation.primitive.name not in _SUPPORTED and not _is_update_of_one_slice(equation):
            return False
        if max((var.aval.size for var in (*equation.invars, *equation.outvars)), default=0) > _LARGEST_ARRAY:
            return False
        if _terms(equation) > LARGEST_SUM:
            return False
        if not all(is_suitable(inner) for inner in core.jaxprs_in_params(equation.params)):
            return False
    return True


def _is_number(aval) -> bool:
    real = any(jnp.issubdtype(aval.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))
    return real and 8 <= _bits(aval.dtype) <= _bits(word_type())


def _bits(dtype) -> int:
    """Size of a number; some types are smaller than a byte."""
    if jnp.issubdtype(dtype, jnp.bool_):
        return 8
    return (jnp.finfo if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo)(dtype).bits


def _terms(equation) -> int:
    """How many numbers one operation adds up: a reduction, or a row of a matrix product."""
    if equation.primitive.name.startswith(("reduce_", "arg")):
        return equation.invars[0].aval.size
    if equation.primitive is not jax.lax.dot_general_p:
        return 0
    right, (_, right_batch) = equation.invars[1].aval, equation.params["dimension_numbers"][1]
    return right.size // max(math.prod(right.shape[i] for i in right_batch), 1)


def _is_update_of_one_slice(equation) -> bool:
    """`x.at[i].set(y)` and the like, which the compiler turns into a dynamic update; no other scatter."""
    if not equation.primitive.name.startswith("scatter"):
        return False
    *places, _ = equation.invars[1].aval.shape
    return math.prod(places) == 1


def word_type():
    """Unsigned integers that hold every number of a computation."""
    return jnp.uint64 if jnp.result_type(float).itemsize == 8 else jnp.uint32

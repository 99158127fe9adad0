"""Compile a computation on small arrays to a single CPU kernel.

XLA's CPU runtime launches one kernel per fused operation. For arrays of a few dozen numbers a launch costs
far more than the arithmetic, and an iterative solver consists of such operations. The compiler can also emit
a whole computation, loops included, as one function, but on its own it does so only for loops that touch
less than a kilobyte. A call that carries the attribute `xla_cpu_small_call` is emitted so whatever its size.

The attribute is a hint about speed. On other platforms, for large batches, and for computations with
anything that `_suitable` does not list (LAPACK calls, sorting, callbacks, random bits) the call is compiled
as usual. Setting the environment variable OPTDYN_SINGLE_KERNEL to 0 switches it off altogether.
"""

import enum
import os
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from optdyn._kernel._rewrite import evaluate_without_products, pack, unpack
from optdyn._kernel._suitable import is_suitable
from optdyn._typing import Array, PyTree


def single_kernel(fn: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`fn(*args)`, as one kernel where that is possible; the same numbers in any case.

    Meant for loops that nobody differentiates step by step.
    """
    return _bind(_Mode.once, fn, args)


def map_in_kernel(fn: Callable[..., PyTree], *args: PyTree) -> PyTree:
    """`jax.vmap(fn)(*args)`, but a loop over the leading axis where that makes a single kernel.

    In a loop every member takes the steps that it needs; in a batch all take those of the hardest.
    """
    return _bind(_Mode.mapped, fn, args)


class _Mode(enum.Enum):
    """What the operands after the constants of a jaxpr are: its inputs, or stacks of them."""

    once = enum.auto()
    mapped = enum.auto()

    def in_batch(self, fn: Callable, num_consts: int, *operands: Array) -> list[Array]:
        """`fn(*operands)`, vectorized over the stacks."""
        if self is _Mode.once:
            return fn(*operands)
        axes = [None] * num_consts + [0] * (len(operands) - num_consts)
        return jax.vmap(fn, in_axes=axes)(*operands)

    def one_after_the_other(self, fn: Callable, num_consts: int, *operands: Array) -> list[Array]:
        """`fn(*operands)`, in a loop over the stacks."""
        if self is _Mode.once:
            return fn(*operands)
        consts, stacks = operands[:num_consts], operands[num_consts:]
        return jax.lax.map(lambda inputs: fn(*consts, *inputs), stacks)


# JAX's own switches under which nothing may be compiled as a whole.
_OPERATION_BY_OPERATION = ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs")

_primitive = core.Primitive("optdyn_kernel")
_primitive.multiple_results = True


def _bind(mode: _Mode, fn: Callable, args: PyTree) -> PyTree:
    arrays, rest = eqx.partition(args, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, np.ndarray))
    leaves, structure = jax.tree.flatten(arrays)

    def flat(*leaves):
        return fn(*eqx.combine(jax.tree.unflatten(structure, leaves), rest))

    one = leaves
    if mode is _Mode.mapped:
        one = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in leaves]
    closed, shapes = jax.make_jaxpr(flat, return_shape=True)(*one)
    # Callbacks and named axes belong to the surrounding computation, which does not see into a primitive.
    bind = _as_usual if closed.effects else _primitive.bind
    out = bind(*closed.consts, *leaves, jaxpr=closed.jaxpr, mode=mode)
    return jax.tree.unflatten(jax.tree.structure(shapes), out)


def _evaluate(jaxpr, *operands: Array) -> list[Array]:
    split = len(jaxpr.constvars)
    return core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, operands[:split]))(*operands[split:])


def _as_usual(*operands, jaxpr, mode: _Mode) -> list[Array]:
    return mode.in_batch(partial(_evaluate, jaxpr), len(jaxpr.constvars), *operands)


def _in_kernel(*operands, jaxpr, mode: _Mode) -> list[Array]:
    def fn(words):
        # The compiler aborts on a parameter that nothing reads, hence one array for all of them, and an
        # output that depends on it whatever becomes of the others.
        inner = partial(evaluate_without_products, jaxpr)
        out = mode.one_after_the_other(inner, len(jaxpr.constvars), *unpack(words, operands))
        return words[:1], *out

    words = pack(operands)
    # Traced outside of the context below, which would mark every operation.
    traced = jax.make_jaxpr(fn)(words)
    with set_xla_metadata(xla_cpu_small_call="true", inlineable="false"):
        return jax.jit(core.jaxpr_as_fun(traced))(words)[1:]


@_primitive.def_impl
def _run(*operands, **params):
    if any(getattr(jax.config, switch) for switch in _OPERATION_BY_OPERATION):
        return _as_usual(*operands, **params)  # operation by operation, as these switches ask for
    return jax.jit(partial(_primitive.bind, **params))(*operands)


@_primitive.def_abstract_eval
def _abstract(*operands, jaxpr, mode):
    avals = [var.aval for var in jaxpr.outvars]
    if mode is _Mode.once:
        return avals
    length = operands[len(jaxpr.constvars)].shape[0]
    return [aval.update(shape=(length, *aval.shape)) for aval in avals]


def _batch(operands, axes, **params):
    out = single_kernel(jax.vmap(partial(_as_usual, **params), in_axes=list(axes)), *operands)
    return out, [0] * len(out)


def _jvp(primals, tangents, **params):
    tangents = tuple(ad.instantiate_zeros(t) for t in tangents)
    return jax.jvp(partial(_as_usual, **params), tuple(primals), tangents)


def _lower_for_cpu(context, *operands, **params):
    wanted = os.getenv("OPTDYN_SINGLE_KERNEL") != "0" and is_suitable(params["jaxpr"])
    wanted = wanted and _on_one_device(context.module_context.axis_context)
    fn = partial(_in_kernel if wanted else _as_usual, **params)
    return mlir.lower_fun(fn, multiple_results=True)(context, *operands)


def _on_one_device(axis_context) -> bool:
    """Whether no partitioner will put communication between devices into the kernel."""
    mesh = getattr(axis_context, "mesh", None)
    if mesh is None:
        return getattr(axis_context, "num_devices", 1) in (None, 1)
    return mesh.size == 1 or set(mesh.axis_names) == set(axis_context.manual_axes)


def _lower(context, *operands, **params):
    return mlir.lower_fun(partial(_as_usual, **params), multiple_results=True)(context, *operands)


batching.primitive_batchers[_primitive] = _batch
ad.primitive_jvps[_primitive] = _jvp
mlir.register_lowering(_primitive, _lower)
mlir.register_lowering(_primitive, _lower_for_cpu, platform="cpu")

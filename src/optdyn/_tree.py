"""Small helpers on pytrees and floats. No algorithm lives here."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun

from optdyn._typing import Array, PyTree


class TracedFunction(eqx.Module):
    """A Python function run once and kept as its jaxpr.

    Every later call replays the jaxpr, so the user's code is traced a single time however often a solver
    evaluates or differentiates it. Arrays that the function closed over are leaves of this module, hence
    inputs of whatever transformation the module passes through.
    """

    consts: list[Array]
    jaxpr: Any = eqx.field(static=True)
    in_tree: Any = eqx.field(static=True)
    out_tree: Any = eqx.field(static=True)

    def __call__(self, *args: PyTree) -> PyTree:
        leaves, in_tree = jax.tree.flatten(args)
        if in_tree != self.in_tree:
            raise TypeError(f"traced for arguments {self.in_tree}, called with {in_tree}")
        out = jaxpr_as_fun(ClosedJaxpr(self.jaxpr, self.consts))(*leaves)
        return jax.tree.unflatten(self.out_tree, out)


def trace_function(fn: Callable[..., PyTree], *args: PyTree) -> TracedFunction:
    """Run `fn` once on abstract copies of `args` (arrays or `jax.ShapeDtypeStruct`)."""
    closed, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)
    return TracedFunction(
        consts=list(closed.consts),
        jaxpr=merge_equal(closed.jaxpr),
        in_tree=jax.tree.structure(args),
        out_tree=jax.tree.structure(shapes),
    )


def merge_equal(jaxpr: Jaxpr) -> Jaxpr:
    """The same computation with equal equations evaluated once, and without those that nothing uses."""
    stands_for: dict[Var, Var | Literal] = {}
    seen: dict[Any, list[Var]] = {}
    kept = []

    def current(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else stands_for.get(atom, atom)

    for equation in jaxpr.eqns:
        equation = equation.replace(invars=[current(atom) for atom in equation.invars])
        key = _key(equation)
        if key is not None and key in seen:
            stands_for.update(zip(equation.outvars, seen[key], strict=True))
            continue
        if key is not None:
            seen[key] = equation.outvars
        kept.append(equation)
    outvars = [current(atom) for atom in jaxpr.outvars]
    needed, used = {v for v in outvars if not isinstance(v, Literal)}, []
    for equation in reversed(kept):
        if equation.effects or any(v in needed for v in equation.outvars):
            used.append(equation)
            needed.update(atom for atom in equation.invars if not isinstance(atom, Literal))
    return jaxpr.replace(eqns=used[::-1], outvars=outvars)


def _key(equation) -> Any:
    """Equal for equations that compute the same; None where that cannot be told."""
    if equation.effects:
        return None
    operands = tuple(
        (str(atom.aval), repr(atom.val)) if isinstance(atom, Literal) else atom for atom in equation.invars
    )
    params = tuple((name, equation.params[name]) for name in sorted(equation.params))
    key = (equation.primitive, operands, params)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def as_float_arrays(tree: PyTree) -> PyTree:
    """Python and NumPy numbers become JAX arrays of the default float type; everything else is kept.

    Without this a changed Python float would be a new constant, hence a new compilation.
    """

    def convert(leaf):
        if isinstance(leaf, bool) or leaf is None:
            return leaf
        if isinstance(leaf, float | int):
            return jnp.asarray(leaf, dtype=jnp.result_type(float))
        if eqx.is_array_like(leaf) and not isinstance(leaf, jax.Array):
            return jnp.asarray(leaf)
        return leaf

    return jax.tree.map(convert, tree)


def all_finite(tree: PyTree) -> Array:
    """True when no inexact leaf contains NaN or infinity (scalar bool)."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)]
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in leaves]
    return jnp.all(jnp.stack(finite)) if finite else jnp.asarray(True)


def max_abs(array: Array) -> Array:
    """Infinity norm; 0 for an empty array (a plain `jnp.max` would raise)."""
    return jnp.max(jnp.abs(array), initial=0.0)


def tree_where(pred: Array, on_true: PyTree, on_false: PyTree) -> PyTree:
    """Leaf-wise `jnp.where` of two pytrees of one structure."""
    return jax.tree.map(lambda a, b: jnp.where(pred, a, b), on_true, on_false)


def write_row(rows: Array, index: Array, row: Array) -> Array:
    """`rows.at[index].set(row)` by selection: in a batch that stays elementwise, where a scatter does not."""
    chosen = (jnp.arange(rows.shape[0]) == index).reshape(-1, *(1,) * (rows.ndim - 1))
    return jnp.where(chosen, row[None], rows)


def stop_gradient(tree: PyTree) -> PyTree:
    """No derivative information in any array of the tree.

    Integers and booleans that come out of a custom rule carry a tangent of type float0, which runtime
    checks cannot digest; a round trip through a float drops it.
    """

    def stop(x):
        if eqx.is_inexact_array(x):
            return jax.lax.stop_gradient(x)
        if eqx.is_array(x):
            return jax.lax.stop_gradient(x.astype(jnp.float32)).astype(x.dtype)
        return x

    return jax.tree.map(stop, tree)

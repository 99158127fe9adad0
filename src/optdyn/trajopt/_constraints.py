"""Equality and inequality constraints of a trajectory."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._tree import TracedFunction, trace_function
from optdyn._typing import Array, Bool, Float


class Equality(eqx.Module):
    """`fn = 0`; `fn(x, u, t)` on stages, `fn(x)` at the end; returns a vector."""

    fn: Callable[..., Float[Array, " k"]]


class Inequality(eqx.Module):
    """`fn <= 0`; `fn(x, u, t)` on stages, `fn(x)` at the end; returns a vector."""

    fn: Callable[..., Float[Array, " k"]]


class ConstraintSet(eqx.Module):
    """All constraints of one kind of knot, stacked: `c_i = 0`, or `c_i <= 0` where `inequality[i]`."""

    fn: Callable[..., Float[Array, " k"]]
    inequality: tuple[bool, ...] = eqx.field(static=True)

    def __call__(self, *args) -> Float[Array, " k"]:
        return self.fn(*args)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.inequality)

    def mask(self, c: Float[Array, "*b k"]) -> Bool[np.ndarray, "*b k"]:
        """Which entries of `c` belong to inequalities."""
        return np.broadcast_to(np.asarray(self.inequality, dtype=bool), c.shape)

    def violation(self, c: Float[Array, "*b k"]) -> Float[Array, "*b k"]:
        """`|c|` for equalities, `max(0, c)` for inequalities."""
        return jnp.where(self.mask(c), jnp.maximum(c, 0), jnp.abs(c))


def stack_constraints(constraints, bounds: tuple | None, args: tuple, name: str) -> ConstraintSet:
    """One `ConstraintSet` from what the user gave: None, one constraint or several, and control bounds.

    Infinite control bounds are absent.
    """
    if constraints is None:
        given = ()
    elif isinstance(constraints, Equality | Inequality):
        given = (constraints,)
    else:
        given = tuple(constraints) if isinstance(constraints, list | tuple) else (constraints,)
    for constraint in given:
        if not isinstance(constraint, Equality | Inequality):
            raise TypeError(
                f"{name} takes Equality(fn) or Inequality(fn), or several, got {type(constraint).__name__}"
            )
    mask: list[bool] = []
    traced: list[TracedFunction] = []
    for constraint in given:
        traced.append(trace_function(constraint.fn, *args))
        shape = jax.eval_shape(traced[-1], *args).shape
        if len(shape) != 1:
            raise ValueError(f"{name}: a constraint must return a vector, got shape {shape}")
        mask += [isinstance(constraint, Inequality)] * shape[0]
    lower_rows, upper_rows = _finite_rows(bounds)
    mask += [True] * (len(lower_rows) + len(upper_rows))

    def fn(*args):
        parts = [fn(*args) for fn in traced]
        if bounds is not None:
            u = args[1]
            parts += [(bounds[0] - u)[lower_rows], (u - bounds[1])[upper_rows]]
        dtype = args[0].dtype
        return (
            jnp.concatenate([jnp.asarray(p).astype(dtype) for p in parts]) if parts else jnp.zeros(0, dtype)
        )

    return ConstraintSet(fn, tuple(mask))


def _finite_rows(bounds) -> tuple[np.ndarray, np.ndarray]:
    if bounds is None:
        return np.zeros(0, int), np.zeros(0, int)
    lower, upper = (np.asarray(b) for b in bounds)
    return np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))

"""Derivatives by differences."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np


def central(fn, x, step=1e-4):
    """Jacobian of `fn` at the vector `x`, from five points: the error is of fourth order in `step`."""
    columns = []
    for e in step * np.eye(x.size):
        near = np.asarray(fn(x + e)) - np.asarray(fn(x - e))
        far = np.asarray(fn(x + 2 * e)) - np.asarray(fn(x - 2 * e))
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, axis=-1)


def relative_error(value, reference):
    return np.abs(np.asarray(value) - reference).max() / np.abs(reference).max()


def check_step_derivatives(dynamics, t, q, v, u, h, steps=(1e-5, 1e-5), tolerance=1e-5):
    """A and B of a step from (q - h v, q) against central differences by state and control."""
    x, u = np.concatenate([np.subtract(q, h * np.asarray(v)), q]), np.asarray(u, dtype=float)
    step = eqx.filter_jit(dynamics.step)
    local = eqx.filter_jit(dynamics.sensitivities)(jnp.asarray(x), jnp.asarray(u), t)
    by_state = central(lambda x: step(jnp.asarray(x), jnp.asarray(u), t), x, steps[0])
    by_control = central(lambda u: step(jnp.asarray(x), jnp.asarray(u), t), u, steps[1])
    assert relative_error(local.A, by_state) <= tolerance
    assert relative_error(local.B, by_control) <= tolerance

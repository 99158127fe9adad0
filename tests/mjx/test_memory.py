"""What reverse mode keeps, from shapes alone, and what the compiler needs, from its own analysis."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import optdyn.mjx as om
from helpers import mjx_models


def model(contacts, iterations, method: Any = "implicit"):
    dynamics = om.MJXDynamics(
        mjx_models.studded_body(contacts, iterations),
        solve=om.ContactSolve(method),
        checkpoint=False,
        iterations=iterations,
    )
    return dynamics, jnp.zeros(13).at[2:4].set(jnp.array([0.0195, 1.0]))


def saved_bytes(contacts, iterations, method="implicit"):
    """Bytes between the forward and the reverse pass of one step; traced only, nothing is compiled."""
    dynamics, x = model(contacts, iterations, method)

    def pullback(x):
        return jax.vjp(lambda x: dynamics.step(x, jnp.zeros(0), jnp.asarray(0)), x)[1]

    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(pullback, x)))


def compiled_bytes(contacts, iterations, method="implicit"):
    """Temporary bytes of the compiled gradient of one step."""
    dynamics, x = model(contacts, iterations, method)

    def loss(x):
        return jnp.sum(dynamics.step(x, jnp.zeros(0), jnp.asarray(0)) ** 2)

    analysis: Any = jax.jit(jax.grad(loss)).lower(x).compile().memory_analysis()
    return analysis.temp_size_in_bytes


def test_saved_bytes_do_not_depend_on_the_iterations():
    assert saved_bytes(4, 10) == saved_bytes(4, 1)


def test_unrolled_saves_more_with_each_iteration():
    one, ten = saved_bytes(4, 1, "unrolled"), saved_bytes(4, 10, "unrolled")
    assert ten > 5 * one
    assert ten > 10 * saved_bytes(4, 10)  # of a whole step, most of which is not the solver


@pytest.mark.slow
def test_compiled_bytes_hardly_depend_on_the_iterations():
    assert compiled_bytes(16, 10) <= 1.04 * compiled_bytes(16, 1)


@pytest.mark.slow
def test_unrolled_needs_much_more_at_many_contacts():
    # 17.6 times was measured in 64-bit, the residual that a step reports included; the paper says 20.
    assert compiled_bytes(256, 10, "unrolled") >= 15 * compiled_bytes(256, 10)

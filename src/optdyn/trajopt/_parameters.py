"""Shared parameters: numbers that are optimized together with the controls, such as a free initial state.

They ride along as a part of the state that no step changes, so the feedback law and the Riccati recursion
need nothing new; only the start of the horizon differs, where they are free.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.dynamics import AbstractDynamics, Linearization


class WithParameters(AbstractDynamics):
    """`dynamics` with the state (x, p); p stays what it is."""

    inner: AbstractDynamics
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)

    def __init__(self, inner: AbstractDynamics, num_parameters: int):
        self.inner = inner
        self.state_dim = inner.state_dim + num_parameters
        self.control_dim = inner.control_dim

    @property
    def state_space(self):
        """That of x: parameters are Euclidean, and come last."""
        return self.inner.state_space

    def step(self, x, u, t):
        x, p = self.split(x)
        return jnp.concatenate([self.inner.step(x, u, t), p])

    def advance(self, x, u, t, warm=None):
        x, p = self.split(x)
        x_next, info = self.inner.advance(x, u, t, warm)
        return jnp.concatenate([x_next, p]), info

    def first_guess(self, x, u, t):
        return self.inner.first_guess(self.split(x)[0], u, t)

    def sensitivities(self, x, u, t, warm=None, smoothing=None):
        x, p = self.split(x)
        local = self.inner.sensitivities(x, u, t, warm, smoothing)
        A = jax.scipy.linalg.block_diag(local.A, jnp.eye(p.size, dtype=x.dtype))
        B = jnp.concatenate([local.B, jnp.zeros((p.size, u.size), x.dtype)])
        return Linearization(A, B, local.info, local.solves)

    def split(self, x: Float[Array, "*b ny"]) -> tuple[Array, Array]:
        """(x, p) from the state with parameters."""
        return x[..., : self.inner.state_dim], x[..., self.inner.state_dim :]


class FreeStart(eqx.Module):
    """`x_0 = initial_state(p)`, and what p costs."""

    dynamics: WithParameters
    initial_state: Callable[[Array], Array]
    cost: Callable[[Array], Array]  # of the parameters themselves

    def state(self, p: Float[Array, " np"]) -> Float[Array, " ny"]:
        """The first state with parameters."""
        return jnp.concatenate([self.initial_state(p), p])

    def tangent(self, p: Float[Array, " np"]) -> Float[Array, "ndy np"]:
        """Derivative of `state` by p, in tangent coordinates."""
        here = self.state(p)
        return jax.jacfwd(lambda p: self.dynamics.state_space.difference(self.state(p), here))(p)

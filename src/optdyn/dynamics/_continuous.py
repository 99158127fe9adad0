"""Continuous-time vector fields made discrete."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import trace_function
from optdyn._typing import Array, PyTree
from optdyn.dynamics._base import (
    AbstractDynamics,
    Linearization,
    StepInfo,
    check_dims,
    check_next_state,
    tangent_jacobians,
)


class AbstractIntegrator(eqx.Module):
    """One step of length dt of xdot = field(x, u, t), with u held constant."""

    @abc.abstractmethod
    def step(self, field, x: Array, u: Array, t: Array, dt: Array) -> tuple[Array, StepInfo]:
        """(x_next, information)."""


def _explicit(x: Array) -> StepInfo:
    return StepInfo(RESULTS.successful, jnp.asarray(0), jnp.zeros((), x.dtype))


class Euler(AbstractIntegrator):
    """Explicit Euler, order 1."""

    def step(self, field, x, u, t, dt):
        return x + dt * field(x, u, t), _explicit(x)


class Midpoint(AbstractIntegrator):
    """Explicit midpoint rule, order 2."""

    def step(self, field, x, u, t, dt):
        return x + dt * field(x + dt / 2 * field(x, u, t), u, t), _explicit(x)


class RK4(AbstractIntegrator):
    """Classical Runge-Kutta method, order 4."""

    def step(self, field, x, u, t, dt):
        # A scan over the stages: the field is compiled once instead of four times.
        nodes = jnp.asarray([0.0, 0.5, 0.5, 1.0], x.dtype)
        weights = jnp.asarray([1.0, 2.0, 2.0, 1.0], x.dtype) / 6

        def stage(carry, coefficients):
            slope, total = carry
            node, weight = coefficients
            slope = field(x + node * dt * slope, u, t)
            return (slope, total + weight * slope), None

        (_, total), _ = jax.lax.scan(stage, (jnp.zeros_like(x), jnp.zeros_like(x)), (nodes, weights))
        return x + dt * total, _explicit(x)


class ImplicitMidpoint(AbstractIntegrator):
    """Implicit midpoint rule, order 2, symplectic: x_next = x + dt field((x + x_next) / 2, u).

    Solved by optimistix' Newton method and differentiated by the implicit function theorem.
    """

    rtol: float = eqx.field(static=True, default=1e-12)
    atol: float = eqx.field(static=True, default=1e-12)
    max_steps: int = eqx.field(static=True, default=20)

    def step(self, field, x, u, t, dt):
        import optimistix as optx  # slow to import, and needed only here

        def residual(y, args):
            x, u, t, dt = args
            return y - x - dt * field((x + y) / 2, u, t)

        floor = 64 * float(jnp.finfo(x.dtype).eps)
        newton = optx.Newton(rtol=max(self.rtol, floor), atol=max(self.atol, floor))
        guess = jax.lax.stop_gradient(x + dt * field(x, u, t))
        out = optx.root_find(residual, newton, guess, (x, u, t, dt), max_steps=self.max_steps, throw=False)
        ok = out.result == optx.RESULTS.successful
        result = RESULTS.where(ok, RESULTS.successful, RESULTS.max_steps_reached)
        error = jnp.max(jnp.abs(residual(out.value, (x, u, t, dt))), initial=0.0)
        return out.value, StepInfo(result, out.stats["num_steps"], jax.lax.stop_gradient(error))


class ContinuousDynamics(AbstractDynamics):
    """`xdot = field(x, u, t)` advanced by `integrator` over `dt` seconds, the control held constant.

    Arguments:
        field: function of (x [state_dim], u [control_dim], t stage index) returning xdot [state_dim].
        integrator: `Euler()`, `Midpoint()`, `RK4()` or `ImplicitMidpoint()`.
        dt: length of a step in seconds.
    """

    field: PyTree
    integrator: AbstractIntegrator
    dt: Array
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)

    def __init__(self, field, integrator: AbstractIntegrator, dt, state_dim: int, control_dim: int):
        check_dims(state_dim, control_dim)
        if isinstance(dt, float | int) and not dt > 0:
            raise ValueError(f"dt must be positive, got {dt}")
        self.field, self.integrator = field, integrator
        self.dt = jnp.asarray(dt, jnp.result_type(float)) if isinstance(dt, float | int) else dt
        self.state_dim, self.control_dim = state_dim, control_dim

    def step(self, x, u, t):
        return self._advance(x, u, t)[0]

    def advance(self, x, u, t, warm=None):
        return self._advance(x, u, t)

    def sensitivities(self, x, u, t, warm=None, smoothing=None):
        return Linearization(*tangent_jacobians(self.state_space, lambda x, u: self._advance(x, u, t), x, u))

    def _advance(self, x, u, t):
        x_next, info = self.integrator.step(self.field, x, u, t, self.dt.astype(x.dtype))
        return check_next_state(x_next, x), info

    def traced(self, x, u, t):
        return eqx.tree_at(lambda d: d.field, self, trace_function(self.field, x, u, t))

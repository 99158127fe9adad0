"""Friction as a block: a puck on a floor, whose step has a closed form, and arguments."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.differences import central, relative_error
from optdyn.dynamics import Friction, Mechanism, frictional_dynamics

H, MASS, GRAVITY, COEFFICIENT, KAPPA = 0.05, 2.0, 9.81, 0.3, 1e-8
T = jnp.asarray(0)

PUCK = Mechanism(
    kinetic_energy=lambda q, v: MASS * v @ v / 2,
    potential_energy=lambda q: MASS * GRAVITY * q[2],
    input_map=lambda q: jnp.eye(3),
    gap=lambda q: q[2:],
    num_positions=3,
    num_inputs=3,
    num_gaps=1,
)
FLOOR = Friction(
    slip=lambda q, v: v[:2],
    normal_impulse=lambda motion, gap_impulse: gap_impulse,
    coefficient=np.array([COEFFICIENT]),
    dims=(2,),
)


def puck(central_path=KAPPA, **settings):
    solver = od.InteriorPoint(central_path=central_path)
    return frictional_dynamics(PUCK, FLOOR, H, solver=solver, smoothing=None, **settings)


HARD = puck()
advance: Any = eqx.filter_jit(HARD.advance)


def expected(velocity, height, force):
    """Velocity after a step that ends on the floor, or in the air when it does not get there."""
    free = velocity + H * (force / MASS - np.array([0.0, 0.0, GRAVITY]))
    normal = max(0.0, -MASS * (free[2] + height / H))
    speed = np.linalg.norm(free[:2])
    slide = max(0.0, 1 - COEFFICIENT * normal / MASS / max(speed, 1e-12))
    return np.concatenate([slide * free[:2], [free[2] + normal / MASS]]), normal


@pytest.mark.parametrize(
    ("velocity", "height", "force"),
    [
        ([1.0, -0.5, 0.0], 0.0, [0.0, 0.0, 0.0]),  # slides
        ([0.05, 0.02, 0.0], 0.0, [0.0, 0.0, 0.0]),  # stops within the step
        ([0.0, 0.0, 0.0], 0.0, [3.0, 2.0, 0.0]),  # sticks under a push
        ([0.0, 0.0, 0.0], 0.0, [6.0, 4.0, 0.0]),  # breaks loose
        ([1.0, 0.0, -2.0], 0.05, [0.0, 0.0, 0.0]),  # lands, and the impact adds to friction
        ([1.0, 2.0, 0.0], 0.5, [0.0, 0.0, 0.0]),  # flies
    ],
)
def test_puck_moves_as_the_closed_form_says(velocity, height, force):
    velocity, force = np.array(velocity), np.array(force)
    q = np.array([0.0, 0.0, height])
    x_next, info = advance(jnp.asarray(np.concatenate([q - H * velocity, q])), jnp.asarray(force), T)
    assert od.result_name(info.result) == "successful"
    want, normal = expected(velocity, height, force)
    np.testing.assert_allclose((np.asarray(x_next)[3:] - q) / H, want, atol=1e-5)
    np.testing.assert_allclose(info.outputs["impulse"], [normal], atol=1e-5)
    np.testing.assert_allclose(
        info.outputs["friction_limit"], COEFFICIENT * info.outputs["impulse"], atol=1e-9
    )
    assert np.linalg.norm(info.outputs["friction_impulse"]) <= info.outputs["friction_limit"][0]


def test_derivative_by_the_coefficient():
    """v_next = v - mu g h along the slip."""
    x = jnp.asarray([-H, 0.0, 0.0, 0.0, 0.0, 0.0])

    def speed(coefficient):
        floor = eqx.tree_at(lambda f: f.coefficient, FLOOR, coefficient[None])
        solver = od.InteriorPoint(central_path=KAPPA)
        step = frictional_dynamics(PUCK, floor, H, solver=solver, smoothing=None).step
        return step(x, jnp.zeros(3), T)[3] / H

    slope = jax.jit(jax.grad(speed))(jnp.asarray(COEFFICIENT))
    assert float(slope) == pytest.approx(-GRAVITY * H, rel=1e-4)


@pytest.mark.slow
def test_derivative_of_a_sliding_step():
    dynamics = puck(central_path=1e-4)
    step = eqx.filter_jit(dynamics.step)
    local = eqx.filter_jit(dynamics.sensitivities)
    x, u = jnp.asarray([-0.04, 0.03, 0.002, 0.01, 0.02, 0.001]), jnp.asarray([1.0, 0.5, 0.2])
    found = local(x, u, T)
    assert relative_error(found.A, central(lambda x: step(jnp.asarray(x), u, T), np.asarray(x), 1e-6)) <= 1e-5
    assert relative_error(found.B, central(lambda u: step(x, jnp.asarray(u), T), np.asarray(u), 1e-6)) <= 1e-5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"h": 0.0}, "h must be positive, got 0.0"),
        ({"input_units": "newton"}, "input_units must be 'impulse' or 'force', got 'newton'"),
        ({"form": "exact"}, "form must be 'variational' or 'paper_compat', got 'exact'"),
        ({"contact_at": "middle"}, "contact_at must be 'end' or 'start', got 'middle'"),
    ],
)
def test_wrong_arguments_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        frictional_dynamics(PUCK, FLOOR, **{"h": H, **settings})


def test_coefficients_and_places_must_agree():
    with pytest.raises(ValueError, match=r"coefficient must have shape \(2,\), got \(1,\)"):
        Friction(slip=FLOOR.slip, normal_impulse=FLOOR.normal_impulse, coefficient=[0.3], dims=(1, 1))

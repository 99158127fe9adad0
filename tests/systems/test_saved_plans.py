"""Trajectories saved by the authors of the method, step by step: pushes and hopping gaits.

Their complementarity products are 1e-5, so the steps are repeated at that kappa; equations hold to 1e-8.
The pushes were made with the rounded block that is the default here. The gaits were made with another hopper
than the one published later: other masses, a point foot, no leg limits, friction as a polyhedral cone, the
direction of the leg's force at the middle of the step. It is written down below.
"""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.cones import NonnegativeOrthant
from optdyn.dynamics import ProgramDynamics
from optdyn.systems import _planar_push as push

DATA = json.loads((Path(__file__).parents[1] / "data" / "push_and_hopper_reference.json").read_text())
KAPPA = 1e-5
T = jnp.asarray(0)


def repeated(dynamics, states, controls):
    """States after every step from the saved state before it."""
    advance: Any = jax.jit(jax.vmap(dynamics.advance, (0, 0, None)))
    x_next, info = advance(jnp.asarray(states[:-1]), jnp.asarray(controls), T)
    assert np.all(np.asarray(info.result == od.RESULTS.successful))
    return np.asarray(x_next)


def saved(name):
    return np.array(DATA[name]["states"]), np.array(DATA[name]["controls"])


@pytest.mark.parametrize("variant", ["translate", "rotate"])
def test_pushes(variant):
    states, controls = saved(f"planar_push_{variant}")
    found = repeated(push.dynamics(False, KAPPA, None), states, controls)
    assert np.abs(found - states[1:]).max() <= 1e-7


class EarlyHopper(od.AbstractComplementarityProblem):
    """w = q; duals: normal impulse, friction either way, and the multiplier of its limit (slip speed)."""

    cone: NonnegativeOrthant = NonnegativeOrthant(4)

    def equations(self, w, z, theta):
        q1, q2, h = theta["q1"], w, 0.05
        mass = jnp.asarray([3.3, 3.3, 0.825, 0.3])  # body and leg: 3 + 0.3 kg, 0.75 + 0.075 kg m^2, 0.3 kg
        pitch = (q1 + q2)[2] / 2
        leg = jnp.stack([-jnp.sin(pitch), jnp.cos(pitch), 0 * pitch, 1 + 0 * pitch])
        inputs = jnp.asarray([0.0, 0, 1, 0]) * theta["u"][0] + leg * theta["u"][1]
        weight = jnp.asarray([0.0, 3.3 * 9.81, 0, 0])
        contact = self.jacobian(q2).T @ jnp.stack([z[1] - z[2], z[0]])
        return mass * (2 * q1 - theta["q0"] - q2) / h - h * weight + inputs + contact

    def slack(self, w, z, theta):
        slip = (self.jacobian(w) @ (w - theta["q1"]))[0] / 0.05
        height = w[1] - w[3] * jnp.cos(w[2])
        return jnp.stack([height, z[3] + slip, z[3] - slip, 0.8 * z[0] - z[1] - z[2]])

    @staticmethod
    def jacobian(q):
        s, c = jnp.sin(q[2]), jnp.cos(q[2])
        return jnp.array([[1.0, 0, q[3] * c, s], [0, 1, q[3] * s, -c]])


@pytest.fixture(scope="module")
def early_hopper():
    return ProgramDynamics(
        EarlyHopper(),
        parameters=lambda x, u, t: {"q0": x[:4], "q1": x[4:], "u": u},
        guess=lambda x, u, t: x[4:],
        next_state=lambda x, u, t, w, z: jnp.concatenate([x[4:], w]),
        state_dim=8,
        control_dim=2,
        solver=od.InteriorPoint(central_path=KAPPA),
        smoothing=None,
    )


@pytest.mark.parametrize("gait", [1, 2, 3])
def test_gaits(gait, early_hopper):
    states, controls = saved(f"hopper_gait_{gait}")
    found = repeated(early_hopper, states, controls)
    # The first step starts from a free state, which these data do not hold.
    assert np.abs(found - states[1:])[1:].max() <= 2e-7

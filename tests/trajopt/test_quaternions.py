"""Planning where a part of the state is a unit quaternion."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import optdyn as od
from optdyn.dynamics import DiscreteDynamics, StateSpace
from optdyn.trajopt import Equality

SPACE = StateSpace(quaternions=(0,))
STEP, N = 0.1, 8
DYNAMICS = DiscreteDynamics(lambda x, u, t: SPACE.retract(x, STEP * u), 4, 3, state_space=SPACE)


def quaternion(rotation_vector):
    return jnp.asarray(Rotation.from_rotvec(rotation_vector).as_quat(scalar_first=True))


@pytest.fixture(scope="module")
def turn():
    """The way from one attitude to another at the least square of the rate."""
    start, goal = quaternion([0.3, -0.2, 0.5]), quaternion([-1.5, 1.0, 0.8])
    problem = od.TrajectoryProblem(
        DYNAMICS,
        N,
        lambda x, u, t: jnp.sum(u**2) / 2,
        lambda x: jnp.zeros((), x.dtype),
        terminal_constraint=Equality(lambda x: SPACE.difference(x, goal)),
    )
    solver = od.AugmentedLagrangian(od.ILQR(cost_tol=1e-12), constraint_tol=1e-9)
    guess = 0.1 * np.random.default_rng(0).normal(size=(N, 3))
    return start, goal, od.optimize_trajectory(problem, start, jnp.asarray(guess), solver=solver)


def test_the_shortest_turn_has_a_constant_rate(turn):
    start, goal, plan = turn
    rate = SPACE.difference(goal, start) / (N * STEP)
    np.testing.assert_allclose(plan.controls, np.tile(rate, (N, 1)), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(plan.states, axis=1), 1, atol=1e-12)


def test_gains_and_value_are_in_tangent_coordinates(turn):
    _, _, plan = turn
    assert plan.gains.shape == (N, 3, 3)
    assert plan.value_gradient.shape == (3,)
    assert plan.value_hessian.shape == (3, 3)
    # The rate of the plan is the derivative of its cost by the first attitude, with the sign of a way to go.
    np.testing.assert_allclose(plan.value_gradient, -plan.controls[0] / STEP, rtol=1e-3)

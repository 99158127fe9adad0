"""Closed loops: the model itself, another module, MuJoCo's C engine, batches."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn import mpc
from optdyn.dynamics import DiscreteDynamics
from optdyn.mpc import DIALMPC, GaussNewtonMPC, MuJoCoPlant, simulate
from optdyn.systems import _sliding_block as block
from optdyn.trajopt import ControlSpline, ResidualCost, SingleShooting

closed_loop: Any = mpc.closed_loop  # lists and NumPy arrays are welcome too
DT = 0.1


class Cart(eqx.Module):
    mass: jax.Array

    def __call__(self, x, u, t):
        v = x[1] + DT * u[0] / self.mass
        return jnp.stack([x[0] + DT * v, v])


class Distance(eqx.Module):
    goal: jax.Array

    def __call__(self, x, u, t):
        return jnp.stack([x[0] - self.goal, 0.3 * x[1], 0.05 * u[0]])


class LastDistance(eqx.Module):
    goal: jax.Array

    def __call__(self, x):
        return 5 * jnp.stack([x[0] - self.goal, x[1]])


def cart(mass):
    return DiscreteDynamics(Cart(jnp.asarray(mass)), 2, 1)


def task(goal=1.0):
    goal = jnp.asarray(goal)
    problem = od.TrajectoryProblem(
        cart(1.0),
        12,
        ResidualCost(Distance(goal)),
        ResidualCost(LastDistance(goal)),
        control_bounds=(-5.0, 5.0),
    )
    return SingleShooting(problem, ControlSpline(5))


@pytest.mark.parametrize("mass", [1.0, 1.6])
def test_gauss_newton_reaches_the_goal_in_its_model_and_in_another(mass):
    seen = []
    episode = closed_loop(
        GaussNewtonMPC(), task(), cart(mass), [0.0, 0.0], 40, callback=lambda k, report, s: seen.append(k)
    )
    assert episode.completed
    np.testing.assert_allclose(episode.states[-1], [1.0, 0.0], atol=0.02)
    assert episode.states.shape == (41, 2)
    assert np.abs(episode.controls).max() <= 5.0
    assert seen == list(range(40))
    # What is recorded: a time and a result for each step, and the cost in the states that were measured.
    assert episode.seconds.shape == (40,)
    assert np.all(episode.seconds > 0)
    assert set(episode.results) <= {"successful", "max_steps_reached"}
    r = np.stack([episode.states[:-1, 0] - 1, 0.3 * episode.states[:-1, 1], 0.05 * episode.controls[:, 0]])
    np.testing.assert_allclose(episode.stage_costs, np.sum(r**2, axis=0) / 2, atol=1e-12)
    assert episode.cost == pytest.approx(np.sum(r**2) / 2)
    # The plant is the one that was given.
    v = episode.states[:-1, 1] + DT * episode.controls[:, 0] / mass
    np.testing.assert_allclose(episode.states[1:, 1], v, atol=1e-12)


def test_a_goal_that_moves():
    episode = closed_loop(
        GaussNewtonMPC(), lambda k: task(1.0 if k < 25 else -0.5), cart(1.0), [0.0, 0.0], 60
    )
    np.testing.assert_allclose(episode.states[25, 0], 1.0, atol=0.05)
    np.testing.assert_allclose(episode.states[-1, 0], -0.5, atol=0.05)


def test_dial_gets_there_too():
    episode = closed_loop(DIALMPC(3.0, num_samples=64), task(), cart(1.0), [0.0, 0.0], 40)
    np.testing.assert_allclose(episode.states[-1], [1.0, 0.0], atol=0.15)


def test_batch_of_environments_as_one_program():
    starts = jnp.asarray([[0.0, 0.0], [2.0, 0.0], [0.5, -1.0]])

    @jax.jit
    def run(starts):
        return jax.vmap(lambda x0: simulate(GaussNewtonMPC(), task(), cart(1.6), x0, 20))(starts)

    batch = run(starts)
    assert batch.states.shape == (3, 21, 2)
    one = closed_loop(GaussNewtonMPC(), task(), cart(1.6), starts[1], 20)
    np.testing.assert_allclose(batch.states[1], one.states, atol=1e-8)
    np.testing.assert_allclose(batch.stage_costs[1], one.stage_costs, atol=1e-8)


def test_a_plant_that_fails_ends_the_episode():
    def step(x, u, t):
        return jnp.where(x[0] > 0.5, jnp.nan, Cart(jnp.asarray(1.0))(x, u, t))

    episode = closed_loop(GaussNewtonMPC(), task(), DiscreteDynamics(step, 2, 1), [0.0, 0.0], 40)
    assert not episode.completed
    assert len(episode.controls) < 40
    assert episode.cost == np.inf


def test_through_a_program_with_friction():
    """Plan and plant are sliding blocks; the model's friction is off by a third."""
    problem = od.TrajectoryProblem(
        block.dynamics(0.15, smoothing=1e-3),
        10,
        ResidualCost(lambda x, u, t: jnp.stack([x[0] - 0.3, 0.1 * x[1], 0.01 * u[0]])),
        ResidualCost(lambda x: 5 * (x - jnp.asarray([0.3, 0.0]))),
        control_bounds=(-20.0, 20.0),
    )
    start = np.full((10, 1), 3.0)
    episode = closed_loop(
        GaussNewtonMPC(), SingleShooting(problem), block.dynamics(0.2), [0.0, 0.0], 25, controls=start
    )
    assert episode.completed
    assert abs(episode.states[-1, 0] - 0.3) < 0.05
    assert abs(episode.states[-1, 1]) < 0.2


SLIDER = """
<mujoco>
  <option timestep="0.02" gravity="0 0 0"/>
  <worldbody><body><joint name="rail" type="slide" axis="1 0 0" damping="0.1"/>
    <geom size="0.1" mass="1.2"/></body></worldbody>
  <actuator><motor joint="rail"/></actuator>
</mujoco>
"""


def test_mujoco_as_plant():
    pytest.importorskip("mujoco")
    plant = MuJoCoPlant(SLIDER, DT)
    episode = closed_loop(GaussNewtonMPC(), task(), plant, [0.0, 0.0], 40)
    assert episode.completed
    np.testing.assert_allclose(episode.states[-1], [1.0, 0.0], atol=0.03)
    # A second episode begins where it is told to.
    plant.reset(np.array([0.3, 0.0]))
    np.testing.assert_allclose(plant.step(np.zeros(1), 0), [0.3, 0.0])
    with pytest.raises(ValueError, match="no multiple of the time step"):
        MuJoCoPlant(SLIDER, 0.05)


def test_messages():
    with pytest.raises(TypeError, match="controller must be"):
        closed_loop(None, task(), cart(1.0), [0.0, 0.0], 3)
    with pytest.raises(TypeError, match="plant must be"):
        closed_loop(GaussNewtonMPC(), task(), None, [0.0, 0.0], 3)
    with pytest.raises(ValueError, match="steps must be at least 1"):
        closed_loop(GaussNewtonMPC(), task(), cart(1.0), [0.0, 0.0], 0)
    with pytest.raises(ValueError, match="x0 must have shape"):
        closed_loop(GaussNewtonMPC(), task(), cart(1.0), [0.0], 3)

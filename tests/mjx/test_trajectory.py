"""A trajectory through contact: a finger of one joint pushes a puck to a place, and the C engine agrees."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import optdyn as od
import optdyn.mjx as om

PUSH = """<mujoco><option timestep="0.01" integrator="implicitfast"
 iterations="20" ls_iterations="20" tolerance="1e-12"/>
<default><geom type="sphere" size="0.05" condim="1" solimp="0 0.9 0.01"/>
 <joint type="slide" axis="1 0 0"/></default>
<worldbody>
 <body><joint name="finger" damping="1"/><geom mass="0.5"/></body>
 <body pos="0.1 0 0"><joint name="puck" damping="2"/><geom mass="0.2"/></body>
</worldbody>
<actuator><motor joint="finger" ctrlrange="-5 5" ctrllimited="true"/></actuator></mujoco>"""
GOAL, HORIZON = 0.15, 20


class Cost(eqx.Module):
    weight: float

    def __call__(self, x, u, t):
        return self.weight * jnp.sum(u**2)


class Terminal(eqx.Module):
    def __call__(self, x):
        return 100 * (x[1] - GOAL) ** 2 + 0.1 * jnp.sum(x[2:] ** 2)


def test_a_puck_is_pushed_to_its_goal():
    dynamics = om.MJXDynamics(PUSH, substeps=3)
    problem = od.TrajectoryProblem(dynamics, HORIZON, Cost(1e-4), Terminal())
    controls = jnp.full((HORIZON, 1), 0.2)
    plan = od.optimize_trajectory(problem, dynamics.state([0.0, 0.0]), controls, solver=od.ILQR())
    assert plan.result == od.RESULTS.successful
    assert abs(plan.states[-1, 1] - GOAL) < 0.01
    again = om.replay(dynamics, plan.states[0], plan.controls)
    np.testing.assert_allclose(plan.states, again, rtol=0, atol=om.REPLAY_TOLERANCE)

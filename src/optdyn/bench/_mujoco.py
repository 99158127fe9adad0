"""The acrobot in MuJoCo's C engine, differentiated by central differences.

The same links, damping, motor and limits; joint limits are MuJoCo's, which are soft. A step of 0.05 s is five
Runge-Kutta steps of 0.01 s. The state is (angles, rates), so velocities in the cost are rates. The engine is
called back on the host from compiled code: once per step of a rollout, once for all differences.
"""

import importlib
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn.bench._plans import measure_plans, with_smoothing
from optdyn.dynamics import AbstractDynamics, Linearization
from optdyn.dynamics._base import no_lower_level
from optdyn.systems import _acrobot as acrobot
from optdyn.systems._scenario import Scenario
from optdyn.trajopt import Equality, Plan, TrajectoryProblem

SUBSTEPS = 5
DIFFERENCE = 1e-6  # rad, rad/s, N m s
_LINK = acrobot.INERTIA - acrobot.MASS * acrobot.CENTER**2  # kg m^2, about the centre of mass

MODEL = f"""
<mujoco>
  <compiler angle="radian"/>
  <option timestep="{acrobot.STEP / SUBSTEPS}" integrator="RK4" gravity="0 0 -{acrobot.GRAVITY}"/>
  <default>
    <joint type="hinge" axis="0 -1 0" damping="{acrobot.DAMPING}"/>
    <geom type="capsule" size="0.02" contype="0" conaffinity="0" mass="0"/>
  </default>
  <worldbody>
    <body>
      <joint name="shoulder"/>
      <inertial pos="0 0 -{acrobot.CENTER}" mass="{acrobot.MASS}" diaginertia="{_LINK} {_LINK} 0.001"/>
      <geom fromto="0 0 0 0 0 -{acrobot.LENGTH}"/>
      <body pos="0 0 -{acrobot.LENGTH}">
        <joint name="elbow" limited="{{limited}}" range="-{acrobot.LIMIT} {acrobot.LIMIT}"/>
        <inertial pos="0 0 -{acrobot.CENTER}" mass="{acrobot.MASS}" diaginertia="{_LINK} {_LINK} 0.001"/>
        <geom fromto="0 0 0 0 0 -{acrobot.LENGTH}"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="elbow"/></actuator>
</mujoco>
"""


def _ignore(message) -> None:
    pass


@lru_cache(maxsize=2)
def _engine(limited: bool) -> tuple[Any, Any, Any]:
    mujoco: Any = importlib.import_module("mujoco")
    rollout = importlib.import_module("mujoco.rollout")
    mujoco.set_mju_user_warning(_ignore)  # its own handler prints, and writes a file into the current folder
    model = mujoco.MjModel.from_xml_string(MODEL.format(limited="true" if limited else "false"))
    return rollout, model, mujoco.MjData(model)


def simulate(limited: bool, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """States [n, 4] after one step, from states [n, 4] and impulses of the motor [n, 1] in N m s.

    All of them in one call of the engine; NaN where it blows up.
    """
    rollout, model, data = _engine(limited)
    start = np.concatenate([np.zeros((len(x), 1)), x], axis=1)  # time, angles, rates
    torque = np.repeat((u / acrobot.STEP)[:, None], SUBSTEPS, axis=1)
    last = rollout.rollout(model, data, start, torque)[0][:, -1]
    complete = last[:, :1] > acrobot.STEP * (1 - 0.5 / SUBSTEPS)  # the engine starts again where it blows up
    return np.where(complete, last[:, 1:], np.nan)


def differences(limited: bool, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Central differences [n, 4, 5] of `simulate` by state [n, 4] and control [n, 1]."""
    d = DIFFERENCE * np.concatenate([np.eye(5), -np.eye(5)])
    ends = simulate(
        limited,
        (x[:, None] + d[:, :4]).reshape(-1, 4),
        (u[:, None] + d[:, 4:]).reshape(-1, 1),
    ).reshape(-1, 2, 5, 4)
    return np.swapaxes((ends[:, 0] - ends[:, 1]) / (2 * DIFFERENCE), 1, 2)


class MuJoCoAcrobot(AbstractDynamics):
    """Steps and derivatives from the C engine, called back on the host."""

    limited: bool = eqx.field(static=True)
    state_dim: int = eqx.field(static=True, default=4)
    control_dim: int = eqx.field(static=True, default=1)

    def step(self, x, u, t):
        return self._call(simulate, (4,), x, u)

    def sensitivities(self, x, u, t, warm=None, smoothing=None):
        slopes = self._call(differences, (4, 5), x, u)
        return Linearization(slopes[:, :4], slopes[:, 4:], no_lower_level(x.dtype))

    def _call(self, function, shape, x, u):
        def host(x, u):
            batch = np.broadcast_shapes(x.shape[:-1], u.shape[:-1])
            x_rows, u_rows = (
                np.broadcast_to(np.asarray(a, float), (*batch, a.shape[-1])).reshape(-1, a.shape[-1])
                for a in (x, u)
            )
            return function(self.limited, x_rows, u_rows).reshape(*batch, *shape).astype(x.dtype)

        out = jax.ShapeDtypeStruct(shape, x.dtype)
        return jax.pure_callback(host, out, x, u, vmap_method="broadcast_all")


def _stage_cost(x, u, t):
    return 0.05 * jnp.sum(x[2:] ** 2) + 0.5 * jnp.sum(u**2)


def _terminal_cost(x):
    return 0.05 * jnp.sum(x[2:] ** 2)


def _distance_to_goal(x):
    """As the scenario has it: the last angles and those one step before."""
    off = x[:2] - jnp.asarray(acrobot.GOAL[:2], x.dtype)
    return jnp.concatenate([off, off - acrobot.STEP * x[2:]])


def in_mujoco(scenario: Scenario):
    """The problem of the scenario on the engine's acrobot; both start at rest in zero."""
    problem = TrajectoryProblem(
        MuJoCoAcrobot(limited=scenario.variant.startswith("joint_limits")),
        scenario.problem.horizon,
        stage_cost=_stage_cost,
        terminal_cost=_terminal_cost,
        terminal_constraint=Equality(_distance_to_goal),
    )
    return problem, with_smoothing(scenario, None)[1]


def beyond_the_limit(plans: list[Plan]) -> dict[str, Any]:
    """How far the elbow goes beyond its limit, the most of all plans: the engine's limits give way."""
    reached = [float(np.abs(np.asarray(plan.states)[:, 1]).max()) for plan in plans]
    return {"beyond_limit_rad": max((max(0.0, most - acrobot.LIMIT) for most in reached), default=None)}


def measure_mujoco(variant: str, seeds: int) -> dict[str, Any]:
    """Plan the swing-up for seeds 0, 1, ..."""
    numbers = measure_plans("acrobot", variant, seeds, in_mujoco, beyond_the_limit)
    # The engine has no lower-level program of ours.
    return {**numbers, "lower_level_solves": None, "lower_level_failed": None}

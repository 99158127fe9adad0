"""The acrobot in MuJoCo's C engine, differentiated by central differences.

The same links, damping, motor and limits; joint limits are MuJoCo's, which are soft. A step of 0.05 s is five
Runge-Kutta steps of 0.01 s. The state is (angles, rates), so velocities in the cost are rates. The engine is
called back from compiled code.
"""

import importlib
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn.bench._plans import measure_plans
from optdyn.dynamics import AbstractDynamics, Linearization
from optdyn.dynamics._base import no_lower_level
from optdyn.systems import _acrobot as acrobot
from optdyn.systems._scenario import Scenario
from optdyn.trajopt import Equality, TrajectoryProblem

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
    mujoco.set_mju_user_warning(_ignore)  # its own handler prints, and writes a file into the current folder
    model = mujoco.MjModel.from_xml_string(MODEL.format(limited="true" if limited else "false"))
    return mujoco, model, mujoco.MjData(model)


def simulate(limited: bool, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """State [4] after one step, from a state and the impulse of the motor in N m s; NaN where it blows up."""
    mujoco, model, data = _engine(limited)
    mujoco.mj_resetData(model, data)
    data.qpos[:], data.qvel[:] = x[:2], x[2:]
    data.ctrl[:] = u / acrobot.STEP
    for _ in range(SUBSTEPS):
        mujoco.mj_step(model, data)
    if any(warning.number for warning in data.warning):  # the engine has reset the state by then
        return np.full(4, np.nan)
    return np.concatenate([data.qpos, data.qvel])


def differences(limited: bool, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Central differences of `simulate` by state and control [4, 5]."""
    columns = []
    for i in range(5):
        d = DIFFERENCE * np.eye(5)[i]
        high, low = (simulate(limited, x + s * d[:4], u + s * d[4:]) for s in (1.0, -1.0))
        columns.append((high - low) / (2 * DIFFERENCE))
    return np.stack(columns, axis=1)


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
            return function(self.limited, np.asarray(x, float), np.asarray(u, float)).astype(x.dtype)

        out = jax.ShapeDtypeStruct(shape, x.dtype)
        return jax.pure_callback(host, out, x, u, vmap_method="sequential")


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
    solver = eqx.tree_at(lambda s: s.smoothing, scenario.solver, None, is_leaf=lambda leaf: leaf is None)
    return problem, solver


def measure_mujoco(variant: str, seeds: int) -> dict[str, Any]:
    """Plan the swing-up for seeds 0, 1, ..."""
    numbers = measure_plans("acrobot", variant, seeds, in_mujoco)
    # The engine has no lower-level program of ours.
    return {**numbers, "lower_level_solves": None, "lower_level_failed": None}

"""MuJoCo models as dynamics: states in tangent coordinates, implicit derivatives of contact."""

import dataclasses
from os import PathLike

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._results import RESULTS
from optdyn._typing import Array, Float, PyTree
from optdyn.dynamics import AbstractDynamics, Linearization, StateSpace, StepInfo, tangent_jacobians
from optdyn.mjx._backend import Data, MjModel, Model, loose_rules, mjx, mujoco
from optdyn.mjx._model import compile_model, load_model
from optdyn.mjx._step import ContactSolve, forward, step


class MJXDynamics(AbstractDynamics):
    """One control step of a MuJoCo model: `substeps` steps of MJX under the same control.

    The state is (qpos, qvel, act), the control that of the actuators. Free and ball joints have unit
    quaternions; `linearize` works in tangent coordinates, 2 nv + na of them. `step` is differentiable in
    reverse mode by default (see `ContactSolve` and `ImplicitSolve`), `linearize` always uses forward mode.

    Arguments:
        source: path of an XML file, XML string, or `mujoco.MjModel`; see `load_model`.
        substeps: steps of MJX in one step of the dynamics.
        solve: how contact is solved and differentiated.
        residual_tol: a contact solve with a larger relative residual makes the step fail
            (`max_steps_reached`), because its derivative would be that of another point.
        checkpoint: recompute each substep in the reverse pass in place of storing it.
        options: of `load_model`: iterations, line_search_iterations, tolerance, timestep.

    Raises:
        FileNotFoundError: no such file.
        ValueError: MJX cannot run the model, or `substeps` is not positive.
    """

    model: Model
    reference: Data
    source_model: MjModel = eqx.field(static=True)
    solve: ContactSolve = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    residual_tol: float = eqx.field(static=True)
    checkpoint: bool = eqx.field(static=True)
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)
    state_space: StateSpace

    def __init__(
        self,
        source: str | PathLike | MjModel,
        substeps: int = 1,
        *,
        solve: ContactSolve | None = None,
        residual_tol: float = 1e-4,
        checkpoint: bool = True,
        **options,
    ):
        if substeps < 1:
            raise ValueError(f"substeps must be >= 1, got {substeps}")
        self.source_model = load_model(source, **options)
        with loose_rules():
            self.model, self.reference = compile_model(self.source_model)
        self.solve = ContactSolve() if solve is None else solve
        self.substeps, self.residual_tol, self.checkpoint = substeps, residual_tol, checkpoint
        self.state_dim = self.source_model.nq + self.source_model.nv + self.source_model.na
        self.control_dim = self.source_model.nu
        self.state_space = StateSpace(_quaternions(self.source_model))

    @property
    def dt(self) -> float:
        """Duration of one step in s."""
        return float(self.source_model.opt.timestep) * self.substeps

    @property
    def control_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest controls, infinite where the actuator has no range."""
        limited = self.source_model.actuator_ctrllimited.astype(bool)
        low, high = self.source_model.actuator_ctrlrange.T
        return np.where(limited, low, -np.inf), np.where(limited, high, np.inf)

    def step(self, x, u, t):
        return self.advance(x, u, t)[0]

    def advance(self, x, u, t, warm: PyTree = None):
        x_next, error = self._run(x, u, self.solve, self.checkpoint)
        return x_next, self._info(error)

    def sensitivities(self, x, u, t, warm: PyTree = None, smoothing=None):
        rule = dataclasses.replace(self.solve.rule, mode="forward")
        solve = dataclasses.replace(self.solve, rule=rule)
        A, B, error = tangent_jacobians(self.state_space, lambda x, u: self._run(x, u, solve, False), x, u)
        return Linearization(A, B, self._info(error))

    def _info(self, error: Array) -> StepInfo:
        converged = error <= self.residual_tol  # False for NaN
        result = RESULTS.where(converged, RESULTS.successful, RESULTS.max_steps_reached)
        return StepInfo(result, jnp.asarray(0), error)

    def _run(self, x: Array, u: Array, solve: ContactSolve, checkpoint: bool) -> tuple[Array, Array]:
        """The state after all substeps, and the largest relative residual of their contact solves."""
        d = self.data(x, u)
        space = StateSpace(self.state_space.quaternions)

        def substep(carry, _):
            qpos, qvel, act, warm, time, error = carry
            now = d.replace(qpos=qpos, qvel=qvel, act=act, qacc_warmstart=warm, time=time)
            d_next, found = step(self.model, now, solve, space)
            state = d_next.qpos, d_next.qvel, d_next.act, d_next.qacc_warmstart, d_next.time
            return (*state, jnp.maximum(error, found)), None

        if checkpoint:
            substep = jax.checkpoint(substep, prevent_cse=False)  # type: ignore[assignment]
        start = (d.qpos, d.qvel, d.act, d.qacc_warmstart, d.time, jnp.zeros((), d.qpos.dtype))
        with loose_rules():
            (qpos, qvel, act, _, _, error), _ = jax.lax.scan(substep, start, length=self.substeps)
        return jnp.concatenate([qpos, qvel, act]).astype(x.dtype), error

    def data(self, x: Float[Array, " nx"], u: Float[Array, " nu"] | None = None) -> Data:
        """MJX data with this state and control, nothing else computed yet."""
        nq, nv = self.source_model.nq, self.source_model.nv
        d, dtype = self.reference, self.reference.qpos.dtype
        x = x.astype(dtype)
        d = d.replace(qpos=x[:nq], qvel=x[nq : nq + nv], act=x[nq + nv :])
        return d if u is None else d.replace(ctrl=u.astype(dtype))

    def state(self, qpos, qvel=None, act=None) -> Float[Array, " nx"]:
        """A state from its parts; velocities and activations default to zero.

        Raises:
            ValueError: for wrong sizes.
        """
        model, parts = self.source_model, []
        for name, value, size in (("qpos", qpos, model.nq), ("qvel", qvel, model.nv), ("act", act, model.na)):
            array = np.zeros(size) if value is None else np.asarray(value, float)
            if array.shape != (size,):
                raise ValueError(f"{name} must have shape ({size},), got {array.shape}")
            parts.append(array)
        return jnp.asarray(np.concatenate(parts), self.reference.qpos.dtype)

    def keyframe(self, name: str) -> tuple[Float[Array, " nx"], Float[Array, " nu"]]:
        """State and control of a keyframe of the model."""
        key = self.source_model.key(self._index("key", name))
        return self.state(key.qpos, key.qvel, key.act), jnp.asarray(key.ctrl, self.reference.qpos.dtype)

    def site(self, x: Float[Array, " nx"], name: str) -> Float[Array, " 3"]:
        """Position of a site in the world, in m (differentiable)."""
        with loose_rules():
            return mjx.kinematics(self.model, self.data(x)).site_xpos[self._index("site", name)]

    def body(self, x: Float[Array, " nx"], name: str) -> Float[Array, " 3"]:
        """Position of a body's frame in the world, in m (differentiable)."""
        with loose_rules():
            return mjx.kinematics(self.model, self.data(x)).xpos[self._index("body", name)]

    def sensor(self, x: Float[Array, " nx"], u: Float[Array, " nu"], name: str) -> Float[Array, " k"]:
        """Reading of a sensor, in its own units (differentiable)."""
        at = self._index("sensor", name)
        first, size = int(self.source_model.sensor_adr[at]), int(self.source_model.sensor_dim[at])
        with loose_rules():
            d = forward(self.model, self.data(x, u), self.solve, sensors=True)
        return d.sensordata[first : first + size]

    def forces(self, x: Float[Array, " nx"], u: Float[Array, " nu"]) -> Float[Array, " nv"]:
        """Generalized forces of all constraints (contacts, limits, friction loss, equalities)."""
        with loose_rules():
            return forward(self.model, self.data(x, u), self.solve).qfrc_constraint

    def _index(self, kind: str, name: str) -> int:
        found = mujoco.mj_name2id(self.source_model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name)
        if found < 0:
            count = getattr(self.source_model, f"n{kind}")
            names = [getattr(self.source_model, kind)(i).name or "(unnamed)" for i in range(count)]
            raise ValueError(f"the model has no {kind} {name!r}; it has: {', '.join(names) or 'none'}")
        return found


def _quaternions(model: MjModel) -> tuple[int, ...]:
    """Where in the state quaternions start."""
    free, ball = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
    starts = []
    for kind, first in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        if kind in (free, ball):
            starts.append(int(first) + (3 if kind == free else 0))
    return tuple(starts)

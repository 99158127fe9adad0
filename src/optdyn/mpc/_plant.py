"""What a controller acts on."""

import abc
import importlib
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._results import RESULTS
from optdyn.dynamics import AbstractDynamics


class AbstractPlant(abc.ABC):
    """A system on the host, with a state of its own."""

    @abc.abstractmethod
    def reset(self, x: np.ndarray) -> None:
        """Put the system into the state x [nx]."""

    @abc.abstractmethod
    def step(self, u: np.ndarray, k: int) -> np.ndarray:
        """Apply u [nu] during step k = 0, 1, ..; the next state [nx], which is not finite after a failure."""


class ModulePlant(AbstractPlant):
    """Any dynamics module, such as the one that the controller plans with.

    A step whose lower-level solve fails ends in a state of NaN: its answer cannot be trusted.
    """

    def __init__(self, dynamics: AbstractDynamics):
        if not isinstance(dynamics, AbstractDynamics):
            raise TypeError(f"dynamics must be an AbstractDynamics, got {type(dynamics).__name__}")
        self.dynamics = dynamics
        self.x = jnp.zeros(dynamics.state_dim)

    def reset(self, x):
        self.x = jnp.asarray(x)

    def step(self, u, k):
        self.x = checked_step(self.dynamics, self.x, jnp.asarray(u), jnp.asarray(k))
        return np.asarray(self.x)


@eqx.filter_jit
def checked_step(dynamics: AbstractDynamics, x, u, k):
    """The next state; NaN where it could not be computed."""
    x_next, info = dynamics.advance(x, u, k)
    return jnp.where(info.result == RESULTS.successful, x_next, jnp.nan)


class MuJoCoPlant(AbstractPlant):
    """MuJoCo's C engine; the state is (qpos, qvel), the control `ctrl`.

    Arguments:
        model: path of a model file, or the model as a string of XML.
        dt: duration of a control step in s, a multiple of the model's time step.

    Raises:
        ImportError: if mujoco is not installed.
        ValueError: for a `dt` that is no multiple of the time step.
    """

    def __init__(self, model: str | Path, dt: float):
        try:
            self._mujoco: Any = importlib.import_module("mujoco")
        except ImportError as error:
            raise ImportError("MuJoCoPlant needs mujoco: run `pip install 'optdyn[mjx]'`") from error
        kinds = self._mujoco.MjModel
        is_text = isinstance(model, str) and model.lstrip().startswith("<")
        self.model = kinds.from_xml_string(model) if is_text else kinds.from_xml_path(str(model))
        self.data = self._mujoco.MjData(self.model)
        ratio = dt / self.model.opt.timestep
        self.substeps = round(ratio)
        if self.substeps < 1 or abs(ratio - self.substeps) > 1e-6:
            raise ValueError(f"dt = {dt:g} s is no multiple of the time step {self.model.opt.timestep:g} s")

    def reset(self, x):
        self._mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = x[: self.model.nq], x[self.model.nq :]
        self._mujoco.mj_forward(self.model, self.data)

    def step(self, u, k):
        self.data.ctrl[:] = u
        self._mujoco.mj_step(self.model, self.data, self.substeps)
        # The engine resets itself when numbers get out of hand; that is the end of an episode.
        if any(self.data.warning[kind].number for kind in _bad_numbers(self._mujoco)):
            return np.full(self.model.nq + self.model.nv, np.nan)
        return np.concatenate([self.data.qpos, self.data.qvel])


def _bad_numbers(mujoco: Any) -> tuple:
    kinds = mujoco.mjtWarning
    return kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC

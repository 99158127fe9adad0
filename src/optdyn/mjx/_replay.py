"""A plan run again in MuJoCo's C engine: the same model and controls, another implementation."""

import numpy as np

from optdyn.mjx._backend import mujoco
from optdyn.mjx._dynamics import MJXDynamics

# What MJX and the C engine may differ by over a few steps: other collision routines, other stopping of the
# solver. Largest difference of a state, in the units of its entries.
REPLAY_TOLERANCE = 2e-4


def replay(dynamics: MJXDynamics, x0, controls) -> np.ndarray:
    """States of MuJoCo's C engine under the same controls, each held for all substeps.

    Arguments:
        dynamics: the model and its substeps.
        x0: first state, [nx].
        controls: [horizon, nu].

    Returns:
        States [horizon + 1, nx], the first one `x0`.

    Raises:
        ValueError: the shapes do not fit the model.
    """
    model = dynamics.source_model
    x0, controls = np.asarray(x0, float), np.asarray(controls, float)
    if x0.shape != (dynamics.state_dim,):
        raise ValueError(f"x0 must have shape ({dynamics.state_dim},), got {x0.shape}")
    if controls.ndim != 2 or controls.shape[1] != dynamics.control_dim:
        raise ValueError(f"controls must have shape [horizon, {dynamics.control_dim}], got {controls.shape}")
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = np.split(x0, [model.nq, model.nq + model.nv])
    states = [x0]
    for u in controls:
        data.ctrl[:] = u
        for _ in range(dynamics.substeps):
            mujoco.mj_step(model, data)
        states.append(np.concatenate([data.qpos, data.qvel, data.act]))
    return np.stack(states)

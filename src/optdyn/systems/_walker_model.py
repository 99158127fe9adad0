"""The walker: a planar biped with point feet.

Masses, lengths and inertias are those of RABBIT (Chevallereau et al., 'RABBIT: a testbed for advanced control
theory', 2003); damping of the joints and friction are this project's own.
q = (hip x, z in m; angles of torso, thigh a, shank a, thigh b, shank b in rad) [7]; angles are absolute,
counterclockwise from hanging down (from upright for the torso). Controls are torques in N m: hip a, knee a,
hip b, knee b. Both feet touch the ground with friction, and no knee bends forwards.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array
from optdyn.dynamics import Friction, Mechanism, ProgramDynamics, frictional_dynamics
from optdyn.interior_point import InteriorPoint

LINK = 0.4  # m, thigh and shank
MASS = np.array([12.0, 6.8, 3.2, 6.8, 3.2])  # kg: torso, thigh a, shank a, thigh b, shank b
INERTIA = np.array([1.33, 0.47, 0.2, 0.47, 0.2])  # kg m^2, about the centres of mass
GRAVITY = 9.81  # m / s^2
FRICTION = 0.6
KNEE = 0.05  # rad, smallest bend
DAMPING = 5.0  # N m s / rad, of every joint
STEP = 0.03  # s
CENTRAL_PATH = 1e-4  # N s m, and J
IMPULSE = 10.0  # N s, about m g h

# Where a point lies relative to the hip: a row of weights for the directions of the five links.
CENTERS = np.array(
    [
        [-0.24, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.11, 0.0, 0.0, 0.0],
        [0.0, LINK, 0.24, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.11, 0.0],
        [0.0, 0.0, 0.0, LINK, 0.24],
    ]
)
FEET = np.array([[0.0, LINK, LINK, 0.0, 0.0], [0.0, 0.0, 0.0, LINK, LINK]])
INPUTS = np.zeros((7, 4))
for _column, (_above, _below) in enumerate(((2, 3), (3, 4), (2, 5), (5, 6))):
    INPUTS[_above, _column], INPUTS[_below, _column] = -1.0, 1.0


def points(q: Array, weights: np.ndarray) -> Array:
    """Positions (x, z) of points in m [k, 2]."""
    direction = jnp.stack([jnp.sin(q[2:]), -jnp.cos(q[2:])], axis=1)
    return q[None, :2] + jnp.asarray(weights, q.dtype) @ direction


def velocities(q: Array, v: Array, weights: np.ndarray) -> Array:
    """Velocities of the same points in m/s [k, 2]."""
    turning = jnp.stack([jnp.cos(q[2:]), jnp.sin(q[2:])], axis=1) * v[2:, None]
    return v[None, :2] + jnp.asarray(weights, q.dtype) @ turning


def _kinetic_energy(q, v):
    moving = jnp.sum(jnp.asarray(MASS, q.dtype) * jnp.sum(velocities(q, v, CENTERS) ** 2, axis=1))
    return (moving + jnp.sum(jnp.asarray(INERTIA, q.dtype) * v[2:] ** 2)) / 2


def _potential_energy(q):
    return GRAVITY * jnp.sum(jnp.asarray(MASS, q.dtype) * points(q, CENTERS)[:, 1])


def _input_map(q):
    return jnp.asarray(INPUTS, q.dtype)


def _damping(q, v):
    inputs = jnp.asarray(INPUTS, v.dtype)
    return -DAMPING * (inputs @ (inputs.T @ v))


def _gap(q):
    return jnp.concatenate([points(q, FEET)[:, 1], q[np.array([3, 5])] - q[np.array([4, 6])] - KNEE])


def _slip(q, v):
    return velocities(q, v, FEET)[:, 0]


def _normal_impulse(motion, gap_impulse):
    return gap_impulse[:2]


@lru_cache(maxsize=8)
def dynamics(central_path: float = CENTRAL_PATH, smoothing: float | None = 1e-3) -> ProgramDynamics:
    """Time stepping of the biped."""
    mechanism = Mechanism(
        kinetic_energy=_kinetic_energy,
        potential_energy=_potential_energy,
        input_map=_input_map,
        force=_damping,
        gap=_gap,
        num_positions=7,
        num_inputs=4,
        num_gaps=4,
    )
    contacts = Friction(
        slip=_slip, normal_impulse=_normal_impulse, coefficient=np.full(2, FRICTION), dims=(1, 1)
    )
    solver = InteriorPoint(central_path=central_path, dual_scale=IMPULSE)
    return frictional_dynamics(mechanism, contacts, STEP, solver=solver, smoothing=smoothing)

"""A box on a plane in space: it slides, tips and tumbles under a wrench at its centre, with Coulomb friction.

The configuration q is (centre in m, attitude as a unit quaternion (w, x, y, z)) [7], the state (q_previous, q)
[14], a tangent of it [12]. Controls are forces in N and torques in N m at the centre, in the directions of the
world. Every corner touches the plane z = 0 with a gap and a friction cone of dimension 3.
"""

from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float
from optdyn.dynamics import Friction, Mechanism, ProgramDynamics, frictional_dynamics, rotation_matrix
from optdyn.interior_point import InteriorPoint

HALF = np.array([0.15, 0.1, 0.1])  # m, half the edges of the box
MASS = 1.0  # kg
INERTIA = MASS / 3 * (np.sum(HALF**2) - HALF**2)  # kg m^2, about the axes of the box
GRAVITY = 9.81  # m / s^2
FRICTION = 0.5
STEP = 0.05  # s
CENTRAL_PATH = 1e-5  # N s m, and J
SIGNS = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)])  # the lower corners first


class Box(eqx.Module):
    """Where the box touches the plane, and what pushes it.

    Arguments:
        corners: from the centre, in the frame of the box, in m.
        inputs: wrench (force, torque) per unit of control.
    """

    corners: Float[Array, "n 3"]
    inputs: Float[Array, "6 nu"]

    def arms(self, q: Float[Array, " 7"]) -> Float[Array, "n 3"]:
        """From the centre to the corners in the world, in m."""
        return self.corners.astype(q.dtype) @ rotation_matrix(q[3:]).T

    def gap(self, q: Float[Array, " 7"]) -> Float[Array, " n"]:
        """Heights of the corners over the plane in m."""
        return q[2] + self.arms(q)[:, 2]

    def slip(self, q: Float[Array, " 7"], v: Float[Array, " 6"]) -> Float[Array, " 2n"]:
        """Velocities of the corners along the plane in m/s."""
        arm, turn = self.arms(q), rotation_matrix(q[3:]) @ v[3:]
        x = v[0] + turn[1] * arm[:, 2] - turn[2] * arm[:, 1]
        y = v[1] + turn[2] * arm[:, 0] - turn[0] * arm[:, 2]
        return jnp.stack([x, y], axis=1).reshape(-1)

    def input_map(self, q: Float[Array, " 7"]) -> Float[Array, "6 nu"]:
        """The wrench with its torque in the frame of the box."""
        inputs = self.inputs.astype(q.dtype)
        return jnp.concatenate([inputs[:3], rotation_matrix(q[3:]).T @ inputs[3:]])


def _kinetic_energy(q, v):
    inertia = jnp.asarray(INERTIA, v.dtype)
    return (MASS * jnp.sum(v[:3] ** 2) + jnp.sum(inertia * v[3:] ** 2)) / 2


def _potential_energy(q):
    return MASS * GRAVITY * q[2]


def _normal_impulse(motion, gap_impulse):
    return gap_impulse


@lru_cache(maxsize=16)
def dynamics(
    inputs: tuple[int, ...] = (0, 1, 2, 3, 4, 5),
    corners: int = 8,
    central_path: float = CENTRAL_PATH,
    smoothing: float | None = 1e-3,
) -> ProgramDynamics:
    """Time stepping of the box.

    Arguments:
        inputs: components of the wrench (force x, y, z; torque x, y, z) that the controls are.
        corners: 8, or 4 for the lower ones only.
        central_path, smoothing: as in `ProgramDynamics`.
    """
    box = Box(jnp.asarray(HALF * SIGNS[:corners]), jnp.asarray(np.eye(6)[:, list(inputs)]))
    mechanism = Mechanism(
        kinetic_energy=_kinetic_energy,
        potential_energy=_potential_energy,
        input_map=box.input_map,
        gap=box.gap,
        num_positions=7,
        num_inputs=len(inputs),
        num_gaps=corners,
        quaternions=(3,),
    )
    contacts = Friction(
        slip=box.slip,
        normal_impulse=_normal_impulse,
        coefficient=np.full(corners, FRICTION),
        dims=(2,) * corners,
    )
    return frictional_dynamics(
        mechanism,
        contacts,
        STEP,
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )

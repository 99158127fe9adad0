"""A rigid box on a plane in NumPy and SciPy: gaps, slips, energy, and the impulses that act between steps."""

import numpy as np
from scipy.spatial.transform import Rotation

HALF = np.array([0.15, 0.1, 0.1])
MASS, GRAVITY, FRICTION = 1.0, 9.81, 0.5
INERTIA = MASS / 3 * np.array([0.02, 0.0325, 0.0325])
CORNERS = HALF * np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)])


def rotation(q):
    return Rotation.from_quat(q[3:7], scalar_first=True)


def gaps(q):
    return q[2] + rotation(q).apply(CORNERS)[:, 2]


def velocity(qa, qb, h):
    """Velocity of the centre, and rotation vector from one attitude to the next per h, in the world."""
    turn = rotation(qb) * rotation(qa).inv()
    return (qb[:3] - qa[:3]) / h, turn.as_rotvec() / h


def linear_balance(x, u, x_next, impulse, friction, h):
    """Change of linear momentum less all impulses; u is a force in the world [3]."""
    before = MASS * (x[7:10] - x[:3]) / h
    after = MASS * (x_next[7:10] - x_next[:3]) / h
    contact = np.array([friction[0::2].sum(), friction[1::2].sum(), impulse.sum()])
    return after - before - contact - h * (u - np.array([0, 0, MASS * GRAVITY]))

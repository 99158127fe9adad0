"""Planar pushing in plain NumPy: impulses of a step from the contact impulses, and contact kinematics."""

import numpy as np

HALF, ROUNDING, GRAVITY, FRICTION = 0.1, 0.01, 9.81, 0.5
MASSES = np.array([1.0, 1.0, 0.04 / 6, 10.0, 10.0])


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def distance(q, published):
    """Signed distance in m of the pusher from the block."""
    x, y = np.abs(rotation(q[2]).T @ (q[3:] - q[:2]))
    if published:
        return (x**10 + y**10) ** 0.1 - HALF
    a, b = x - (HALF - ROUNDING), y - (HALF - ROUNDING)
    return np.hypot(max(a, 0), max(b, 0)) + min(max(a, b), 0) - ROUNDING


def normal(q, published):
    """Unit normal of the block at the pusher, outwards, by differences of the distance."""
    step = 1e-6
    lift = [distance(q + step * e, published) - distance(q - step * e, published) for e in np.eye(5)[3:]]
    return np.array(lift) / np.linalg.norm(lift)


def corner_arms(q):
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    return HALF * signs @ rotation(q[2]).T


def balance(x, u, x_next, press, friction, h, published):
    """Momentum of block and pusher: zero on the motion. Contacts act at the end of the step."""
    q0, q1, q2 = x[:5], x[5:], x_next[5:]
    total = MASSES * ((q1 - q0) - (q2 - q1)) / h
    total[3:] += u
    for arm, force in zip(corner_arms(q2), friction[:8].reshape(4, 2), strict=True):
        total[:2] += force
        total[2] += arm[0] * force[1] - arm[1] * force[0]
    n = normal(q2, published)
    slope = 1.0
    if published:  # the gradient of the 10-norm is no unit vector
        step = 1e-6
        slope = (
            distance(q2 + step * np.append(np.zeros(3), n), published)
            - distance(q2 - step * np.append(np.zeros(3), n), published)
        ) / (2 * step)
    force = -press * slope * n + friction[8] * np.array([-n[1], n[0]])
    arm = q2[3:] - q2[:2]
    total[:2] += force
    total[2] += arm[0] * force[1] - arm[1] * force[0]
    total[3:] -= force
    return total


def slips(x_next, h, published):
    """Velocities [4, 2] of the corners over the table, and the speed of the block along the pusher."""
    q1, q2 = x_next[:5], x_next[5:]
    v = (q2 - q1) / h
    corners = np.array([v[:2] + v[2] * np.array([-arm[1], arm[0]]) for arm in corner_arms(q2)])
    arm, n = q2[3:] - q2[:2], normal(q2, published)
    return corners, np.array([-n[1], n[0]]) @ (v[:2] + v[2] * np.array([-arm[1], arm[0]]) - v[3:])

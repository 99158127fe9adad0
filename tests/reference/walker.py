"""The walker in plain NumPy: every link by itself, impulses of a step, gaps and slip."""

import numpy as np

GRAVITY, FRICTION, DAMPING, KNEE, LINK = 9.81, 0.6, 5.0, 0.05, 0.4
# Of each link: mass, inertia about its centre, chain of (angle, length) from the hip to the centre.
LINKS = [
    (12.0, 1.33, [(2, -0.24)]),
    (6.8, 0.47, [(3, 0.11)]),
    (3.2, 0.2, [(3, LINK), (4, 0.24)]),
    (6.8, 0.47, [(5, 0.11)]),
    (3.2, 0.2, [(5, LINK), (6, 0.24)]),
]
ANGLES = [2, 3, 4, 5, 6]
FEET = [[(3, LINK), (4, LINK)], [(5, LINK), (6, LINK)]]
JOINTS = [(2, 3), (3, 4), (2, 5), (5, 6)]  # the control pushes the second angle up and the first one down


def position(q, chain):
    return q[:2] + sum(length * np.array([np.sin(q[i]), -np.cos(q[i])]) for i, length in chain)


def jacobian(q, chain):
    J = np.zeros((2, 7))
    J[:, :2] = np.eye(2)
    for i, length in chain:
        J[:, i] += length * np.array([np.cos(q[i]), np.sin(q[i])])
    return J


def slopes(q, v):
    """(dL/dq, dL/dv)."""
    dq, dv = np.zeros(7), np.zeros(7)
    for (mass, inertia, chain), angle in zip(LINKS, ANGLES, strict=True):
        J = jacobian(q, chain)
        dv += mass * J.T @ (J @ v)
        dv[angle] += inertia * v[angle]
        dq -= mass * GRAVITY * J[1]
        for i, length in chain:
            dq[i] += mass * (J @ v) @ (length * v[i] * np.array([-np.sin(q[i]), np.cos(q[i])]))
    return dq, dv


def damping(v):
    force = np.zeros(7)
    for above, below in JOINTS:
        rate = v[below] - v[above]
        force[below] -= DAMPING * rate
        force[above] += DAMPING * rate
    return force


def gaps(q):
    return np.array([*(position(q, foot)[1] for foot in FEET), q[3] - q[4] - KNEE, q[5] - q[6] - KNEE])


def slip(q, v):
    return np.array([jacobian(q, foot)[0] @ v for foot in FEET])


def energy(q, v):
    potential = sum(mass * GRAVITY * position(q, chain)[1] for mass, _, chain in LINKS)
    return slopes(q, v)[1] @ v / 2 + potential


def balance(x, u, x_next, impulse, friction, h):
    """Impulses of the step, whose sum is zero on the motion."""
    q0, q1, q2 = x[:7], x[7:], x_next[7:]
    v0, v1 = (q1 - q0) / h, (q2 - q1) / h
    early, late = slopes((q0 + q1) / 2, v0), slopes((q1 + q2) / 2, v1)
    total = h / 2 * early[0] + early[1] + h / 2 * late[0] - late[1]
    total += h / 2 * (damping(v0) + damping(v1))
    for (above, below), torque in zip(JOINTS, u, strict=True):
        total[below] += h * torque
        total[above] -= h * torque
    for foot, push, rub in zip(FEET, impulse[:2], friction, strict=True):
        J = jacobian(q2, foot)
        total += push * J[1] + rub * J[0]
    for (thigh, shank), push in zip(((3, 4), (5, 6)), impulse[2:], strict=True):
        total[thigh] += push
        total[shank] -= push
    return total

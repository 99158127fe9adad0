"""The hopper in plain NumPy: impulses of a step in both forms, gaps and slip."""

import numpy as np

BODY, FOOT, INERTIA, GRAVITY, DAMPING = 1.0, 0.1, 0.1, 9.81, 0.1
BODY_RADIUS, FOOT_RADIUS, FRICTION = 0.1, 0.05, 0.5


def foot_jacobian(q):
    s, c = np.sin(q[2]), np.cos(q[2])
    return np.array([[1.0, 0.0, q[3] * c, s], [0.0, 1.0, q[3] * s, -c]])


def foot_slopes(q):
    """Derivatives of `foot_jacobian` by pitch and by leg length; it depends on nothing else."""
    s, c = np.sin(q[2]), np.cos(q[2])
    by_pitch = np.array([[0.0, 0.0, -q[3] * s, c], [0.0, 0.0, q[3] * c, s]])
    by_leg = np.array([[0.0, 0.0, c, 0.0], [0.0, 0.0, s, 0.0]])
    return {2: by_pitch, 3: by_leg}


def slopes(q, v, paper):
    """(dL/dq as the form has it, dL/dv)."""
    J, slope = foot_jacobian(q), foot_slopes(q)
    dq = -GRAVITY * (np.array([0.0, BODY, 0.0, 0.0]) + FOOT * J[1])
    rate = slope[2] * v[2] + slope[3] * v[3]
    for i in slope:
        dq[i] += FOOT * (J @ v) @ (slope[i] @ v)
    if paper:
        dq = dq - FOOT * (rate.T @ (J @ v) + J.T @ (rate @ v))
    momentum = np.array([BODY, BODY, INERTIA, 0.0]) * v + FOOT * J.T @ (J @ v)
    return dq, momentum


def gaps(q):
    return np.array([q[1] - BODY_RADIUS, q[1] - q[3] * np.cos(q[2]) - FOOT_RADIUS, q[3] - 0.25, 1 - q[3]])


def slip(q, v):
    return np.array([v[0] + BODY_RADIUS * v[2], foot_jacobian(q)[0] @ v])


def balance(x, u, x_next, impulse, friction, h, paper):
    """Impulses of the step, whose sum is zero on the motion."""
    q0, q1, q2 = x[:4], x[4:8], x_next[4:8]
    qm, v0, v1 = (q1 + q2) / 2, (q1 - q0) / h, (q2 - q1) / h
    early, late = slopes((q0 + q1) / 2, v0, paper), slopes(qm, v1, paper)
    damping = -DAMPING * np.array([0.0, 0.0, 0.0, 1.0])
    lost = damping * v1 if paper else h / 2 * damping * (v0 + v1)
    where = q1 if paper else q2
    J = foot_jacobian(where)
    inputs = np.array([[0.0, 0.0, 1.0, 0.0], [-np.sin(qm[2]), np.cos(qm[2]), 0.0, 1.0]])
    contact = impulse[0] * np.array([0.0, 1.0, 0.0, 0.0]) + impulse[1] * J[1]
    contact = contact + (impulse[2] - impulse[3]) * np.array([0.0, 0.0, 0.0, 1.0])
    contact = contact + friction[0] * np.array([1.0, 0.0, BODY_RADIUS, 0.0]) + friction[1] * J[0]
    return h / 2 * early[0] + early[1] + h / 2 * late[0] - late[1] + inputs.T @ u + lost + contact

"""The acrobot in plain NumPy: equations of motion, the discrete step in both forms, its residual."""

import numpy as np
from scipy.integrate import solve_ivp

MASS, LENGTH, CENTER, INERTIA, GRAVITY = 1.0, 1.0, 0.5, 0.333, 9.81
COUPLING = MASS * LENGTH * CENTER
LIMIT = np.pi / 2


def mass_matrix(q):
    m12 = INERTIA + COUPLING * np.cos(q[1])
    return np.array([[MASS * LENGTH**2 + 2 * m12, m12], [m12, INERTIA]])


def mass_slope(q):
    """Derivative of the mass matrix by the elbow angle; it does not depend on the shoulder."""
    return -COUPLING * np.sin(q[1]) * np.array([[2.0, 1.0], [1.0, 0.0]])


def gravity_torque(q):
    """Derivative of the potential energy."""
    both = MASS * GRAVITY * CENTER * np.sin(q[0] + q[1])
    return np.array([MASS * GRAVITY * (CENTER + LENGTH) * np.sin(q[0]) + both, both])


def energy(q, v):
    potential = -(CENTER + LENGTH) * np.cos(q[0]) - CENTER * np.cos(q[0] + q[1])
    return v @ mass_matrix(q) @ v / 2 + MASS * GRAVITY * potential


def motion(q, v, times, damping=0.0):
    """Angles at `times` of the free continuous motion, to about 1e-11."""

    def field(_, y):
        q, v = y[:2], y[2:]
        slope = mass_slope(q)
        bias = slope @ v * v[1] - np.array([0.0, v @ slope @ v / 2])
        return np.concatenate([v, np.linalg.solve(mass_matrix(q), -bias - gravity_torque(q) - damping * v)])

    span = (0.0, times[-1])
    start = np.concatenate([q, v])
    return solve_ivp(field, span, start, "DOP853", t_eval=times, rtol=1e-12, atol=1e-13).y[:2].T


def slopes(q, v, paper):
    """(dL/dq as the form has it, dL/dv)."""
    dq = np.array([0.0, v @ mass_slope(q) @ v / 2]) - gravity_torque(q)
    if paper:
        dq = dq - mass_slope(q) @ v * v[1]
    return dq, mass_matrix(q) @ v


def residual(x, u, x_next, limit_impulse, h, kappa, *, paper=False, damping=0.5):
    """Largest violation of the step's equations; infinite when an impulse or a gap is not positive."""
    (q0, q1), (q1_next, q2) = np.split(x, 2), np.split(x_next, 2)
    early = slopes((q0 + q1) / 2, (q1 - q0) / h, paper)
    v = (q2 - q1) / h
    late = slopes((q1 + q2) / 2, v, paper)
    total = h / 2 * early[0] + early[1] + h / 2 * late[0] - late[1]
    total = total - h * damping * (v if paper else (v + (q1 - q0) / h) / 2)
    total = total + np.array([0.0, u[0]])
    rows = [q1_next - q1, total]
    if limit_impulse is not None:
        upper, lower = limit_impulse
        total[1] += lower - upper
        gaps = np.array([LIMIT - q2[1], q2[1] + LIMIT])
        if min(*gaps, upper, lower) <= 0:
            return np.inf
        if kappa is not None:
            rows.append(gaps * limit_impulse - kappa)
    return np.abs(np.concatenate(rows)).max()

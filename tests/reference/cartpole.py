"""The cart-pole in plain NumPy: the discrete step in both forms with Coulomb friction, and its residual."""

import numpy as np

CART, POLE, LENGTH, GRAVITY = 1.0, 0.2, 0.5, 9.81
LEVER = POLE * LENGTH


def mass_matrix(q):
    coupling = LEVER * np.cos(q[1])
    return np.array([[CART + POLE, coupling], [coupling, POLE * LENGTH**2]])


def energy(q, v):
    return v @ mass_matrix(q) @ v / 2 - LEVER * GRAVITY * np.cos(q[1])


def slopes(q, v, paper):
    """(dL/dq as the form has it, dL/dv)."""
    if paper:
        dq = -LEVER * np.sin(q[1]) * np.array([v[1] ** 2, GRAVITY])
    else:
        dq = -LEVER * np.sin(q[1]) * np.array([0.0, v[0] * v[1] + GRAVITY])
    return dq, mass_matrix(q) @ v


def balance(x, u, x_next, friction_impulse, h, paper):
    """Impulses of the step, whose sum is zero on the motion."""
    (q0, q1), (_, q2) = np.split(x, 2), np.split(x_next, 2)
    early = slopes((q0 + q1) / 2, (q1 - q0) / h, paper)
    late = slopes((q1 + q2) / 2, (q2 - q1) / h, paper)
    push = np.array([u[0], 0.0])
    return h / 2 * early[0] + early[1] + h / 2 * late[0] - late[1] + push + friction_impulse


def friction_limit(coefficient, h):
    """mu N of rail and hinge."""
    return coefficient * h * GRAVITY * np.array([CART + POLE, LEVER])


def reactions(x, x_next, h):
    """Normal impulse of the rail, and impulse [2] of the hinge on the pole, by Newton's law."""
    (q0, q1), (_, q2) = np.split(x, 2), np.split(x_next, 2)

    def momentum(a, b):
        (_, angle), (speed, rate) = (a + b) / 2, (b - a) / h
        return POLE * (np.array([speed, 0]) + LENGTH * rate * np.array([np.cos(angle), np.sin(angle)]))

    hinge = momentum(q1, q2) - momentum(q0, q1) + np.array([0, POLE * GRAVITY * h])
    return hinge[1] + CART * GRAVITY * h, hinge


def coupled_limit(coefficient, x, x_next, h):
    """mu N of rail and hinge with loads that follow from the motion, clamped by 1 percent of the weights."""
    rail, hinge = reactions(x, x_next, h)
    load = np.array([rail, LENGTH * np.linalg.norm(hinge)])
    return coefficient * np.hypot(load, 0.01 * friction_limit(1.0, h))


def friction_law(slip, impulse, limit, kappa):
    """Rows of `(limit, impulse) o (sigma, slip) = (kappa, 0)` with sigma from the second one."""
    sigma = kappa / (2 * limit) + np.sqrt((kappa / (2 * limit)) ** 2 + slip**2)
    return limit * slip + sigma * impulse

"""Linear-quadratic problems in NumPy: one dense KKT system over the whole horizon."""

from typing import NamedTuple

import numpy as np


class Data(NamedTuple):
    """x+ = A_t x + B_t u + c_t; cost 1/2 v'H_t v + g_t'v with v = (x, u), and 1/2 x'P x + p'x at the end."""

    A: np.ndarray
    B: np.ndarray
    c: np.ndarray
    H: np.ndarray
    g: np.ndarray
    P: np.ndarray
    p: np.ndarray


class Answer(NamedTuple):
    states: np.ndarray
    controls: np.ndarray
    cost: float
    gain: np.ndarray  # du_0/dx_0
    value_hessian: np.ndarray  # d2 cost / dx_0^2


def random_data(rng, nx, nu, horizon):
    def spd(n):
        root = rng.normal(size=(horizon, n, n))
        return root @ np.swapaxes(root, 1, 2) / n + 0.1 * np.eye(n)

    return Data(
        A=np.eye(nx) + 0.3 * rng.normal(size=(horizon, nx, nx)),
        B=rng.normal(size=(horizon, nx, nu)),
        c=0.1 * rng.normal(size=(horizon, nx)),
        H=spd(nx + nu),
        g=rng.normal(size=(horizon, nx + nu)),
        P=spd(nx)[0],
        p=rng.normal(size=nx),
    )


def solve(data, x0, terminal=None):
    """Stationary point over (v_0 .. v_{N-1}, x_N), the dynamics as equalities; `terminal`: x_N is given."""
    N, nx, nu = data.B.shape
    n = nx + nu
    size = N * n + nx
    hessian, gradient = np.zeros((size, size)), np.zeros(size)
    for t in range(N):
        at = slice(t * n, (t + 1) * n)
        hessian[at, at], gradient[at] = data.H[t], data.g[t]
    hessian[N * n :, N * n :], gradient[N * n :] = data.P, data.p
    rows = (N + 1) * nx
    J, b = np.zeros((rows, size)), np.zeros(rows)
    J[:nx, :nx], b[:nx] = np.eye(nx), x0
    for t in range(N):
        row = slice((t + 1) * nx, (t + 2) * nx)
        J[row, t * n : (t + 1) * n] = -np.concatenate([data.A[t], data.B[t]], axis=1)
        J[row, (t + 1) * n : (t + 1) * n + nx] = np.eye(nx)
        b[row] = data.c[t]
    if terminal is not None:
        last = np.zeros((nx, size))
        last[:, N * n :] = np.eye(nx)
        J, b = np.concatenate([J, last]), np.concatenate([b, terminal])
    kkt = np.block([[hessian, J.T], [J, np.zeros((len(b), len(b)))]])
    start = np.zeros((len(kkt), nx))
    start[size : size + nx] = np.eye(nx)
    both = np.linalg.solve(kkt, np.concatenate([np.concatenate([-gradient, b])[:, None], start], axis=1))
    y, slope = both[:size, 0], both[:size, 1:]
    stages = y[: N * n].reshape(N, n)
    return Answer(
        states=np.concatenate([stages[:, :nx], y[None, N * n :]]),
        controls=stages[:, nx:],
        cost=float(y @ hessian @ y / 2 + gradient @ y),
        gain=slope[nx:n],
        value_hessian=slope.T @ hessian @ slope,
    )

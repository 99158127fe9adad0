"""Central-path equations and their derivative, in plain NumPy and without elimination: slow and obvious.

A cone is a list of blocks `(kind, dim)` with kind "orthant" or "second_order".
"""

import numpy as np


def split(blocks, a):
    parts, start = [], 0
    for kind, dim in blocks:
        if dim:
            parts.append((kind, np.asarray(a[start : start + dim], dtype=float)))
        start += dim
    assert start == len(a)
    return parts


def arrow(a):
    """Matrix of the Jordan product with `a` of one second-order cone."""
    matrix = a[0] * np.eye(len(a))
    matrix[0, 1:], matrix[1:, 0] = a[1:], a[1:]
    return matrix


def product_matrix(blocks, a):
    """L with `L b = a o b`."""
    matrix = np.zeros((len(a), len(a)))
    start = 0
    for kind, part in split(blocks, a):
        stop = start + len(part)
        matrix[start:stop, start:stop] = np.diag(part) if kind == "orthant" else arrow(part)
        start = stop
    return matrix


def identity(blocks):
    parts = [np.ones(dim) if kind == "orthant" else np.eye(dim)[0] for kind, dim in blocks if dim]
    return np.concatenate([*parts, np.zeros(0)])


def min_eigenvalue(blocks, a):
    """By eigenvalues of the arrow matrices; +inf without entries."""
    smallest = [np.inf]
    for kind, part in split(blocks, a):
        smallest.append(part.min() if kind == "orthant" else np.linalg.eigvalsh(arrow(part)).min())
    return min(smallest)


def degree(blocks):
    return sum(dim if kind == "orthant" else min(dim, 1) for kind, dim in blocks)


def conic_residual(data, blocks, x, y, s, z, kappa):
    """Largest violations `(E, S, s o z - kappa e)` of a conic program."""
    P, q, A, b, G, h = (np.asarray(item, dtype=float) for item in data)
    x, y, s, z = (np.asarray(item, dtype=float) for item in (x, y, s, z))
    E = np.concatenate([(P + P.T) @ x / 2 + q + A.T @ y + G.T @ z, A @ x - b])
    S = h - G @ x - s
    gap = product_matrix(blocks, s) @ z - kappa * identity(blocks)
    return tuple(np.max(np.abs(r), initial=0.0) for r in (E, S, gap))


def conic_derivative(data, blocks, x, y, s, z, r_dot):
    """d(x, y, z, s) for a change `r_dot` of the stacked residual (E, S - s, s o z) at a fixed point."""
    P, _, A, _, G, _ = (np.asarray(item, dtype=float) for item in data)
    n, p, m = len(x), len(y), len(z)
    jacobian = np.zeros((n + p + 2 * m, n + p + 2 * m))
    jacobian[:n, :n], jacobian[:n, n : n + p], jacobian[:n, n + p : n + p + m] = (P + P.T) / 2, A.T, G.T
    jacobian[n : n + p, :n] = A
    jacobian[n + p : n + p + m, :n], jacobian[n + p : n + p + m, n + p + m :] = -G, -np.eye(m)
    jacobian[n + p + m :, n + p : n + p + m] = product_matrix(blocks, np.asarray(s))
    jacobian[n + p + m :, n + p + m :] = product_matrix(blocks, np.asarray(z))
    return np.linalg.solve(jacobian, -np.asarray(r_dot))

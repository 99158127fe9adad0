"""Conic programs of one shape with known answers, and solvers compiled once for all tests."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import optdyn as od
from optdyn.cones import NonnegativeOrthant, ProductCone, SecondOrderCone
from reference import central_path as reference

N, P = 3, 1
CONE = ProductCone(NonnegativeOrthant(2), SecondOrderCone(3), SecondOrderCone(1))
BLOCKS = [("orthant", 2), ("second_order", 3), ("second_order", 1)]
M = CONE.dim


class Data(NamedTuple):
    """NumPy or JAX arrays, also as leaves of a transformation."""

    P: Any
    q: Any
    A: Any
    b: Any
    G: Any
    h: Any


class Answer(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    z: np.ndarray


def interior(rng, blocks=BLOCKS):
    parts = []
    for kind, dim in blocks:
        part = rng.normal(size=dim)
        if kind == "orthant":
            part = np.exp(part)
        elif dim:
            part[0] = np.linalg.norm(part[1:]) + np.exp(part[0])
        parts.append(part)
    return np.concatenate(parts)


def on_path(rng, kappa, rank=2):
    """A program and the point of its central path at kappa: chosen first, the data made to fit."""
    A, G = rng.normal(size=(P, N)), rng.normal(size=(M, N))
    root = rng.normal(size=(N, rank))
    quadratic = root @ root.T
    x, y, s = rng.normal(size=N), rng.normal(size=P), interior(rng)
    z = kappa * np.linalg.solve(reference.product_matrix(BLOCKS, s), reference.identity(BLOCKS))
    data = Data(quadratic, -(quadratic @ x + A.T @ y + G.T @ z), A, A @ x, G, G @ x + s)
    return data, Answer(x, y, s, z)


def feasible(rng):
    """A program with strictly feasible primal and dual points, its answer unknown."""
    data, point = on_path(rng, 1.0)
    return data._replace(q=data.q + data.G.T @ (point.z - interior(rng)))


def stack(items):
    return Data(*(jnp.asarray(np.stack(parts)) for parts in zip(*items, strict=True)))


def solve(data, kappa, guess=None, **settings):
    program = od.ConicProgram(*data, cone=CONE)
    solver = eqx.tree_at(lambda s: s.central_path, od.InteriorPoint(**settings), kappa)
    return od.solve(program, solver=solver, guess=guess, throw=False)


solve_batch = eqx.filter_jit(jax.vmap(solve, in_axes=(0, None)))
solve_one = eqx.filter_jit(solve)

"""Runner of projections onto a second-order cone (a batch of points at once) and of friction sets."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import settings
from cases.bank import Case
from cases.checking import Findings, as_array, check, finite, named, status_of
from cases.conic_model import build


def run(case: Case) -> None:
    """`project onto SOC(n)` of all points under one vmap, with the gradient of the sum."""
    match = re.fullmatch(r"project onto SOC\((\d+)\)", case.problem["op"])
    assert match, f"no runner knows the operation {case.problem['op']!r}"
    n = int(match[1])

    # A point at the tip is sqrt(kappa) away from its projection.
    adjoint = od.ImplicitAdjoint(smoothing=1e-8)

    def project(point: jax.Array) -> od.Solution:
        program = od.ConicProgram(
            jnp.eye(n), -point, G=-jnp.eye(n), h=jnp.zeros(n), cone=od.cones.SecondOrderCone(n)
        )
        return od.solve(program, solver=settings.solver(central_path=1e-11), adjoint=adjoint, throw=False)

    def total(points: jax.Array) -> tuple[jax.Array, od.Solution]:
        solutions = jax.vmap(project)(points)
        return jnp.sum(solutions.primal), solutions

    points = jnp.asarray(case.problem["points"], float)
    gradient, solutions = jax.jit(jax.grad(total, has_aux=True))(points)
    statuses = [
        status_of(jax.tree.map(lambda leaf, i=i: leaf[i], solutions.result)) for i in range(len(points))
    ]
    failed = [status for status in statuses if status != "successful"]
    x = as_array(solutions.primal)
    for row, point in zip(x, as_array(points), strict=True):
        np.testing.assert_allclose(row, _closed_form(point), atol=1e-4)
    findings = Findings(
        failed[0] if failed else "successful",
        [named(x=lambda: x, grad_sum=lambda: gradient)],
        {"finite": lambda want: finite("projection", x, gradient)},
    )
    check(case, findings)


def _closed_form(point: np.ndarray) -> np.ndarray:
    t, v = point[0], point[1:]
    size = np.linalg.norm(v)
    if size <= t:
        return point
    if size <= -t:
        return 0 * point
    return (t + size) / 2 * np.concatenate([[1.0], v / size])


def run_limits(case: Case) -> None:
    """Largest friction force along a direction, for each set that stands in for the friction cone."""
    radius = case.problem["mu"] * case.problem["fn"]
    direction = jnp.asarray(case.problem["direction"], float)
    n = direction.size
    statuses = {}

    def largest(name: str) -> float:
        solution = _maximize(_SETS[name], direction, radius, n)
        statuses[name] = status_of(solution.result)
        assert statuses[name] == "successful", f"{name}: {statuses[name]}"
        return float(direction @ solution.primal[:n])

    def forces(want: dict[str, float]) -> None:
        for name, value in want.items():
            assert name in _SETS, f"no runner knows the friction set {name!r}"
            found = largest(name)
            assert abs(found - value) <= case.tol.atol, f"{name}: {found}, expected {value}"

    check(case, Findings("successful", [], {"max_force": forces}))


# For each set: cone rows, or (rows of G, whether absolute values are summed by extra variables).
_SETS = {"cone": "cone", "box": "box", "diamond": "diamond"}


def _maximize(kind: str, direction: Any, radius: float, n: int) -> od.Solution:
    empty = {"A": jnp.zeros((0, n)), "b": jnp.zeros(0), "G": jnp.zeros((0, n)), "h": jnp.zeros(0), "soc": []}
    data = {"P": jnp.zeros((n, n)), "q": -direction, **empty}
    eye = jnp.eye(n)
    if kind == "cone":
        soc = {"G": jnp.concatenate([jnp.zeros((1, n)), -eye]), "h": jnp.zeros(n + 1).at[0].set(radius)}
        data["soc"] = [soc]
    elif kind == "box":
        data |= {"G": jnp.concatenate([eye, -eye]), "h": jnp.full(2 * n, radius)}
    else:
        signs = jnp.asarray([[1.0 if i >> k & 1 else -1.0 for k in range(n)] for i in range(2**n)])
        data |= {"G": signs, "h": jnp.full(2**n, radius)}
    return od.solve(build(data), solver=settings.solver(), throw=False)

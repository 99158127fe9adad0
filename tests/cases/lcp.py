"""Runner of linear complementarity problems: z >= 0, w = Mz + q >= 0, z'w = 0."""

import re
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import oracle, settings
from cases.bank import Case
from cases.checking import Findings, as_array, check, close, finite, named, status_of
from cases.model import Model, asks_for_derivatives


class LinearComplementarity(od.AbstractComplementarityProblem):
    """No unknowns besides z."""

    M: Any
    q: Any
    cone: od.cones.NonnegativeOrthant

    def initial_guess(self, theta):
        return jnp.zeros(0)

    def equations(self, w, z, theta):
        return jnp.zeros(0)

    def slack(self, w, z, theta):
        return self.M @ z + self.q


class LCPSolve(eqx.Module):
    """theta -> outputs; `law(theta)` gives M and q."""

    law: Any = eqx.field(static=True, default=None)

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], od.Solution]:
        M, q = (theta["M"], theta["q"]) if self.law is None else self.law(theta)
        problem = LinearComplementarity(M, q, od.cones.NonnegativeOrthant(q.size))
        solution = od.solve(problem, solver=settings.solver(), adjoint=settings.AT_SOLUTION, throw=False)
        z = solution.cone_dual
        return {"z": z, "w": M @ z + q, "sum_z": jnp.sum(z)}, solution


def falling_rod(p: dict[str, Any]) -> tuple[Any, Any]:
    """Contact acceleration of a rod (half length l) that touches with friction: A f + b."""
    sin, cos = jnp.sin(p["theta"]), jnp.cos(p["theta"])
    A = 1 / p["m"] + p["l"] ** 2 / p["J"] * cos * (cos - p["mu"] * sin)
    return A[None, None], (p["l"] * p["omega"] ** 2 * sin - p["g"])[None]


def impacts(p: dict[str, Any]) -> tuple[Any, Any]:
    """Gaps after a step, as a function of the impulses."""
    return p["h"] * jnp.linalg.inv(p["M"]), p["gap"] + p["h"] * p["v"]


_LAWS = {
    frozenset({"m", "l", "J", "g", "theta", "mu", "omega"}): falling_rod,
    frozenset({"h", "gap", "v", "M"}): impacts,
}


def run(case: Case) -> None:
    """Solve, recompute, compare."""
    problem = case.problem
    M, q = as_array(problem["M"]), as_array(problem["q"])
    law, theta = None, {"M": M, "q": q}
    if "parameters" in problem:
        law = _LAWS.get(frozenset(problem["parameters"]))
        assert law, f"no runner knows an LCP with parameters {sorted(problem['parameters'])}"
        theta = problem["parameters"]
    theta = {name: jnp.asarray(value, float) for name, value in theta.items()}
    if law is not None:
        for name, got, want in zip("Mq", law(theta), (M, q), strict=True):
            np.testing.assert_allclose(
                got, want, rtol=1e-6, err_msg=f"{name} does not follow from the parameters"
            )
    model = Model(LCPSolve(law), theta, asks_for_derivatives(case.expected))
    status = status_of(model.extra.result)
    outputs = {name: as_array(value) for name, value in model.outputs.items()}
    if status == "successful":
        oracle.complementary(outputs["z"], outputs["w"], 1e-8)

    def after(key: str, want: Any) -> Any:
        if key not in ("v_after", "gap_after"):
            return None
        v = as_array(theta["v"]) + np.linalg.solve(as_array(theta["M"]), outputs["z"])
        return v if key == "v_after" else as_array(theta["gap"]) + float(theta["h"]) * v

    def interval(key: str, want: Any) -> None:
        got = model.derivative(key)
        assert got is not None, f"no check knows {key!r}"
        assert min(want) - case.tol.atol <= got <= max(want) + case.tol.atol, f"{key} = {got}"

    def any_of(want: Any) -> None:
        distances = [np.max(np.abs(outputs["z"] - as_array(z))) for z in case.expected["solutions"]]
        assert status == "successful", f"status is {status!r}"
        assert min(distances) <= case.tol.atol, f"z = {outputs['z'].tolist()} is none of the solutions"

    def directional(want: dict[str, Any]) -> None:
        (source, direction), (target, change) = want.items()
        jacobian = model.jacobian(target.removeprefix("d").lstrip("_"), source.removeprefix("d"))
        close(target, jacobian @ as_array(direction), change, case.tol)

    def nonnegative(want: Any) -> None:
        assert np.all(outputs["z"] >= -case.tol.atol), f"z = {outputs['z'].tolist()}"

    def unique(want: bool) -> None:
        minors = [np.linalg.det(M[np.ix_(i, i)]) for i in _subsets(len(q))]
        assert (min(minors) > 0) == want, "M is a P-matrix exactly when the solution is unique for every q"

    rules = {
        "finite": lambda want: finite("z", outputs["z"], outputs["w"]),
        "z_nonneg": nonnegative,
        "any_of": any_of,
        "solutions": lambda want: None,  # used by any_of
        "directional": directional,
        "unique": unique,
    }
    for key in case.expected:
        if match := re.fullmatch(r"(d\w+)_interval", key):
            rules[key] = lambda want, name=match[1]: interval(name, want)
    values = [
        lambda key, want: outputs.get(key),
        after,
        named(A=lambda: M, b=lambda: q),
        lambda key, want: model.derivative(key),
    ]
    check(case, Findings(status, values, rules))


def _subsets(n: int) -> list[list[int]]:
    return [[k for k in range(n) if i >> k & 1] for i in range(1, 2**n)]

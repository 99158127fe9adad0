"""Runner of nonlinear complementarity problems and contact steps, told apart by their fields."""

import re
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import contact, oracle, settings
from cases.bank import Case, Tolerance
from cases.checking import Findings, as_array, check, close, finite, named, status_of
from cases.formula_problems import FormulaProgram, Pair, find_variables
from cases.formulas import Formula, relations
from cases.model import Model
from cases.nlp import ProgramSolve

# Limits kappa -> 0 are taken at this kappa.
_LIMIT = 1e-12


class KappaSolve(eqx.Module):
    """theta (with kappa) -> outputs of a problem on its central path."""

    problem: Any
    outputs: Any = eqx.field(static=True)

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], od.Solution]:
        solver = od.InteriorPoint(central_path=theta["kappa"], residual_tol=1e-13, max_steps=100)
        solution = od.solve(self.problem, theta, solver=solver, adjoint=settings.AT_SOLUTION, throw=False)
        return self.outputs(solution), solution


class StickSlip(od.AbstractComplementarityProblem):
    """(psi, b) and (s_psi, v + b/m) complementary in the second-order cone; psi is given."""

    cone: od.cones.SecondOrderCone = od.cones.SecondOrderCone(2)

    def initial_guess(self, theta):
        return jnp.ones(1)

    def equations(self, w, z, theta):
        return (z[0] - theta["psi"])[None]

    def slack(self, w, z, theta):
        return jnp.stack([w[0], theta["v"] + z[1] / theta["m"]])


def run(case: Case) -> None:
    """Choose by what the problem gives."""
    fields = set(case.problem)
    if {"equation", "psi", "m", "v"} <= fields:
        _stick_slip(case)
    elif "equation" in fields:
        _pair(case)
    elif {"cost", "complementarity"} <= fields:
        _with_complementarity(case)
    elif {"m", "g", "angle_deg", "mu"} <= fields:
        _incline(case)
    elif {"m", "v", "mu", "gap"} <= fields:
        _point_mass(case)
    else:
        raise AssertionError(f"no runner knows a complementarity problem with the fields {sorted(fields)}")


def _at_kappas(model: Model, thetas: list[dict[str, Any]]) -> list[Model]:
    models = [
        model.at(**{name: jnp.asarray(value, float) for name, value in theta.items()}) for theta in thetas
    ]
    for solved in models:
        status = status_of(solved.extra.result)
        assert status == "successful", f"kappa = {float(solved.theta['kappa'])}: {status}"
        gap = od.cones.SecondOrderCone(2).product if solved.extra.slack.size == 2 else jnp.multiply
        kappa = solved.theta["kappa"] * jnp.eye(solved.extra.slack.size)[0]
        product = gap(solved.extra.slack, solved.extra.cone_dual)
        oracle.small("central path", product - kappa, 1e-3 * float(solved.theta["kappa"]))
    return models


def _listed(models: list[Model]) -> Any:
    def values(key: str, want: Any) -> Any:
        if key in models[0].outputs:
            return np.stack([np.squeeze(model.outputs[key]) for model in models])
        found = [model.derivative(key) for model in models]
        return None if found[0] is None else np.stack([np.squeeze(as_array(value)) for value in found])

    return values


def _limits(values: Any, tol: Tolerance) -> Any:
    loose = Tolerance(max(tol.atol, 1e-5), tol.rtol)

    def rule(want: dict[str, Any]) -> None:
        for key, value in want.items():
            if key != "v":
                close(f"limit of {key}", np.squeeze(values(key, value)), np.squeeze(value), loose)

    return rule


def _pair(case: Case) -> None:
    """`z * s(z) = kappa` for a list of kappa."""
    problem = case.problem
    first = next(relation for relation in relations(problem["equation"]) if "kappa" in relation.names)
    match = re.fullmatch(r"\s*(\w+)\s*\*\s*\((.*)\)\s*", first.left.text)
    assert match, f"no runner knows the equation {first.left.text!r}"
    dual, slack = match[1], Formula(match[2])
    theta = {name: jnp.asarray(problem[name], float) for name in slack.names if name != dual}
    fn = KappaSolve(
        Pair(dual_name=dual, slack_formula=slack, cone=od.cones.NonnegativeOrthant(1)), _Named(dual)
    )
    model = Model(fn, {**theta, "kappa": jnp.asarray(1e-3)}, True)
    models = _at_kappas(model, [{"kappa": kappa} for kappa in problem["kappa"]])
    limit = _listed(_at_kappas(model, [{"kappa": _LIMIT}]))
    check(case, Findings("successful", [_listed(models)], {"limit": _limits(limit, case.tol)}))


class _Named(eqx.Module):
    """The dual by its name in the case."""

    name: str = eqx.field(static=True)

    def __call__(self, solution: od.Solution) -> dict[str, Any]:
        return {self.name: solution.cone_dual[0]}


def _friction_impulse(solution: od.Solution) -> dict[str, Any]:
    return {"b": solution.cone_dual[1]}


def _stick_slip(case: Case) -> None:
    """Friction impulse for lists of v and kappa, and its limits."""
    problem = case.problem
    theta = {"psi": problem["psi"], "m": problem["m"], "v": 0.0, "kappa": 1e-3}
    theta = {name: jnp.asarray(value, float) for name, value in theta.items()}
    model = Model(KappaSolve(StickSlip(), _friction_impulse), theta, True)
    pairs = zip(np.atleast_1d(problem["v"]), np.atleast_1d(problem["kappa"]), strict=True)
    models = _at_kappas(model, [{"v": v, "kappa": kappa} for v, kappa in pairs])
    speeds = case.expected.get("limits", {}).get("v", [])
    limit = _listed(_at_kappas(model, [{"v": v, "kappa": _LIMIT} for v in speeds]))
    check(case, Findings("successful", [_listed(models)], {"limits": _limits(limit, case.tol)}))


def _incline(case: Case) -> None:
    problem = case.problem
    friction = np.atleast_1d(problem["mu"])
    models = [contact.incline(problem["m"], problem["g"], problem["angle_deg"], mu) for mu in friction]
    check(case, Findings("successful", [_listed(models)]))


def _point_mass(case: Case) -> None:
    """Step of a point mass: `gap` and `gravity` with an optional time step `h`."""
    problem = case.problem
    h = problem.get("h", problem.get("dt", 1.0))
    v = as_array(problem["v"]) - np.asarray([0, 0, problem.get("gravity", 0.0) * h])
    model = contact.point_mass(problem["m"], v, problem["mu"], problem["gap"] / h, derivatives=True)
    outputs = model.outputs
    tangential = named(
        dlt_dmu=lambda: model.jacobian("lt", "mu"),
        dvafter_dv_tangential=lambda: model.jacobian("v_after", "v")[:2, :2],
        finite=lambda: finite("step", outputs["impulse"]),
    )
    values = [lambda key, want: outputs.get(key), tangential, lambda key, want: model.derivative(key)]
    check(case, Findings("successful", values))


def _with_complementarity(case: Case) -> None:
    """`min cost` with `0 <= a _|_ b >= 0`, as the relaxed product a b <= 1e-8 that a user would write."""
    problem = case.problem
    match = re.fullmatch(r"\s*0\s*<=\s*(.*?)\s*_\|_\s*(.*?)\s*>=\s*0\s*", problem["complementarity"])
    assert match, f"no runner knows the complementarity {problem['complementarity']!r}"
    left, right = match.groups()
    rows = tuple(relations(f"{left}>=0, {right}>=0, ({left})*({right})<=1e-8"))
    cost = Formula(problem["cost"])
    names = list(dict.fromkeys([*cost.names, *(name for row in rows for name in row.names)]))
    size = len(problem["starts"][0])
    variables = find_variables(names, {}, size)
    cone = od.cones.NonnegativeOrthant(len(rows))
    statement = FormulaProgram(
        cost=cost, variables=variables, equalities=(), inequalities=rows, lower=None, upper=None, cone=cone
    )
    statuses = []
    for start in problem["starts"]:
        fn = ProgramSolve(statement, jnp.asarray(start, float), _Cost(cost, variables))
        model = Model(fn, {})
        x = as_array(model.extra.primal)
        status = status_of(model.extra.result)
        statuses.append(status)
        if status != "successful":  # says so: from a symmetric start the corner cannot be left
            continue
        oracle.small("constraints", max(row.violation(variables.values(x, {})) for row in rows), 1e-6)

        def any_of(want: list[dict[str, Any]], x: np.ndarray = x, start: Any = start) -> None:
            distances = [np.max(np.abs(x - as_array(answer["x"]))) for answer in want]
            assert min(distances) <= case.tol.atol, (
                f"from {start}: x = {x.tolist()} is none of the minimizers"
            )

        source = named(x=lambda x=x: x, obj=lambda model=model: model.outputs["obj"])
        check(case, Findings(status, [source], {"any_of": any_of}))
    assert "successful" in statuses, f"no start was solved: {statuses}"


class _Cost(eqx.Module):
    cost: Formula = eqx.field(static=True)
    variables: Any

    def __call__(self, x: Any, theta: dict[str, Any]) -> Any:
        return self.cost(self.variables.values(x, theta))

    def __hash__(self) -> int:
        return hash((self.cost, self.variables.names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cost) and self.cost == other.cost and self.variables == other.variables

"""Runner of nonlinear programs, roots and fits given by formulas."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import oracle, settings
from cases.bank import Case
from cases.checking import Findings, as_array, check, finite, named, status_of
from cases.formula_problems import FormulaProgram, LeastSquares, Root, find_variables
from cases.formulas import Formula, Relation, relations
from cases.model import Model, asks_for_derivatives

_COSTS = ("cost", "objective", "minimise", "maximise", "residual")
_CONSTRAINTS = ("constraint", "constraints", "ineq", "inequality", "eq", "equality")
_FORMULAS = (*_COSTS, *_CONSTRAINTS)
_FIELDS = ("type", "start", "lb", "ub", "meaning", *_FORMULAS)


class ProgramSolve(eqx.Module):
    """theta -> outputs, for any problem whose decision variable is one vector."""

    problem: Any
    start: Any
    value: Any = eqx.field(static=True)
    settings: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], od.Solution]:
        solution = od.solve(
            self.problem,
            theta,
            solver=settings.solver(**dict(self.settings)),
            guess=self.start,
            adjoint=settings.AT_SOLUTION,
            throw=False,
        )
        x = solution.primal
        return {"x": x, "obj": jnp.asarray(self.value(x, theta))}, solution


def run(case: Case) -> None:
    """Solve, recompute, compare."""
    problem = case.problem
    theta = {k: jnp.asarray(v, float) for k, v in problem.items() if k not in _FIELDS and _numeric(v)}
    statement = _state(problem, theta)
    start = jnp.asarray(problem["start"], float)
    model = Model(
        ProgramSolve(statement, start, _value(statement)), theta, asks_for_derivatives(case.expected)
    )
    solution = model.extra
    status = status_of(solution.result)
    x, obj = as_array(solution.primal), float(model.outputs["obj"])
    plain = {name: as_array(value) for name, value in theta.items()}
    if status == "successful":
        _recompute(statement, solution, plain)

    def violation() -> float:
        return _violation(statement, x, plain)

    def at_most(limit: float, value: float, name: str) -> None:
        assert value <= limit, f"{name} is {value:.3g}, allowed {limit}"

    def max_violation(want: float) -> None:
        if status == "successful":
            at_most(want, violation(), "constraint violation of a claimed solution")

    def not_below(want: float) -> None:
        assert status != "successful" or obj >= want, f"claims an objective of {obj}, which is below {want}"

    def finite_rule(want: Any) -> None:
        finite("x", x, obj)

    names = {"x", "y", "z", "w", "p"} - set(theta)
    if isinstance(statement, Root | LeastSquares):
        names |= set(statement.variables.names)
    values = [
        lambda key, want: x if key in names else None,
        named(
            obj=lambda: obj,
            norm_x=lambda: np.linalg.norm(x),
            multiplier=lambda: as_array(solution.cone_dual)[0],
        ),
        lambda key, want: model.derivative(_primal_first(key, names)),
    ]
    rules = {
        "finite": finite_rule,
        "max_iterations": lambda want: at_most(want, int(solution.stats.steps), "number of steps"),
        "max_constraint_violation_if_solved": max_violation,
        "obj_not_below": not_below,
    }
    check(case, Findings(status, values, rules))


def _numeric(value: Any) -> bool:
    return not isinstance(value, str | dict) and np.asarray(value).dtype != object


def _primal_first(key: str, names: set[str]) -> str:
    """`dy_dp` is `dx_dp` where y is the decision variable."""
    return f"dx_{key[3:]}" if key[:1] == "d" and key[1:2] in names and key[2:3] == "_" else key


def _state(problem: dict[str, Any], theta: dict[str, Any]) -> Any:
    size = len(problem["start"])
    texts = [problem[key] for key in _CONSTRAINTS if key in problem]
    texts = [", ".join(text) if isinstance(text, list) else text for text in texts]
    found = [relation for text in texts for relation in relations(text)]
    cost = next((problem[key] for key in _COSTS if key in problem), None)
    assert cost is not None, f"no runner knows a nonlinear problem with the fields {sorted(problem)}"
    formula = Formula(cost)
    names = list(dict.fromkeys([*formula.names, *(name for relation in found for name in relation.names)]))
    variables = find_variables(names, theta, size)
    if "residual" in problem:
        values = variables.values(np.asarray(problem["start"], float), theta)
        rows = np.size(as_array(formula(values)))
        kind = Root if rows == size else LeastSquares
        return kind(residual=formula, variables=variables, cone=od.cones.NonnegativeOrthant(0))
    inequalities = tuple(relation for relation in found if relation.op != "=")
    lower, upper = (None if key not in problem else jnp.asarray(problem[key], float) for key in ("lb", "ub"))
    bounds = sum(0 if bound is None else bound.size for bound in (lower, upper))
    return FormulaProgram(
        cost=formula,
        variables=variables,
        equalities=tuple(relation for relation in found if relation.op == "="),
        inequalities=inequalities,
        lower=lower,
        upper=upper,
        cone=od.cones.NonnegativeOrthant(len(inequalities) + bounds),
        sign=-1.0 if "maximise" in problem else 1.0,
    )


def _value(statement: Any) -> Any:
    """The objective in the words of the case (not negated for a maximum)."""

    def value(x: Any, theta: dict[str, Any], xp: Any = jnp) -> Any:
        values = statement.variables.values(x, theta)
        if isinstance(statement, FormulaProgram):
            return statement.cost(values, xp)
        return xp.sum(xp.asarray(statement.residual(values, xp)) ** 2) / 2

    return value


def _rows(statement: FormulaProgram, x: np.ndarray, theta: dict[str, Any]) -> np.ndarray:
    """Everything that must be nonnegative, in NumPy."""
    values = statement.variables.values(x, theta)

    def excess(relation: Relation) -> float:
        return float(relation.excess(values, np)) * (1.0 if relation.op == ">=" else -1.0)

    rows = [np.asarray([excess(relation) for relation in statement.inequalities])]
    rows += [] if statement.lower is None else [x - as_array(statement.lower)]
    rows += [] if statement.upper is None else [as_array(statement.upper) - x]
    return np.concatenate(rows)


def _equalities(statement: FormulaProgram, x: np.ndarray, theta: dict[str, Any]) -> np.ndarray:
    values = statement.variables.values(x, theta)
    return as_array([relation.excess(values, np) for relation in statement.equalities])


def _violation(statement: Any, x: np.ndarray, theta: dict[str, Any]) -> float:
    if not isinstance(statement, FormulaProgram):
        return 0.0
    inequality = np.max(-_rows(statement, x, theta), initial=0.0)
    return max(float(inequality), float(np.max(np.abs(_equalities(statement, x, theta)), initial=0.0)))


def _recompute(statement: Any, solution: od.Solution, theta: dict[str, Any]) -> None:
    """Feasibility, and stationarity by central differences, in NumPy."""
    x = as_array(solution.primal)
    if isinstance(statement, Root):
        residual = statement.residual(statement.variables.values(x, theta), np)
        oracle.small("residual", residual, 1e-8)
        return
    oracle.small("feasibility", _violation(statement, x, theta), 1e-8)
    sign = getattr(statement, "sign", 1.0)
    gradient = sign * oracle.numerical_gradient(lambda w: _value(statement)(w, theta, np), x)
    if isinstance(statement, FormulaProgram):
        z, y = as_array(solution.cone_dual), as_array(solution.equality_dual)
        oracle.complementary(z, _rows(statement, x, theta), 1e-8)
        if z.size:
            gradient = gradient - z @ oracle.numerical_gradient(lambda w: _rows(statement, w, theta), x)
        if y.size:
            gradient = gradient + y @ oracle.numerical_gradient(lambda w: _equalities(statement, w, theta), x)
        oracle.small("stationarity", gradient, 1e-6 * (1 + np.max(np.abs(z), initial=0.0)))
    else:
        oracle.small("stationarity", gradient, 1e-6)

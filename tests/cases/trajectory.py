"""What can be said about a plan, and its recomputation in NumPy."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import oracle
from cases.checking import as_array, status_of


@dataclass
class Setup:
    """An optimal control problem, and the same functions for NumPy."""

    problem: od.TrajectoryProblem
    x0: np.ndarray
    step: Any  # (x, u, t) -> x_next
    cost: Any  # (states, controls) -> J
    lower: Any  # bounds of controls and states, None where absent
    upper: Any
    x_lower: Any
    x_upper: Any
    terminal: Any = None

    @property
    def constrained(self) -> bool:
        """Anything besides the dynamics."""
        return any(b is not None for b in (self.lower, self.upper, self.x_lower, self.x_upper, self.terminal))


def optimize(setup: Setup, controls: np.ndarray, tol: float) -> od.Plan:
    """The plan from these controls, as a user would ask for it."""
    inner = od.ILQR(cost_tol=1e-14, max_iterations=500)
    solver = (
        od.AugmentedLagrangian(inner, constraint_tol=max(min(tol / 10, 1e-6), 1e-9))
        if setup.constrained
        else inner
    )
    return od.optimize_trajectory(
        setup.problem, jnp.asarray(setup.x0), jnp.asarray(controls), solver=solver, throw=False
    )


def recompute(setup: Setup, plan: od.Plan, tol: float) -> None:
    """States are the rollout, the cost is the cost, the constraints hold, the gradient is zero."""
    if status_of(plan.result) != "successful":
        return
    X, U = as_array(plan.states), as_array(plan.controls)
    for t, u in enumerate(U):
        oracle.small("rollout", setup.step(X[t], u, t) - X[t + 1], 1e-9 * (1 + np.max(np.abs(X[t + 1]))))
    oracle.small("cost", setup.cost(X, U) - float(plan.cost), 1e-8 * (1 + abs(float(plan.cost))))
    oracle.small("constraints", violation(setup, X, U), max(tol, 1e-6))
    if not setup.constrained and U.size:
        scale = 1 + abs(float(plan.cost))
        gradient = oracle.numerical_gradient(
            lambda u: setup.cost(roll(setup, u), u.reshape(U.shape)), U.ravel(), 1e-5
        )
        oracle.small("stationarity", gradient, 1e-4 * scale)


def roll(setup: Setup, controls: np.ndarray) -> np.ndarray:
    """States of these controls."""
    states = [setup.x0]
    for t, u in enumerate(controls.reshape(setup.problem.horizon, -1)):
        states.append(setup.step(states[-1], u, t))
    return np.stack(states)


def violation(setup: Setup, X: np.ndarray, U: np.ndarray) -> float:
    """Largest violation of a bound or of the terminal equality."""
    rows = [np.zeros(1)]
    for value, low, high in ((U, setup.lower, setup.upper), (X, setup.x_lower, setup.x_upper)):
        rows += [] if low is None else [(low - value).ravel()]
        rows += [] if high is None else [(value - high).ravel()]
    if setup.terminal is not None:
        rows.append(np.abs(X[-1] - setup.terminal))
    return float(np.max(np.concatenate([row[np.isfinite(row)] for row in rows])))


def bounds(problem: dict[str, Any], name: str, size: int) -> tuple[Any, Any]:
    """`name_min` and `name_max` as vectors; None without either entry (null entries are infinite)."""
    found = []
    for side, sign in (("min", -1.0), ("max", 1.0)):
        value = problem.get(f"{name}_{side}")
        if value is None:
            found.append(None)
        else:
            entries = value if isinstance(value, list) else [value] * size
            found.append(np.asarray([sign * np.inf if entry is None else float(entry) for entry in entries]))
    return found[0], found[1]


def constraints(problem: dict[str, Any], nx: int, nu: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments for `TrajectoryProblem`, and for `Setup`."""
    lower, upper = bounds(problem, "u", nu)
    x_lower, x_upper = bounds(problem, "x", nx)
    terminal = problem.get("terminal_equality")
    keywords: dict[str, Any] = {}
    if lower is not None or upper is not None:
        low = np.full(nu, -np.inf) if lower is None else lower
        high = np.full(nu, np.inf) if upper is None else upper
        keywords["control_bounds"] = (_number(low), _number(high))
    if x_lower is not None or x_upper is not None:
        low = np.full(nx, -np.inf) if x_lower is None else x_lower
        high = np.full(nx, np.inf) if x_upper is None else x_upper
        keep_low, keep_high = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))

        def inside(x, *_):
            return jnp.concatenate([low[keep_low] - x[keep_low], x[keep_high] - high[keep_high]])

        keywords["stage_constraint"] = od.trajopt.Inequality(inside)
        keywords["terminal_constraint"] = [od.trajopt.Inequality(inside)]
    if terminal is not None:
        target = np.asarray(terminal, float)
        reach = od.trajopt.Equality(lambda x: x - target)
        keywords["terminal_constraint"] = [*keywords.get("terminal_constraint", []), reach]
    given = {"lower": lower, "upper": upper, "x_lower": x_lower, "x_upper": x_upper}
    return keywords, given | {"terminal": None if terminal is None else np.asarray(terminal, float)}


def _number(bound: np.ndarray) -> Any:
    return float(bound[0]) if np.all(bound == bound[0]) else bound


def start_controls(problem: dict[str, Any], N: int, nu: int) -> np.ndarray:
    """`initial_u`: zeros, one value per stage, or all of them."""
    given = problem.get("initial_u", "zeros")
    if isinstance(given, str):
        assert given == "zeros", f"no runner knows initial_u = {given!r}"
        return np.zeros((N, nu))
    return np.asarray(given, float).reshape(N, nu)

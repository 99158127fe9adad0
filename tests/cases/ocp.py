"""Runner of optimal control problems given by formulas."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import oracle
from cases.bank import Case, Tolerance
from cases.checking import Findings, as_array, check, check_status, close, finite, named, status_of
from cases.formulas import Formula, natural_order, split
from cases.trajectory import Setup, constraints, optimize, recompute, roll, start_controls

# Values of other starts, for the reader.
PROSE = frozenset({"J_other_starts"})


class Text:
    """Dynamics and costs of a problem: callable with JAX and with NumPy."""

    def __init__(self, problem: dict[str, Any]):
        updates = [part.split("+=", 1) for part in split(problem["dynamics"])]
        self.states = [name.strip() for name, _ in updates]
        self.updates = [Formula(text) for _, text in updates]
        self.stage = Formula(problem.get("stage", "0"))
        self.terminal = Formula(problem.get("terminal", "0"))
        known = {name: value for name, value in problem.items() if isinstance(value, int | float)}
        names = [name for f in (*self.updates, self.stage, self.terminal) for name in f.names]
        free = [
            n
            for n in dict.fromkeys(names)
            if n not in self.states and n not in known and not n.endswith("_next")
        ]
        controls = natural_order(free)
        if len(controls) > 1:  # u next to u1, u2 is the whole vector
            controls = [
                name
                for name in controls
                if not any(other != name and other.startswith(name) for other in controls)
            ]
        self.parameters = known
        self.controls = controls
        self.size = len(controls)

    def values(self, x: Any, u: Any, xp: Any) -> dict[str, Any]:
        """All names."""
        values = {**self.parameters, **{name: x[i] for i, name in enumerate(self.states)}}
        if u is None:
            return values
        values |= {name: u[i] for i, name in enumerate(self.controls)}
        return values if len(self.controls) == 1 else {**values, self.controls[0].rstrip("0123456789"): u}

    def step(self, x: Any, u: Any, t: Any, xp: Any = np) -> Any:
        """x_{t+1}; a state that was updated already is NAME_next."""
        values, new = self.values(x, u, xp), []
        for name, update in zip(self.states, self.updates, strict=True):
            new.append(update(values, xp))
            values[f"{name}_next"] = new[-1]
        return xp.stack([xp.asarray(value) for value in new])

    def cost(self, X: np.ndarray, U: np.ndarray) -> float:
        """J in NumPy."""
        stages = sum(self.stage(self.values(X[t], u, np), np) for t, u in enumerate(U))
        return float(stages + self.terminal(self.values(X[-1], None, np), np))

    def setup(self, problem: dict[str, Any], x0: Any) -> Setup:
        """The problem of the library."""
        keywords, given = constraints(problem, len(self.states), self.size)
        trajectory = od.TrajectoryProblem(
            od.dynamics.DiscreteDynamics(
                lambda x, u, t: self.step(x, u, t, jnp), len(self.states), self.size
            ),
            int(problem["N"]),
            lambda x, u, t: self.stage(self.values(x, u, jnp), jnp),
            lambda x: jnp.asarray(self.terminal(self.values(x, None, jnp), jnp), x.dtype),
            **keywords,
        )
        return Setup(trajectory, np.asarray(x0, float), self.step, self.cost, **given)


def run(case: Case) -> None:
    """From every start; a problem may also bring an initial state that must be refused."""
    problem, text = case.problem, Text(case.problem)
    N = int(problem["N"])
    x0 = problem.get("x0", problem.get("x0_good"))
    setup = text.setup(problem, x0)
    if "starts" in problem:
        starts = [
            np.broadcast_to(np.reshape(start, (-1, text.size)), (N, text.size)) for start in problem["starts"]
        ]
    else:
        starts = [start_controls(problem, N, text.size)]
    for i, start in enumerate(starts):
        plan = optimize(setup, np.array(start), case.tol.atol or 1e-6)
        recompute(setup, plan, case.tol.atol)
        stuck = _is_stationary(setup, np.array(start)) if i else False
        if stuck and status_of(plan.result) != "successful":
            continue  # a stationary start that is no minimum may end in an honest failure
        check(case, _findings(case, setup, text, plan, np.array(start)))


def _findings(case: Case, setup: Setup, text: Text, plan: od.Plan, start: np.ndarray) -> Findings:
    problem = case.problem
    X, U, J = as_array(plan.states), as_array(plan.controls), float(plan.cost)
    status = status_of(plan.result)

    def initial_cost() -> float:
        return setup.cost(roll(setup, start), start)

    def monotone(want: bool) -> None:
        costs = as_array(plan.stats.history.cost)
        costs = np.concatenate([[initial_cost()], costs[np.isfinite(costs)]])
        assert np.all(np.diff(costs) <= 1e-12 * np.abs(costs[:-1])), f"costs are {costs.tolist()}"

    def rollout(want: float) -> None:
        worst = max(np.max(np.abs(setup.step(X[t], u, t) - X[t + 1])) for t, u in enumerate(U))
        assert worst <= want, f"states leave the rollout of the controls by {worst:.3g}"

    def best(want: float) -> None:
        assert status == "successful", f"status is {status!r}"
        worst = want + case.tol.atol + case.tol.rtol * abs(want)
        assert J <= worst, f"J = {J}, the best known is {want}"

    def below(want: float) -> None:
        assert status == "successful", f"status is {status!r}"
        assert J <= want, f"J = {J}, must be below {want}"

    bad = _refused(case, text) if "x0_bad" in problem else None
    rules = {
        "monotone": monotone,
        "cost_monotone": monotone,
        "rollout_residual": rollout,
        "J_best": best,
        "J_from_zero_start": best,
        "accept_J_below": below,
        "finite": lambda want: finite("plan", X, U, J),
        "finite_good": lambda want: finite("plan", X, U, J),
        "J_initial": lambda want: close("J_initial", initial_cost(), want, _rounding(case)),
        "status_bad": lambda want: check_status(str(bad), want),
    }
    values = named(X=lambda: X, U=lambda: U, u=lambda: U, J=lambda: J)
    findings = Findings(status if bad is None else bad, [values], rules, PROSE)
    if "J_from_zero_start" in case.expected and np.any(start):
        rules["J_from_zero_start"] = lambda want: None
    return findings


def _rounding(case: Case) -> Tolerance:
    return Tolerance(atol=max(case.tol.atol, 1e-9), rtol=1e-9)


def _refused(case: Case, text: Text) -> str:
    """Status from the initial state where the dynamics is not defined."""
    problem = case.problem
    setup = text.setup(problem, problem["x0_bad"])
    plan = optimize(setup, start_controls(problem, int(problem["N"]), text.size), 1e-6)
    return status_of(plan.result)


def _is_stationary(setup: Setup, start: np.ndarray) -> bool:
    def cost(controls: np.ndarray) -> float:
        return setup.cost(roll(setup, controls), controls.reshape(start.shape))

    return bool(np.max(np.abs(oracle.numerical_gradient(cost, start.ravel()))) <= 1e-9)

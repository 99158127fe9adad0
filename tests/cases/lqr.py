"""Runner of linear-quadratic problems, with or without bounds."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from cases import oracle, settings
from cases.bank import Case
from cases.checking import Findings, as_array, check, close, finite, named, status_of
from cases.model import Model
from cases.trajectory import Setup, constraints, optimize, recompute, start_controls

PROSE = frozenset({"infinite_horizon"})  # about a solver that this library does not have


class Dynamics(eqx.Module):
    """x+ = A_t x + B_t u + c_t."""

    A: Any
    B: Any
    c: Any

    def __call__(self, x, u, t):
        return self.A[t] @ x + self.B[t] @ u + self.c[t]


class StageCost(eqx.Module):
    """1/2 x'Qx + x'M u + 1/2 u'Ru + q'x + r'u."""

    Q: Any
    M: Any
    R: Any
    q: Any
    r: Any

    def __call__(self, x, u, t):
        quadratic = x @ self.Q[t] @ x / 2 + x @ self.M[t] @ u + u @ self.R[t] @ u / 2
        return quadratic + self.q[t] @ x + self.r[t] @ u


class TerminalCost(eqx.Module):
    """1/2 x'Qf x + qf'x."""

    Qf: Any
    qf: Any

    def __call__(self, x):
        return x @ self.Qf @ x / 2 + self.qf @ x


def run(case: Case) -> None:
    """Optimize, recompute, compare; a `loss` asks for gradients through the whole problem."""
    if "loss" in case.problem:
        _through_the_problem(case)
        return
    LQRCase(case).check()


def read(problem: dict[str, Any]) -> dict[str, np.ndarray]:
    """All data with a leading time axis (the terminal cost without)."""
    N, nx = int(problem["N"]), len(problem["x0"])
    A, B = np.asarray(problem["A"], float), np.asarray(problem["B"], float)
    nu = B.shape[-1]
    shapes = {
        "A": (nx, nx),
        "B": (nx, nu),
        "c": (nx,),
        "Q": (nx, nx),
        "M": (nx, nu),
        "R": (nu, nu),
        "q": (nx,),
        "r": (nu,),
    }
    given = {**problem, "A": A, "B": B}
    data = {}
    for name, shape in shapes.items():
        value = np.asarray(given.get(name, np.zeros(shape)), float)
        value = value.reshape(shape) if value.size == int(np.prod(shape)) else value
        data[name] = value if value.ndim > len(shape) else np.broadcast_to(value, (N, *shape)).copy()
    data["Qf"] = np.asarray(problem["Qf"], float).reshape(nx, nx)
    data["qf"] = np.asarray(problem.get("qf", np.zeros(nx)), float)
    return data | {"x0": np.asarray(problem["x0"], float)}


def setup(problem: dict[str, Any], data: dict[str, np.ndarray]) -> Setup:
    """The problem of the library, and its functions in NumPy."""
    nx, nu = data["B"].shape[1:]
    keywords, given = constraints(problem, nx, nu)
    stage = StageCost(*(data[name] for name in "QMRqr"))
    terminal = TerminalCost(data["Qf"], data["qf"])
    dynamics = Dynamics(data["A"], data["B"], data["c"])
    device = [
        eqx.tree_at(lambda m: list(vars(m).values()), m, [jnp.asarray(v) for v in vars(m).values()])
        for m in (dynamics, stage, terminal)
    ]
    trajectory = od.TrajectoryProblem(
        od.dynamics.DiscreteDynamics(device[0], nx, nu), len(data["A"]), device[1], device[2], **keywords
    )

    def cost(X: np.ndarray, U: np.ndarray) -> float:
        return float(sum(stage(X[t], u, t) for t, u in enumerate(U)) + terminal(X[-1]))

    return Setup(trajectory, data["x0"], dynamics, cost, **given)


class LQRCase:
    """One linear-quadratic problem and its plan."""

    def __init__(self, case: Case):
        self.case, self.problem = case, case.problem
        self.data = read(case.problem)
        self.N, _, self.nu = self.data["B"].shape
        self.setup = setup(case.problem, self.data)
        start = start_controls(case.problem, self.N, self.nu)
        self.plan = optimize(self.setup, start, case.tol.atol or 1e-7)
        self.status = status_of(self.plan.result)
        self.X, self.U = as_array(self.plan.states), as_array(self.plan.controls)
        self.K = as_array(self.plan.gains)

    def check(self) -> None:
        """Everything that the case expects."""
        recompute(self.setup, self.plan, self.case.tol.atol)
        if self.problem.get("variant", {}).get("N") == 0:
            with pytest.raises(ValueError, match="horizon"):
                od.TrajectoryProblem(self.setup.problem.dynamics, 0, lambda x, u, t: 0.0, lambda x: 0.0)
        expected = dict(self.case.expected)
        prose = PROSE | ({"must_not"} if isinstance(expected.get("must_not"), str) else set())
        expected = {key: value for key, value in expected.items() if key not in prose}
        plan = self.plan
        values = named(
            X=lambda: self.X,
            U=lambda: self.U,
            J=lambda: plan.cost,
            K=lambda: self.K,
            K0=lambda: self.K[0],
            k=lambda: self.U - np.einsum("tij,tj->ti", self.K, self.X[:-1]),
            S0=lambda: plan.value_hessian,
            Quu=self.control_hessians,
            dJ_dx0=lambda: plan.value_gradient,
            dU_dx0=self.control_sensitivity,
            K_shape=lambda: self.K.shape[1:],
            U_shape=lambda: self.U.shape,
        )
        rules = {
            "finite": lambda want: finite("plan", self.X, self.U, plan.cost),
            "S0_symmetry": self._symmetric,
            "max_iterations": self._iterations,
            "saturated_steps": self._saturated,
            "bound_active": lambda want: self._bound_active(),
            "stationary_point_is_a_maximum": self._not_the_maximum,
        }
        trimmed = Case(
            self.case.id, self.case.group, self.case.description, self.problem, expected, self.case.tol
        )
        check(trimmed, Findings(self.status, [values], rules))

    def control_hessians(self) -> np.ndarray:
        """Q_uu of every stage, from the value of the returned gains."""
        S, out = self.data["Qf"] / 2 + self.data["Qf"].T / 2, []
        for t in reversed(range(self.N)):
            A, B, K = self.data["A"][t], self.data["B"][t], self.K[t]
            Q, M, R = self.data["Q"][t], self.data["M"][t], self.data["R"][t]
            out.append(R + B.T @ S @ B)
            closed = A + B @ K
            S = closed.T @ S @ closed + Q + M @ K + K.T @ M.T + K.T @ R @ K
        return np.stack(out[::-1])

    def control_sensitivity(self) -> np.ndarray:
        """dU/dx0 along the feedback law."""
        change, out = np.eye(self.X.shape[1]), []
        for t in range(self.N):
            out.append(self.K[t] @ change)
            change = self.data["A"][t] @ change + self.data["B"][t] @ out[-1]
        return np.stack(out)

    def _symmetric(self, want: float) -> None:
        S = as_array(self.plan.value_hessian)
        oracle.small("asymmetry of S0", S - S.T, want)

    def _iterations(self, want: int) -> None:
        assert int(self.plan.stats.inner_iterations) <= want, (
            f"{int(self.plan.stats.inner_iterations)} iterations"
        )

    def _saturated(self, want: list[int]) -> None:
        edge = np.zeros(self.N, bool)
        for bound in (self.setup.lower, self.setup.upper):
            if bound is not None:
                edge |= np.any(np.abs(self.U - bound) <= 10 * self.case.tol.atol, axis=1)
        assert np.flatnonzero(edge).tolist() == want, f"saturated at {np.flatnonzero(edge).tolist()}"

    def _bound_active(self) -> None:
        pairs = ((self.U, self.setup.lower), (self.U, self.setup.upper))
        pairs += ((self.X, self.setup.x_lower), (self.X, self.setup.x_upper))
        gaps = [np.min(np.abs(value - bound)) for value, bound in pairs if bound is not None]
        assert min(gaps) <= 10 * self.case.tol.atol, f"no bound is active (nearest: {min(gaps):.3g})"

    def _not_the_maximum(self, want: dict[str, float]) -> None:
        assert self.status != "successful" or np.max(np.abs(self.U - want["u"])) > 1e-3, "claims a maximum"


class LinearQuadraticProgram(eqx.Module):
    """The whole problem as one quadratic program in (u_0, x_1, u_1, ..., x_N), differentiable by its data."""

    N: int = eqx.field(static=True)

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], od.Solution]:
        N, A, B = self.N, theta["A"], theta["B"]
        nx, nu = B.shape
        Q = theta["Q"] + jnp.diag(theta["Q_diag"])
        zero = jnp.zeros((nx, nx))
        states = jnp.kron(jnp.eye(N), jnp.eye(nx)) - jnp.kron(jnp.eye(N, k=-1), A)
        equality = jnp.concatenate([-jnp.kron(jnp.eye(N), B), states], axis=1)
        rhs = jnp.concatenate([A @ theta["x0"], jnp.zeros((N - 1) * nx)])
        last = jnp.zeros((N, N)).at[-1, -1].set(1.0)
        cost_x = jnp.kron(jnp.eye(N) - last, Q) + jnp.kron(last, theta["Qf"])
        cost_u = jnp.kron(jnp.eye(N), theta["R"])
        corner = jnp.zeros((N * nu, N * nx))
        P = jnp.block([[cost_u, corner], [corner.T, cost_x]])
        program = od.QuadraticProgram(P, jnp.zeros(N * (nx + nu)) + zero[0, 0], equality, rhs)
        solution = od.solve(program, solver=settings.solver(), adjoint=settings.AT_SOLUTION, throw=False)
        U = solution.primal[: N * nu].reshape(N, nu)
        x0 = theta["x0"]
        J = solution.primal @ P @ solution.primal / 2 + x0 @ Q @ x0 / 2
        return {"L": jnp.sum(U**2), "U": U, "J": J}, solution


def _through_the_problem(case: Case) -> None:
    """Gradient of a loss on the optimal controls by the data."""
    assert case.problem["loss"] == "sum of squared optimal controls", (
        f"no runner knows the loss {case.problem['loss']!r}"
    )
    data = {name: jnp.asarray(case.problem[name], float) for name in ("A", "B", "Q", "R", "Qf", "x0")}
    theta = {**data, "Q": data["Q"] - jnp.diag(jnp.diag(data["Q"])), "Q_diag": jnp.diag(data["Q"])}
    model = Model(LinearQuadraticProgram(int(case.problem["N"])), theta, True)
    outputs = {name: as_array(value) for name, value in model.outputs.items()}

    def gradients(want: dict[str, Any]) -> None:
        for name, value in want.items():
            assert name in theta, f"no check knows the gradient by {name!r}"
            close(f"grad of {name}", model.jacobian("L", name), value, case.tol)

    status = status_of(model.extra.result)
    findings = Findings(status, [lambda key, want: outputs.get(key)], {"grad": gradients})
    check(case, findings)

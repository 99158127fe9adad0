"""Runner of a bi-level problem: penalty of a lasso chosen by a validation loss."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import settings
from cases.bank import Case
from cases.checking import Findings, as_array, check, status_of
from cases.model import Model


class Lasso(eqx.Module):
    """`min 1/2 |X (u - v) - y|^2 + lam 1'(u + v)` with u, v >= 0, then `1/2 |Xv w - yv|^2`."""

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], od.Solution]:
        X, y = theta["X"], theta["y"]
        n = X.shape[1]
        both = jnp.concatenate([X, -X], axis=1)
        q = theta["lam"] * jnp.ones(2 * n) - both.T @ y
        program = od.QuadraticProgram(both.T @ both, q, None, None, -jnp.eye(2 * n), jnp.zeros(2 * n))
        solution = od.solve(program, solver=settings.solver(), adjoint=settings.AT_SOLUTION, throw=False)
        w = solution.primal[:n] - solution.primal[n:]
        return {"w": w, "val": jnp.sum((theta["Xv"] @ w - theta["yv"]) ** 2) / 2}, solution


def run(case: Case) -> None:
    """Solve and differentiate the validation loss by everything."""
    theta = {name: jnp.asarray(case.problem[name], float) for name in ("X", "y", "lam", "Xv", "yv")}
    model = Model(Lasso(), theta, True)
    status = status_of(model.extra.result)
    X, y, w = (as_array(a) for a in (theta["X"], theta["y"], model.outputs["w"]))
    if status == "successful":  # soft threshold: |X'(y - Xw)| <= lam
        assert np.max(np.abs(X.T @ (y - X @ w))) <= float(theta["lam"]) + 1e-6
    outputs = {name: as_array(value) for name, value in model.outputs.items()}
    findings = Findings(status, [lambda key, want: outputs.get(key), lambda key, want: model.derivative(key)])
    check(case, findings)

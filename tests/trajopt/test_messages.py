"""Arguments that do not fit: one clear line each."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import DiscreteDynamics
from optdyn.trajopt import Equality

library: Any = od  # what it is given here is wrong on purpose
DYNAMICS = DiscreteDynamics(lambda x, u, t: x, 2, 1)


def problem(**changes):
    given = {
        "dynamics": DYNAMICS,
        "horizon": 4,
        "stage_cost": lambda x, u, t: jnp.sum(u**2),
        "terminal_cost": lambda x: jnp.sum(x**2),
    }
    return od.TrajectoryProblem(**given | changes)


def one_line(error):
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True])
def test_horizon(horizon):
    with pytest.raises(ValueError, match="horizon must be an integer >= 1") as error:
        problem(horizon=horizon)
    one_line(error)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0.0,), "must be a pair"),
        ((np.zeros(2), 1.0), r"lower control bound must have shape \(1,\), got \(2,\)"),
        ((0.0, np.nan), "upper control bound contains NaN"),
        ((1.0, 0.0), "at most its upper bound"),
    ],
)
def test_control_bounds(bounds, message):
    with pytest.raises(ValueError, match=message) as error:
        problem(control_bounds=bounds)
    one_line(error)


@pytest.mark.parametrize(
    ("x0", "controls", "message"),
    [
        (np.zeros(3), np.zeros((4, 1)), r"x0 must have shape \(2,\), got \(3,\)"),
        (np.zeros(2), np.zeros((5, 1)), r"\(horizon, control_dim\) = \(4, 1\), got \(5, 1\)"),
        (np.zeros(2), np.zeros(4), r"\(horizon, control_dim\) = \(4, 1\), got \(4,\)"),
    ],
)
def test_shapes(x0, controls, message):
    with pytest.raises(ValueError, match=message) as error:
        library.optimize_trajectory(problem(), x0, controls)
    one_line(error)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"stage_cost": lambda x, u, t: u}, ValueError, r"stage_cost must return a scalar, got shape \(1,\)"),
        ({"terminal_cost": lambda x: x}, ValueError, r"terminal_cost must return a scalar"),
        ({"terminal_constraint": lambda x: x}, TypeError, "terminal_constraint takes Equality"),
        ({"stage_constraint": [lambda x, u, t: x]}, TypeError, "stage_constraint takes Equality"),
        ({"terminal_constraint": Equality(jnp.sum)}, ValueError, "a constraint must return a vector"),
    ],
)
def test_functions(changes, kind, message):
    with pytest.raises(kind, match=message):
        library.optimize_trajectory(problem(**changes), np.zeros(2), np.zeros((4, 1)))


def test_ilqr_refuses_constraints():
    constrained = problem(control_bounds=(-1.0, 1.0))
    with pytest.raises(ValueError, match="ILQR takes no constraints") as error:
        library.optimize_trajectory(constrained, np.zeros(2), np.zeros((4, 1)), solver=od.ILQR())
    one_line(error)


def test_wrong_types():
    with pytest.raises(TypeError, match="dynamics must be an AbstractDynamics"):
        problem(dynamics=lambda x, u, t: x)
    with pytest.raises(TypeError, match="problem must be a TrajectoryProblem"):
        library.optimize_trajectory(DYNAMICS, np.zeros(2), np.zeros((4, 1)))
    with pytest.raises(TypeError, match="solver must be AugmentedLagrangian or ILQR"):
        library.optimize_trajectory(problem(), np.zeros(2), np.zeros((4, 1)), solver=library.InteriorPoint())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: library.ILQR(max_iterations=0), "max_iterations must be at least 1"),
        (lambda: library.ILQR(cost_tol=float("nan")), "cost_tol must be >= 0"),
        (lambda: library.ILQR(hessian="newton"), "hessian must be"),
        (lambda: library.AugmentedLagrangian(constraint_tol=0.0), "constraint_tol must be positive"),
        (lambda: library.AugmentedLagrangian(max_rounds=0), "max_rounds must be at least 1"),
    ],
)
def test_settings(build, message):
    with pytest.raises(ValueError, match=message) as error:
        build()
    one_line(error)


def test_inner_solver_must_be_ilqr():
    with pytest.raises(TypeError, match="inner must be an ILQR"):
        library.AugmentedLagrangian(inner=od.InteriorPoint())

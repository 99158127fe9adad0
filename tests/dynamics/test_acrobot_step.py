"""One step of the acrobot with joint limits: derivatives, random states, honesty."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.differences import central, relative_error
from optdyn.cones import NonnegativeOrthant
from optdyn.dynamics import DiscreteMechanics, ImpactProblem
from optdyn.systems import _acrobot as acrobot
from reference import acrobot as reference

H, KAPPA = acrobot.STEP, acrobot.CENTRAL_PATH
DYNAMICS = acrobot.dynamics(smoothing=None)  # derivatives of the simulated map itself
T = jnp.asarray(0)
advance: Any = eqx.filter_jit(DYNAMICS.advance)
sensitivities: Any = eqx.filter_jit(DYNAMICS.sensitivities)


def slopes(x, u, smoothing=KAPPA):
    local = sensitivities(x, u, T, None, jnp.asarray(smoothing))
    return np.asarray(local.A), np.asarray(local.B)


# (state, control): far from the limits; pressed against the upper limit; leaving it.
POINTS = {
    "free": (np.array([0.1, 0.2, 0.15, 0.25]), np.array([0.3])),
    "at_the_limit": (np.array([0.1, 1.53, 0.12, 1.56]), np.array([0.5])),
    "leaving": (np.array([0.3, 1.568, 0.25, 1.566]), np.array([-0.6])),
}


@pytest.mark.parametrize("point", POINTS)
def test_derivatives_against_differences(point):
    x, u = POINTS[point]
    A, B = slopes(x, u)
    reference_A = central(lambda x: advance(x, u, T)[0], x, 2e-5)
    reference_B = central(lambda u: advance(x, u, T)[0], u, 2e-5)
    assert relative_error(A, reference_A) <= 1e-6
    assert relative_error(B, reference_B) <= 1e-6


def test_limit_is_felt_where_it_should():
    impulses = {name: advance(*POINTS[name], T)[1].outputs["impulse"] for name in POINTS}
    assert impulses["free"].max() < 1e-3
    assert impulses["at_the_limit"][0] > 0.1


def test_smoothing_reaches_beyond_the_limit():
    x, u = POINTS["free"]
    assert np.abs(slopes(x, u, 1e-1)[0] - slopes(x, u)[0]).max() > 1e-4


# The same step as a complementarity problem, to choose how it is differentiated.
SOLVER = od.InteriorPoint(central_path=KAPPA, max_steps=20)
PROBLEM = ImpactProblem(
    mechanics=DiscreteMechanics(acrobot.mechanism(), jnp.asarray(H)), cone=NonnegativeOrthant(2)
)


def next_angles(v, adjoint):
    """Step as a function of v = (state, control)."""
    momentum = PROBLEM.mechanics.momentum_after(v[:2], v[2:4])
    theta = {"momentum": momentum, "q1": v[2:4], "impulse": v[4:]}
    return od.solve(PROBLEM, theta, solver=SOLVER, guess=v[2:4], adjoint=adjoint, throw=False).primal


@pytest.fixture(scope="module")
def jacobian():
    reverse = od.ImplicitAdjoint(smoothing=None)
    return eqx.filter_jit(jax.jacrev(lambda v: next_angles(v, reverse)))


@pytest.mark.parametrize("point", POINTS)
def test_adjoints_agree(point, jacobian, other_jacobians):
    v = jnp.asarray(np.concatenate(POINTS[point]))
    reverse = np.asarray(jacobian(v))
    A, B = slopes(v[:4], v[4:])
    np.testing.assert_allclose(np.concatenate([A, B], axis=1)[2:], reverse, rtol=1e-8, atol=1e-9)
    for other in other_jacobians:
        assert relative_error(other(v), reverse) <= 1e-8


@pytest.fixture(scope="module")
def other_jacobians():
    forward = od.ImplicitAdjoint(smoothing=None, mode="forward")
    return [
        eqx.filter_jit(jax.jacfwd(lambda v: next_angles(v, forward))),
        eqx.filter_jit(jax.jacfwd(lambda v: next_angles(v, od.UnrolledAdjoint()))),
    ]


@pytest.mark.parametrize("point", POINTS)
def test_second_derivatives_against_differences(point, jacobian, hessian):
    v = np.concatenate(POINTS[point])
    assert relative_error(hessian(jnp.asarray(v)), central(jacobian, v, 1e-5)) <= 1e-4


@pytest.fixture(scope="module")
def hessian():
    reverse = od.ImplicitAdjoint(smoothing=None)
    return eqx.filter_jit(jax.jacrev(jax.jacrev(lambda v: next_angles(v, reverse))))


def random_steps(rng, count):
    q = np.stack([rng.uniform(-np.pi, np.pi, count), rng.uniform(-np.pi / 2, np.pi / 2, count)], axis=1)
    v = rng.uniform(-10, 10, (count, 2))
    return np.concatenate([q - H * v, q], axis=1), rng.uniform(-5, 5, (count, 1))


def test_ten_thousand_random_steps(rng):
    x, u = random_steps(rng, 10_000)
    # One after the other: a batch would go on until its hardest member is solved.
    batch = eqx.filter_jit(lambda x, u: jax.lax.map(lambda xu: DYNAMICS.advance(xu[0], xu[1], T), (x, u)))
    x_next, info = jax.tree.map(np.asarray, batch(x, u))
    solved = np.asarray(info.result == od.RESULTS.successful)
    assert solved.mean() >= 0.9999
    assert info.steps[solved].max() <= 25
    residuals = [
        reference.residual(x[i], u[i], x_next[i], info.outputs["impulse"][i], H, KAPPA)
        for i in np.flatnonzero(solved)
    ]
    assert max(residuals) <= 1e-8  # none is called solved falsely
    # Laws: no penetration, limits push only, and no more than kappa over the gap.
    elbow, impulse = x_next[solved, 3], info.outputs["impulse"][solved]
    gaps = np.stack([np.pi / 2 - elbow, elbow + np.pi / 2], axis=1)
    assert gaps.min() > 0
    assert impulse.min() > 0
    assert np.abs(impulse * gaps - KAPPA).max() <= 1e-8


def test_warm_start_gives_the_same_answer(rng):
    x, u = POINTS["at_the_limit"]
    _, info = advance(x, u, T)
    for change in 0.2 * rng.normal(size=(5, 1)):
        cold, _ = advance(x, u + change, T)
        warm, after = advance(x, u + change, T, info.warm)
        np.testing.assert_allclose(warm, cold, atol=1e-9)
        assert after.steps <= 12


def test_nan_state_is_named():
    _, info = advance(np.full(4, np.nan), np.zeros(1), T)
    assert od.result_name(info.result) == "nonfinite_input"
    assert info.steps == 0

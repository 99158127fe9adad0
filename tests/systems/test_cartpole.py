"""Cart-pole with friction: published trajectories, the laws on random steps, derivatives, plans."""

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.differences import central, relative_error
from helpers.plans import check_panels, check_pictures, solve
from optdyn.dynamics import DiscreteMechanics, Mechanism, Motion
from optdyn.systems import _cartpole as cartpole
from optdyn.systems import available, load
from reference import cartpole as reference

DATA = json.loads((Path(__file__).parent.parent / "data" / "cartpole_reference.json").read_text())
H, KAPPA = cartpole.STEP, cartpole.CENTRAL_PATH
T = jnp.asarray(0)
COEFFICIENT = 0.35
DYNAMICS = cartpole.dynamics(COEFFICIENT, smoothing=None)
advance: Any = eqx.filter_jit(DYNAMICS.advance)


@pytest.mark.parametrize("variant", ["friction_0.01", "friction_0.1", "friction_0.25", "friction_0.35"])
def test_published_trajectories_satisfy_the_published_form(variant):
    saved = {name: np.array(values) for name, values in DATA[variant].items()}
    X, U, b = saved["states"], saved["controls"], saved["friction_impulses"]
    limit = reference.friction_limit(float(variant.split("_")[1]), H)
    steps = list(zip(X[:-1], U, X[1:], b, strict=True))
    rows = np.array([reference.balance(*step, H, paper=True) for step in steps])
    assert np.abs(rows).max() <= 1e-7
    law = reference.friction_law((X[1:, 2:] - X[1:, :2]) / H, b, limit, 1e-5)
    assert np.abs(law).max() <= 1e-7

    mechanics = DiscreteMechanics(cartpole.MECHANISM, jnp.asarray(H), "paper_compat")

    def balance(x, u, x_next, b):
        momentum = mechanics.momentum_after(x[:2], x[2:])
        return mechanics.balance(momentum, x[2:], x_next[2:], u, jnp.zeros(0)) + b

    np.testing.assert_allclose(jax.vmap(balance)(X[:-1], U, X[1:], b), rows, atol=1e-12)


def check_laws(states, controls, friction_impulses, coefficient, paper=False, coupled=False):
    """Cone, dissipation and momentum of steps, recomputed in NumPy: [k, 4], [k, 1] -> [k, 4], [k, 2]."""
    x, x_next = states
    limit = np.tile(reference.friction_limit(coefficient, H), (len(x), 1))
    if coupled:
        steps = zip(x, x_next, strict=True)
        limit = np.array([reference.coupled_limit(coefficient, *step, H) for step in steps])
    b = friction_impulses
    slip = (x_next[:, 2:] - x_next[:, :2]) / H
    assert np.all(np.abs(b) <= limit)
    assert np.all(b * slip <= 0)
    rows = [reference.balance(*step, H, paper) for step in zip(x, controls, x_next, b, strict=True)]
    assert np.abs(rows).max() <= 1e-8
    assert np.abs(reference.friction_law(slip, b, limit, KAPPA)).max() <= 1e-7
    # What friction takes in a step is what Coulomb says, to within the central path.
    assert np.abs(np.abs(b * slip) - limit * np.abs(slip)).max() <= KAPPA


@pytest.mark.parametrize(
    "paper", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["variational", "published"]
)
def test_laws_hold_on_random_steps(paper, rng):
    steps = 1000
    q, v = rng.uniform(-3, 3, (steps, 2)), rng.uniform(-5, 5, (steps, 2))
    v[: steps // 2] *= 0.01  # half of them start at the edge of sticking
    x, u = np.concatenate([q, q + H * v], axis=1), rng.uniform(-1, 1, (steps, 1))
    dynamics = cartpole.dynamics(COEFFICIENT, paper, smoothing=None)
    x_next, info = jax.jit(jax.vmap(dynamics.advance, (0, 0, None)))(jnp.asarray(x), jnp.asarray(u), T)
    assert np.all(np.asarray(info.result == od.RESULTS.successful))
    b = np.asarray(info.outputs["friction_impulse"])
    check_laws((x, np.asarray(x_next)), u, b, COEFFICIENT, paper)
    speed = np.abs(np.asarray(x_next)[:, 2] - x[:, 2]) / H
    assert 100 < np.sum(speed < 0.01) < 900  # some stick, some slide


def test_laws_hold_on_random_steps_with_loads_from_the_motion(rng):
    steps = 1000
    q, v = rng.uniform(-3, 3, (steps, 2)), rng.uniform(-5, 5, (steps, 2))
    v[: steps // 2] *= 0.01
    v[-100:, 1] = rng.choice([-1, 1], 100) * rng.uniform(9, 12, 100)  # the pole lifts the cart when it is up
    x, u = np.concatenate([q, q + H * v], axis=1), rng.uniform(-1, 1, (steps, 1))
    dynamics = cartpole.dynamics(COEFFICIENT, smoothing=None, coupled=True)
    x_next, info = jax.jit(jax.vmap(dynamics.advance, (0, 0, None)))(jnp.asarray(x), jnp.asarray(u), T)
    solved = np.asarray(info.result == od.RESULTS.successful)
    assert solved[:-100].all()
    assert solved.mean() >= 0.99  # a few of the fast ones have no solution nearby
    x, u, x_next = x[solved], u[solved], np.asarray(x_next)[solved]
    b, limit = (np.asarray(info.outputs[f"friction_{name}"])[solved] for name in ("impulse", "limit"))
    check_laws((x, x_next), u, b, COEFFICIENT, coupled=True)
    # The load is what the momenta say, and not the weight.
    expected = [reference.coupled_limit(COEFFICIENT, *step, H) for step in zip(x, x_next, strict=True)]
    np.testing.assert_allclose(limit, expected, atol=1e-8)
    ratio = limit / reference.friction_limit(COEFFICIENT, H)
    assert ratio.min() < 0.5
    assert ratio.max() > 2
    rail = np.array([reference.reactions(*step, H)[0] for step in zip(x, x_next, strict=True)])
    assert rail.min() < 0


def free_energy(q, v):
    """Kinetic energy of cart and pole in pieces: q = (cart x, height; hinge of the pole x, height; angle)."""
    tip = v[2:4] + cartpole.LENGTH * v[4] * jnp.stack([jnp.cos(q[4]), jnp.sin(q[4])])
    return (cartpole.CART_MASS * v[:2] @ v[:2] + cartpole.POLE_MASS * tip @ tip) / 2


def free_height(q):
    pole = cartpole.POLE_MASS * (q[3] - cartpole.LENGTH * jnp.cos(q[4]))
    return cartpole.GRAVITY * (cartpole.CART_MASS * q[1] + pole)


def test_reactions_hold_the_pieces_together(rng):
    """Cart and pole as free bodies move as they did once rail and hinge push them with the reactions."""
    free = Mechanism(
        kinetic_energy=free_energy,
        potential_energy=free_height,
        input_map=lambda q: jnp.eye(5),
        num_positions=5,
        num_inputs=5,
    )
    mechanics = DiscreteMechanics(free, jnp.asarray(H))

    def embed(q):
        return jnp.stack([q[0], jnp.zeros(()), q[0], jnp.zeros(()), q[1]])

    for _ in range(20):
        q0, q1, q2 = jnp.asarray(rng.uniform(-3, 3, (3, 2)))
        rail, hinge = cartpole.reactions(Motion(q0, q1, q2, jnp.asarray(H)))
        push = jnp.concatenate([-hinge[:1], rail[None] - hinge[1:], hinge, jnp.zeros(1)])
        momentum = mechanics.momentum_after(embed(q0), embed(q1))
        rows = mechanics.balance(momentum, embed(q1), embed(q2), push, jnp.zeros(0))
        np.testing.assert_allclose(rows[1:4], 0, atol=1e-8)  # left: along the rail, about the hinge


# (velocities before, control): both joints slide; the cart sticks although it is pushed; both stick.
MODES = {
    "slip": (np.array([0.8, -1.5]), np.array([0.3])),
    "rail_sticks": (np.array([0.0, 2.0]), np.array([0.05])),
    "stick": (np.array([0.0, 0.0]), np.array([0.02])),
}
sensitivities: Any = eqx.filter_jit(DYNAMICS.sensitivities)


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_with_loads_from_the_motion(mode):
    dynamics = cartpole.dynamics(COEFFICIENT, smoothing=None, coupled=True)
    v, u = MODES[mode]
    q = np.array([0.1, 0.0 if mode == "stick" else 0.4])
    x = np.concatenate([q - H * v, q])
    step: Any = eqx.filter_jit(dynamics.step)
    local = eqx.filter_jit(dynamics.sensitivities)(jnp.asarray(x), jnp.asarray(u), T)
    difference_A = central(lambda x: step(jnp.asarray(x), jnp.asarray(u), T), x, 1e-5)
    difference_B = central(lambda u: step(jnp.asarray(x), jnp.asarray(u), T), u, 1e-5)
    assert relative_error(local.A, difference_A) <= 1e-5
    assert relative_error(local.B, difference_B) <= 1e-5


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_against_differences(mode):
    v, u = MODES[mode]
    q = np.array([0.1, 0.0 if mode == "stick" else 0.4])
    x = np.concatenate([q - H * v, q])
    local = sensitivities(jnp.asarray(x), jnp.asarray(u), T)
    difference_A = central(lambda x: advance(jnp.asarray(x), jnp.asarray(u), T)[0], x, 1e-5)
    difference_B = central(lambda u: advance(jnp.asarray(x), jnp.asarray(u), T)[0], u, 1e-5)
    assert relative_error(local.A, difference_A) <= 1e-5
    assert relative_error(local.B, difference_B) <= 1e-5
    _, info = advance(jnp.asarray(x), jnp.asarray(u), T)
    ratio = np.abs(info.outputs["friction_impulse"]) / reference.friction_limit(COEFFICIENT, H)
    sliding = {"slip": [True, True], "rail_sticks": [False, True], "stick": [False, False]}[mode]
    np.testing.assert_array_equal(ratio > 0.95, sliding)


def check_plan(scenario, plan):
    label = scenario.variant
    paper, coupled = scenario.variant.endswith("_paper"), scenario.variant.endswith("_coupled")
    assert od.result_name(plan.result) == "successful", label
    assert plan.constraint_violation <= (5e-3 if paper else 1e-3), label
    assert scenario.goal_error(plan) <= (5e-3 if paper else 1e-3), label
    assert np.all(np.asarray(plan.step_info.result == od.RESULTS.successful)), label
    if scenario.variant != "frictionless":
        states, controls = np.asarray(plan.states), np.asarray(plan.controls)
        b = np.asarray(plan.step_info.outputs["friction_impulse"])
        coefficient = float(scenario.variant.split("_")[1])
        check_laws((states[:-1], states[1:]), controls, b, coefficient, paper, coupled)
    check_pictures(scenario, plan)


def test_default_variant_swings_up():
    scenario = load("cartpole")
    plan = solve(scenario)
    check_plan(scenario, plan)
    check_panels(scenario, plan)


def test_seeds_and_frictions_share_compiled_code():
    keys = {
        jax.tree.structure(load("cartpole", v, seed=s).problem)
        for v in ("friction_0.1", "friction_1.0")
        for s in (0, 1)
    }
    assert len(keys) == 1


# Largest cost and largest median number of inner iterations over ten seeds.
BOUNDS = {
    "frictionless": (1.89, 284),
    "friction_0.01": (2.07, 284),
    "friction_0.1": (4.18, 284),
    "friction_0.25": (52.5, 284),
    "friction_0.35": (32.6, 284),
    "friction_0.5": (60.0, 284),
    "friction_0.75": (60.0, 284),
    "friction_1.0": (60.0, 284),
    "friction_0.01_paper": (5.73, 126),
    "friction_0.1_paper": (11.94, 188),
    "friction_0.25_paper": (32.5, 236),
    "friction_0.35_paper": (69.0, 206),
    "friction_0.1_coupled": (6.6, 284),
    "friction_0.25_coupled": (22.6, 284),
    "friction_0.35_coupled": (44.4, 284),
    "friction_0.5_coupled": (205.0, 284),
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", available()["cartpole"])
def test_every_variant_swings_up_for_ten_seeds(variant):
    cost, iterations = BOUNDS[variant]
    plans = []
    for seed in range(10):
        scenario = load("cartpole", variant, seed=seed)
        plans.append(solve(scenario))
        check_plan(scenario, plans[-1])
        assert plans[-1].cost <= cost, f"{variant}, seed {seed}"
    assert np.median([int(plan.stats.inner_iterations) for plan in plans]) <= iterations

"""Discrete mechanics: convergence, energy, published trajectories, units, arguments."""

import itertools
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import DiscreteMechanics, Mechanism, mechanical_dynamics
from optdyn.systems import _acrobot as acrobot
from reference import acrobot as reference

DATA = Path(__file__).parent.parent / "data" / "acrobot_reference.json"
DAMPED = acrobot.mechanism(limits=False)
FREE = eqx.tree_at(lambda m: m.force, DAMPED, lambda q, v: jnp.zeros_like(v))
Q, V = np.array([0.9, -0.5]), np.array([0.5, 1.5])
NO_INPUT, NO_IMPULSE = jnp.zeros(1), jnp.zeros(0)


@eqx.filter_jit
def simulate(mechanics, q0, q1, steps, save_every):
    """Positions (previous, current) after every `save_every` steps, `steps` times, by Newton's method."""

    def advance(_, pair):
        q0, q1 = pair
        momentum = mechanics.momentum_after(q0, q1)

        def balance(q2):
            return mechanics.balance(momentum, q1, q2, NO_INPUT, NO_IMPULSE)

        def newton(_, q2):
            return q2 - jnp.linalg.solve(jax.jacfwd(balance)(q2), balance(q2))

        return q1, jax.lax.fori_loop(0, 6, newton, 2 * q1 - q0)

    def save(pair, _):
        pair = jax.lax.fori_loop(0, save_every, advance, pair)
        return pair, pair

    return jax.lax.scan(save, (q0, q1), length=steps)[1]


def error_after_one_second(mechanism, form, damping, steps):
    h = 1 / steps
    exact = reference.motion(Q, V, [0.0, h, 1.0], damping)
    mechanics = DiscreteMechanics(mechanism, jnp.asarray(h), form)
    _, q = simulate(mechanics, jnp.asarray(exact[0]), jnp.asarray(exact[1]), 1, jnp.asarray(steps - 1))
    return np.abs(q[-1] - exact[-1]).max()


@pytest.mark.parametrize(("mechanism", "damping"), [(FREE, 0.0), (DAMPED, 0.5)], ids=["free", "damped"])
def test_variational_form_is_of_second_order(mechanism, damping):
    errors = [error_after_one_second(mechanism, "variational", damping, n) for n in (50, 100, 200)]
    assert errors[0] < 1e-2
    assert all(3.5 <= coarse / fine <= 4.5 for coarse, fine in itertools.pairwise(errors))


def test_published_form_does_not_converge():
    errors = [error_after_one_second(FREE, "paper_compat", 0.0, n) for n in (50, 100, 200)]
    assert min(errors) > 0.05
    assert all(0.9 < coarse / fine < 1.1 for coarse, fine in itertools.pairwise(errors))


def test_energy_stays_bounded_for_a_minute():
    h, seconds = 0.01, 60
    mechanics = DiscreteMechanics(FREE, jnp.asarray(h))
    exact = reference.motion(Q, V, [0.0, h])
    q0, q1 = jnp.asarray(exact)
    q0, q1 = simulate(mechanics, q0, q1, 100 * seconds // 20, jnp.asarray(20))
    energy = np.asarray(jax.vmap(FREE.energy)((q0 + q1) / 2, (q1 - q0) / h))
    start = reference.energy(Q, V)
    scale = reference.energy(Q, V) - reference.energy(np.zeros(2), np.zeros(2))
    error = np.abs(energy - start) / scale
    halves = error[: len(error) // 2], error[len(error) // 2 :]
    assert error.max() < 5e-3
    assert halves[1].max() < 1.5 * halves[0].max()  # bounded, not growing
    assert abs(np.mean(energy[-30:]) - np.mean(energy[:30])) / scale < 1e-3


@pytest.mark.parametrize("variant", ["joint_limits", "no_limits"])
def test_published_trajectories_satisfy_the_published_form(variant):
    saved = json.loads(DATA.read_text())[variant]
    X, U = np.array(saved["states"]), np.array(saved["controls"])
    impulses = np.array(saved.get("limit_impulses", np.zeros((len(U), 0))))
    limits = variant == "joint_limits"
    mechanics = DiscreteMechanics(acrobot.mechanism(limits), jnp.asarray(0.05), "paper_compat")

    def balance(x, u, x_next, impulse):
        momentum = mechanics.momentum_after(x[:2], x[2:])
        return mechanics.balance(momentum, x[2:], x_next[2:], u, impulse)

    rows = jax.vmap(balance)(X[:-1], U, X[1:], impulses)
    assert np.abs(rows).max() <= 1e-7
    for x, u, x_next, impulse in zip(X[:-1], U, X[1:], impulses, strict=True):
        independent = reference.residual(
            x, u, x_next, impulse if limits else None, 0.05, None, paper=True, damping=0.5
        )
        assert independent <= 1e-7


def block(**settings):
    """A point mass of 2 kg over a floor."""
    mechanism = Mechanism(
        kinetic_energy=lambda q, v: v @ v,
        potential_energy=lambda q: 2 * 9.81 * q[0],
        input_map=lambda q: jnp.ones((1, 1)),
        gap=lambda q: q,
        num_positions=1,
        num_inputs=1,
        num_gaps=1,
    )
    return mechanical_dynamics(mechanism, 0.1, **settings)


BLOCKS = {units: block(input_units=units) for units in ("force", "impulse")}
ADVANCE = {units: eqx.filter_jit(dynamics.advance) for units, dynamics in BLOCKS.items()}


def test_force_is_impulse_over_the_step():
    x, t = jnp.asarray([1.0, 1.1]), jnp.asarray(0)
    by_force, _ = ADVANCE["force"](x, jnp.asarray([30.0]), t)
    by_impulse, _ = ADVANCE["impulse"](x, jnp.asarray([3.0]), t)
    np.testing.assert_allclose(by_force, by_impulse, rtol=1e-9)
    # Far from the floor: v_next = v - g h + p / m.
    velocity = 1.0 - 0.981 + 3.0 / 2
    np.testing.assert_allclose(by_impulse, [1.1, 1.1 + 0.1 * velocity], rtol=1e-5)


@pytest.mark.parametrize("height", [0.0, 1e-3, 0.02, 0.2, 2.0])
def test_floor_pushes_and_only_when_touched(height):
    x = jnp.asarray([height + 0.3, height])
    x_next, info = ADVANCE["impulse"](x, jnp.zeros(1), jnp.asarray(0))
    gap, impulse = float(x_next[1]), float(info.outputs["impulse"][0])
    assert gap > 0
    assert impulse > 0
    assert gap * impulse == pytest.approx(1e-6, rel=1e-3)  # kappa over the gap and no more
    # Momentum: m (v_next - v) = -m g h + impulse.
    v_next = (x_next[1] - x_next[0]) / 0.1
    assert 2 * (float(v_next) + 3.0) == pytest.approx(-2 * 0.981 + impulse, abs=1e-8)


def test_failed_step_says_so_and_has_no_derivative():
    dynamics = block(solver=od.InteriorPoint(max_steps=1))
    x, u, t = jnp.asarray([0.3, 0.0]), jnp.zeros(1), jnp.asarray(0)
    _, info = eqx.filter_jit(dynamics.advance)(x, u, t)
    assert od.result_name(info.result) == "max_steps_reached"
    assert info.residual > 1e-8
    gradient = eqx.filter_jit(eqx.filter_grad(lambda x: dynamics.step(x, u, t)[1]))(x)
    assert np.isnan(gradient).any()  # never silently plausible


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"h": 0.0}, "h must be positive"),
        ({"h": float("nan")}, "h must be positive"),
        ({"input_units": "torque"}, "input_units must be 'impulse' or 'force'"),
        ({"form": "correct"}, "form must be 'variational' or 'paper_compat'"),
    ],
)
def test_wrong_settings_get_one_clear_line(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        mechanical_dynamics(DAMPED, **{"h": 0.1} | settings)
    assert "\n" not in str(error.value)


def test_gap_needs_its_count():
    with pytest.raises(ValueError, match="give gap and num_gaps together"):
        Mechanism(
            kinetic_energy=lambda q, v: v @ v,
            potential_energy=lambda q: q[0],
            input_map=lambda q: jnp.ones((1, 1)),
            gap=lambda q: q,
            num_positions=1,
            num_inputs=1,
        )

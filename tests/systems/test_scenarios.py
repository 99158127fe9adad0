"""Ready-made scenarios: names, what they are built of, and that they solve."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.plans import check_panels, solve
from optdyn.systems import ScenarioError, available, load

VARIANTS = [(name, variant) for name, variants in available().items() for variant in variants]


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("acrobat",), {}, "unknown scenario 'acrobat'; choose from: acrobot, cartpole, "),
        (("acrobot", "limits"), {}, "unknown variant 'limits' of acrobot; choose from: joint_limits, "),
        (("acrobot",), {"seed": -1}, "seed must be >= 0, got -1"),
        (("acrobot",), {"central_path": 0.0}, "central_path must be a positive number, got 0.0"),
        (("acrobot",), {"smoothing": float("nan")}, "smoothing must be a positive number, got nan"),
        (("acrobot",), {"smoothing": float("inf")}, "smoothing must be a positive number, got inf"),
    ],
)
def test_wrong_names_and_settings_get_one_line(arguments, settings, message):
    with pytest.raises(ScenarioError, match=message) as error:
        load(*arguments, **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_variant_builds(name, variant):
    scenario = load(name, variant)
    problem = scenario.problem
    assert (scenario.name, scenario.variant) == (name, variant)
    assert scenario.first_state.shape == (problem.dynamics.state_dim,)
    assert scenario.controls.shape == (problem.horizon, problem.dynamics.control_dim)
    assert scenario.x0.dtype == scenario.controls.dtype == jnp.float64
    assert len(scenario.times) == problem.horizon + 1
    assert scenario.description
    shapes = scenario.draw(scenario.first_state)
    assert all(shape.points.ndim == 2 and shape.points.shape[1] == 2 for shape in shapes)
    xmin, xmax, ymin, ymax = scenario.extent
    assert xmin < xmax
    assert ymin < ymax


def test_default_is_the_first_variant():
    assert load("acrobot").variant == "joint_limits"
    assert load("sliding_block").variant == "friction_0.3"


def test_settings_reach_the_problem():
    scenario = load("acrobot", seed=3, central_path=1e-5, smoothing=2e-3, dtype=np.float32)
    dynamics: Any = scenario.dynamics
    solver: Any = scenario.solver
    assert float(dynamics.solver.central_path) == 1e-5
    assert float(solver.smoothing.at(jnp.asarray(7))) == pytest.approx(2e-3)
    assert scenario.controls.dtype == jnp.float32
    assert not np.array_equal(scenario.controls, load("acrobot", seed=4, dtype=np.float32).controls)
    np.testing.assert_array_equal(load("acrobot", seed=3).controls, load("acrobot", seed=3).controls)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_another_seed_is_the_same_program(name, variant):
    traced = []

    @eqx.filter_jit
    def program(problem, x0, controls, solver):
        traced.append((name, variant))
        return jnp.sum(controls) + jnp.sum(x0)

    for seed in (0, 1):
        scenario = load(name, variant, seed=seed)
        program(scenario.problem, scenario.x0, scenario.controls, scenario.solver)
    assert len(traced) == 1


@pytest.fixture
def compilations():
    """Names of what was compiled since the last `clear`."""
    events = []

    def listen(event: str, duration_secs: float, **kwargs: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    jax.jit(lambda x: x + len(events))(1.0)  # the event still has this name
    assert events
    yield events
    jax.monitoring.unregister_event_duration_listener(listen)


def test_another_seed_compiles_nothing(compilations):
    first, second = load("sliding_block", seed=0), load("sliding_block", seed=1)
    assert not np.array_equal(first.controls, second.controls)
    solve(first)
    compilations.clear()
    plan = solve(second)
    assert compilations == []
    assert od.result_name(plan.result) == "successful"


def check_sliding_block(variant):
    scenario = load("sliding_block", variant)
    plan = solve(scenario)
    assert od.result_name(plan.result) == "successful"
    assert plan.constraint_violation <= 1e-4
    assert scenario.goal_error(plan) <= 1e-4
    assert plan.stats.lower_level.failed == 0
    assert np.abs(plan.controls).max() <= 20 + 1e-4
    check_panels(scenario, plan)


def test_sliding_block_reaches_its_goal():
    check_sliding_block("friction_0.3")


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["friction_0.1", "frictionless"])
def test_sliding_block_with_less_friction(variant):
    check_sliding_block(variant)


def check_acrobot(scenario, seed):
    """A solve with the figures that every acrobot plan has to reach. Seeds differ in the first controls."""
    controls = load("acrobot", scenario.variant, seed=seed).controls
    plan = solve(dataclasses.replace(scenario, controls=controls))
    label = f"{scenario.variant}, seed {seed}"
    assert od.result_name(plan.result) == "successful", label
    assert plan.constraint_violation <= 1e-3, label
    assert scenario.goal_error(plan) <= 1e-3, label
    assert np.all(np.asarray(plan.step_info.result == od.RESULTS.successful)), label
    assert plan.cost <= 250, label
    if scenario.variant.startswith("joint_limits"):
        assert np.abs(np.asarray(plan.states)[:, [1, 3]]).max() <= np.pi / 2 + 1e-4, label
        assert np.asarray(plan.step_info.outputs["impulse"]).min() >= 0, label
        # A wild candidate of the line search may ask for a step that has no solution; it is not accepted.
        assert plan.stats.lower_level.failed <= 5, label
    return plan


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["no_limits", "no_limits_paper"])
def test_acrobot_without_limits_swings_up(variant):
    scenario = load("acrobot", variant)
    check_panels(scenario, check_acrobot(scenario, 0))


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["joint_limits", "joint_limits_paper"])
def test_acrobot_with_limits_swings_up_for_twenty_seeds(variant):
    scenario = load("acrobot", variant)
    plans = [check_acrobot(scenario, seed) for seed in range(20)]
    check_panels(scenario, plans[0])
    # For the published form, the authors' best setting took 128.6 +- 9.2.
    assert np.median([int(plan.stats.inner_iterations) for plan in plans]) <= 130

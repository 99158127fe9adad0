"""The compared methods stand for the same problems."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.bench._direct_systems import SYSTEMS
from optdyn.bench._dynamics import bundled, hard
from optdyn.bench._mujoco import MuJoCoAcrobot, differences, simulate
from optdyn.bench._smoothing import sweep
from optdyn.dynamics import GradientBundle
from optdyn.systems import _acrobot as acrobot
from optdyn.systems import load

T = jnp.asarray(0)


def test_hard_derivatives_are_those_of_the_simulation():
    problem, solver = hard(load("acrobot"))
    assert float(solver.smoothing.start) == float(solver.smoothing.end) == acrobot.CENTRAL_PATH
    assert problem.horizon == 200
    assert problem.dynamics.solver.central_path == acrobot.CENTRAL_PATH


def test_a_bundle_takes_the_place_of_the_dynamics():
    problem, solver = bundled(load("acrobot"), 1e-3)
    assert isinstance(problem.dynamics, GradientBundle)
    assert problem.dynamics.disturbances.shape == (20, 5)
    assert solver.smoothing is None


@pytest.fixture(scope="module")
def points():
    """Linearizations by both rules where the elbow is about to reach its limit."""
    scenario, kappa = load("acrobot", "joint_limits_paper"), 1e-2
    x, u, found = jnp.asarray([0.5, 1.5, 0.5, 1.55]), jnp.asarray([0.3]), {}
    for rule in ("on the path", "below"):
        problem, _ = sweep(scenario, kappa, rule)
        found[rule] = eqx.filter_jit(problem.dynamics.sensitivities)(x, u, T, None, kappa)
    return found


class TestStopBelow:
    """Where the published rule stops, the equations hold and complementarity is anywhere below kappa."""

    def test_both_solve(self, points):
        for local in points.values():
            assert local.info.result == od.RESULTS.successful

    def test_products(self, points):
        """Of gaps and impulses: kappa on the path, less without it."""
        for rule, local in points.items():
            product = np.asarray(local.info.warm.s * local.info.warm.z)
            if rule == "below":
                assert product.max() < 0.5e-2
                assert product.min() > 0
            else:
                np.testing.assert_allclose(product, 1e-2, rtol=1e-6)

    def test_derivatives_differ(self, points):
        change = np.abs(points["below"].A - points["on the path"].A).max()
        assert change > 1e-2


class TestMuJoCo:
    @pytest.fixture(autouse=True)
    def engine(self):
        pytest.importorskip("mujoco", reason="the extra mjx is not installed")

    def test_the_same_plant(self):
        """Free motion from the same angles and rates agrees to the order of the step."""
        dynamics = acrobot.dynamics(limits=False, smoothing=None)
        q, v, h = np.array([0.4, -0.3]), np.array([0.2, 0.1]), acrobot.STEP
        x = jnp.asarray(np.concatenate([q - h * v, q]))
        step = jax.jit(lambda x, u: dynamics.advance(x, u, T)[0])
        y = np.concatenate([q, v])
        for _ in range(20):
            x, y = step(x, jnp.asarray([0.02])), simulate(False, y[None], np.array([[0.02]]))[0]
        assert np.abs(np.asarray(x[2:]) - y[:2]).max() < 0.05
        assert np.abs(np.asarray(x[2:]) - q).max() > 0.5

    def test_the_limit_is_soft(self):
        y, reached, free = np.array([[0.0, 1.5, 0.0, 4.0]]), 0.0, 0.0
        z = y
        for _ in range(3):
            y, z = simulate(True, y, np.zeros((1, 1))), simulate(False, z, np.zeros((1, 1)))
            reached, free = max(reached, y[0, 1]), max(free, z[0, 1])
        assert acrobot.LIMIT - 0.05 < reached < acrobot.LIMIT + 0.1 < free

    def test_what_blows_up_is_not_a_number(self, tmp_path, monkeypatch, capfd):
        monkeypatch.chdir(tmp_path)
        x = np.array([[0.0, 0.0, 1e9, 1e9], [0.1, 0.2, 0.3, 0.4]])
        broken, fine = simulate(True, x, np.zeros((2, 1)))
        assert np.all(np.isnan(broken))
        assert np.all(np.isfinite(fine))
        assert capfd.readouterr() == ("", "")
        assert list(tmp_path.iterdir()) == []

    def test_differences(self):
        slopes = differences(False, np.array([[0.3, 0.2, 0.5, -0.4]]), np.array([[0.1]]))
        assert slopes.shape == (1, 4, 5)
        # A push at the elbow turns the links against each other; angles follow from rates.
        assert slopes[0, 1, 4] > 0 > slopes[0, 0, 4]
        np.testing.assert_allclose(slopes[0, 0, 2], acrobot.STEP, rtol=0.1)

    def test_batches_are_the_members(self, rng):
        """Mapped over states and controls, steps and differences are those of one at a time."""
        dynamics = MuJoCoAcrobot(limited=True)
        x, u = rng.normal(size=(3, 4)), rng.normal(size=(3, 1))
        steps = jax.jit(jax.vmap(lambda x, u: dynamics.step(x, u, T)))(x, u)
        slopes = jax.jit(jax.vmap(lambda u: dynamics.sensitivities(x[0], u, T)))(u)
        for i in range(3):
            np.testing.assert_array_equal(steps[i], simulate(True, x[i : i + 1], u[i : i + 1])[0])
            alone = differences(True, x[:1], u[i : i + 1])[0]
            np.testing.assert_array_equal(slopes.A[i], alone[:, :4])
            np.testing.assert_array_equal(slopes.B[i], alone[:, 4:])


class TestDirect:
    @pytest.fixture(autouse=True)
    def casadi(self):
        pytest.importorskip("casadi", reason="the extra peers is not installed")

    @pytest.mark.parametrize(("name", "variant"), [("hopper", "gait_1"), ("planar_push", "rotate")])
    def test_a_step_of_the_scenario_solves_the_transcription(self, name, variant, rng):
        """Balance, gaps and friction of a simulated step, evaluated as casadi expressions."""
        from optdyn.bench._direct import _step_function

        model, scenario = SYSTEMS[name](variant), load(name, variant)
        nq, x = model.num_positions, np.asarray(scenario.first_state).copy()
        x[:nq] -= 0.02 * rng.normal(size=nq)
        u = np.asarray(scenario.controls[0])
        advance = eqx.filter_jit(scenario.dynamics.advance)
        x_next, info = advance(jnp.asarray(x), jnp.asarray(u), T)
        speed = np.asarray(info.warm.w)[nq : nq + len(model.dims)]
        rows = _step_function(model)(
            x[:nq],
            x[nq:],
            np.asarray(x_next[nq:]),
            u,
            np.asarray(info.outputs["impulse"]),
            np.asarray(info.outputs["friction_impulse"]),
            speed,
        )
        balance, gap, dissipation, inside, slack_gap, _ = (np.asarray(row).ravel() for row in rows)
        assert np.abs(balance).max() <= 1e-8
        assert gap.min() >= -1e-8
        np.testing.assert_allclose(slack_gap, model.central_path, rtol=1e-4)
        assert np.abs(dissipation).max() <= 1e-6
        assert inside.min() >= 0

    @pytest.mark.parametrize(("name", "variant"), [("hopper", "gait_1"), ("planar_push", "translate")])
    def test_costs_are_those_of_the_scenario(self, name, variant, rng):
        import casadi as ca

        model, scenario = SYSTEMS[name](variant), load(name, variant)
        x, u = rng.normal(size=2 * model.num_positions), rng.normal(size=2)
        parameters = (jnp.asarray(rng.normal(size=4)),) if model.first_is_free else ()
        halves = [ca.DM(part) for part in np.split(x, 2)]
        problem = scenario.problem
        for t in (0, 3):
            expected = problem.stage_cost(jnp.asarray(x), jnp.asarray(u), jnp.asarray(t), *parameters)
            np.testing.assert_allclose(float(model.stage_cost(ca, *halves, ca.DM(u), t)), expected)
        expected = problem.terminal_cost(jnp.asarray(x), *parameters)
        np.testing.assert_allclose(float(model.terminal_cost(ca, *halves)), expected)
        if parameters and problem.parameter_cost is not None:
            first = model.first_cost(ca, ca.DM(np.asarray(parameters[0])))
            np.testing.assert_allclose(float(first), problem.parameter_cost(*parameters))

    @pytest.mark.slow
    def test_ipopt_agrees_with_the_plan(self):
        """Another method, the same optimum."""
        from optdyn.bench._direct import measure_direct
        from optdyn.bench._plans import measure_plans

        found = measure_direct("planar_push", "translate", 1)
        ours = measure_plans("planar_push", "translate", 1)
        assert found["solved"] == ours["solved"] == 1
        np.testing.assert_allclose(found["cost"], ours["cost"], rtol=2e-2)

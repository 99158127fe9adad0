"""Loading of models: notices, and one clear error for what cannot be."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn.mjx as om
from helpers import mjx_models
from optdyn import RESULTS

PENDULUM = """<mujoco><option {option}/><worldbody><body><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size="0.02" mass="1"/>
<site name="end" pos="0 0 -1"/></body></worldbody>
<actuator><motor joint="hinge" ctrlrange="-2 3" ctrllimited="true"/></actuator></mujoco>"""
PLAIN = PENDULUM.format(option='iterations="10" ls_iterations="20"')


def test_too_few_iterations_are_raised_with_a_notice():
    xml = PENDULUM.format(option='iterations="1" ls_iterations="5"')
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always")
        model = om.load_model(xml)
    assert (model.opt.iterations, model.opt.ls_iterations) == (20, 20)
    assert [notice.category for notice in notices] == [om.MJXNotice] * 2
    assert om.load_model(xml, iterations=1, line_search_iterations=5).opt.iterations == 1


def test_a_model_given_as_an_object_is_not_changed():
    model = om.load_model(PLAIN)
    changed = om.load_model(model, iterations=7, tolerance=1e-9, timestep=0.01)
    assert model.opt.iterations == 10
    assert (changed.opt.iterations, changed.opt.tolerance, changed.opt.timestep) == (7, 1e-9, 0.01)


def test_friction_is_clamped_as_in_the_c_engine():
    xml = PLAIN.replace('mass="1"', 'mass="1" friction="0"')
    assert om.load_model(xml).geom_friction[0, 0] == 1e-5


def test_a_path_is_read(tmp_path):
    path = tmp_path / "pendulum.xml"
    path.write_text(PLAIN)
    assert om.load_model(path).nv == om.load_model(str(path)).nv == 1


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("missing.xml", FileNotFoundError, "no such model file"),
        ("<mujoco><nonsense/></mujoco>", ValueError, "MuJoCo cannot read"),
        (3, TypeError, "got int"),
        (
            PENDULUM.format(option='integrator="implicit" iterations="9" ls_iterations="20"'),
            ValueError,
            "implicit",
        ),
        (
            PENDULUM.format(option='solver="PGS" iterations="9" ls_iterations="20"'),
            ValueError,
            "MJX cannot run",
        ),
    ],
    ids=["path", "xml", "type", "integrator", "solver"],
)
def test_what_cannot_be_loaded(source, error, message):
    with pytest.raises(error, match=message) as caught:
        om.MJXDynamics(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"iterations": 0}, {"tolerance": -1.0}, {"timestep": 0.0}])
def test_settings_that_make_no_sense(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        om.load_model(PLAIN, **settings)


def test_states_and_controls():
    dynamics = om.MJXDynamics(PLAIN, substeps=3, timestep=0.01)
    assert (dynamics.state_dim, dynamics.control_dim) == (2, 1)
    assert dynamics.dt == pytest.approx(0.03)
    np.testing.assert_array_equal(np.concatenate(dynamics.control_bounds), [-2, 3])
    np.testing.assert_array_equal(dynamics.state([0.5]), [0.5, 0])
    with pytest.raises(ValueError, match="qvel must have shape"):
        dynamics.state([0.5], [0, 0])
    with pytest.raises(ValueError, match=r"no site 'tip'; it has: end"):
        dynamics.site(dynamics.state([0.0]), "tip")
    with pytest.raises(ValueError, match="substeps"):
        om.MJXDynamics(PLAIN, substeps=0)


def test_quaternions_are_found():
    dynamics = om.MJXDynamics(mjx_models.sphere())
    assert dynamics.state_space.quaternions == (3,)
    assert dynamics.state_space.tangent_dim(dynamics.state_dim) == 12


def test_position_of_a_site_and_its_derivative():
    dynamics = om.MJXDynamics(PLAIN)
    end, slope = jax.jit(lambda x: (dynamics.site(x, "end"), jax.jacrev(dynamics.site)(x, "end")))(
        dynamics.state([0.3])
    )
    np.testing.assert_allclose(end, [-np.sin(0.3), 0, -np.cos(0.3)], atol=1e-12)
    np.testing.assert_allclose(slope[:, 0], [-np.cos(0.3), 0, np.sin(0.3)], atol=1e-12)


def test_an_unconverged_solve_is_reported():
    dynamics = om.MJXDynamics(mjx_models.sphere("elliptic"), iterations=1, line_search_iterations=1)
    x = dynamics.state([0, 0, 0.09, 1, 0, 0, 0], [5, 0, -1, 0, 9, 0])
    _, info = jax.jit(lambda x: dynamics.advance(x, jnp.zeros(0), jnp.asarray(0)))(x)
    assert info.residual > dynamics.residual_tol
    assert info.result == RESULTS.max_steps_reached

"""The residual is the gradient of our own cost; C engine, MJX and NumPy must agree with it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mujoco.mjx._src import solver as mjx_solver

import optdyn.mjx as om
from helpers import mjx_models
from optdyn.mjx._backend import loose_rules, mjx, mujoco

# Far from the solution in all directions, so that every piece of every penalty is visited.
SAMPLES, SPREAD = 30, 200.0


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def problem(request):
    """Layout and terms at a state where each kind of row is live, with C's data and the gradient of MJX."""
    model = mujoco.MjModel.from_xml_string(mjx_models.finger(request.param))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = mjx_models.FINGER_QPOS, mjx_models.FINGER_QVEL
    data.ctrl[:] = mjx_models.FINGER_CONTROL
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    assert data.ne == 1
    assert data.nf == 1
    assert data.nl == 1
    layouts = []

    def complete(d, samples):
        with loose_rules():
            for part in (mjx.fwd_position, mjx.fwd_velocity, mjx.fwd_actuation, mjx.fwd_acceleration):
                d = part(compiled, d)
            layout, terms = om.contact_problem(compiled, d)
            layouts.append(layout)
            own = jax.vmap(lambda a: mjx_solver.Context.create(compiled, d.replace(qacc=a)).grad)(samples)
        return terms, own

    samples = data.qacc + SPREAD * np.random.default_rng(0).normal(size=(SAMPLES, model.nv))
    with loose_rules():
        compiled, d = mjx.put_model(model), mjx.make_data(model)
        d = d.replace(qpos=jnp.asarray(data.qpos), qvel=jnp.asarray(data.qvel), ctrl=jnp.asarray(data.ctrl))
        terms, own = jax.jit(complete)(d, samples)
    return layouts[0], terms, data, samples, own


def test_residual_is_that_of_mjx(problem):
    layout, terms, _, samples, own = problem
    found = jax.jit(jax.vmap(lambda a: om.residual(layout, a, terms)))(samples)
    np.testing.assert_allclose(found, own, rtol=0, atol=1e-12 * np.max(np.abs(own)))


def test_solution_of_the_c_engine_is_a_root(problem):
    layout, terms, data, _, _ = problem
    error = jax.jit(lambda a: om.relative_residual(layout, a, terms))(jnp.asarray(data.qacc))
    assert error < 1e-8


def test_forces_are_those_of_the_c_engine(problem):
    layout, terms, data, _, _ = problem
    force = jax.jit(lambda a: om.forces(layout, a, terms))(jnp.asarray(data.qacc))
    want = data.qfrc_constraint
    np.testing.assert_allclose(terms.jacobian.T @ force, want, rtol=0, atol=1e-6 * np.max(np.abs(want)))


def test_hessian_is_the_second_derivative_of_the_cost(problem):
    layout, terms, _, samples, _ = problem
    found = jax.jit(jax.vmap(lambda a: om.hessian(layout, a, terms)))(samples)
    direct = jax.jit(jax.vmap(jax.hessian(lambda a: om.cost(layout, a, terms))))(samples)
    np.testing.assert_allclose(found, direct, rtol=0, atol=1e-12 * np.max(np.abs(direct)))
    assert np.min(np.linalg.eigvalsh(found)) > 0


def test_hessian_of_pyramids_is_inertia_and_live_rows(problem):
    layout, terms, _, samples, _ = problem
    if layout.cones:
        pytest.skip("elliptic cones have curvature of their own")
    jacobian, D = np.asarray(terms.jacobian), np.asarray(terms.stiffness)
    found = jax.jit(jax.vmap(lambda a: om.hessian(layout, a, terms)))(samples)
    kinds = set()
    for a, H in zip(samples, found, strict=True):
        x = jacobian @ a - np.asarray(terms.reference)
        live = x < 0
        live[0] = True
        live[1] = abs(x[1]) < float(terms.friction_loss[0]) / D[1]
        kinds.add(tuple(live))
        want = np.asarray(terms.inertia) + jacobian.T @ np.diag(D * live) @ jacobian
        np.testing.assert_allclose(H, want, rtol=0, atol=1e-12 * np.max(np.abs(want)))
    assert len(kinds) > 3  # the samples really differ in what is live

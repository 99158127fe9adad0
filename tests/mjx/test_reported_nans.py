"""Gradients of MJX that users reported as NaN, against differences by MuJoCo's C engine.

Rebuilt from descriptions in issues of google-deepmind/mujoco, by number. Others are cases of the bank.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn.mjx as om
from optdyn import RESULTS
from optdyn.mjx._backend import mujoco

OPTION = '<option timestep="0.005" iterations="50" ls_iterations="50" tolerance="1e-12"/>'
REPORTS = {
    # A capsule rests on a sphere, without turning.
    "2237-capsule-on-sphere": f"""<mujoco>{OPTION}<worldbody><geom type="sphere" size="0.1"/>
<body pos="0 0 0.1494"><freejoint/>
<geom type="capsule" fromto="-0.1 0 0 0.1 0 0" size="0.05" mass="1"/></body>
</worldbody></mujoco>""",
    # A sphere on the face of a box.
    "2841-sphere-on-box": f"""<mujoco>{OPTION}<worldbody><geom type="box" size="0.2 0.2 0.1"/>
<body pos="0.02 0.03 0.1494"><freejoint/>
<geom type="sphere" size="0.05" mass="1"/></body></worldbody></mujoco>""",
    # An arm pulled by a muscle, from no activation.
    "2489-muscle": f"""<mujoco>{OPTION}<worldbody><body><joint name="h" axis="0 1 0" range="-90 90"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1"/></body></worldbody>
<actuator><muscle joint="h" ctrlrange="0 1" lengthrange="-1.5 1.5" force="20"/></actuator></mujoco>""",
}

# Relative to the largest entry. MJX's point of contact of a capsule is off by 1e-6 m, which turns it.
TOLERANCE = {"2237-capsule-on-sphere": 1e-3, "2841-sphere-on-box": 1e-5, "2489-muscle": 1e-5}


@pytest.mark.parametrize("name", REPORTS)
def test_derivative_is_that_of_the_c_engine(name):
    dynamics = om.MJXDynamics(REPORTS[name])
    model = dynamics.source_model
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.4
    x = dynamics.state(data.qpos, data.qvel, data.act)
    found = eqx.filter_jit(lambda d, x, u: d.sensitivities(x, u, jnp.asarray(0)))(
        dynamics, x, jnp.asarray(data.ctrl)
    )
    n = 2 * model.nv + model.na
    A, B = np.zeros((n, n)), np.zeros((n, model.nu))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B, None, None)
    assert found.info.result == RESULTS.successful
    np.testing.assert_allclose(found.A, A, rtol=0, atol=TOLERANCE[name] * np.max(np.abs(A)))
    np.testing.assert_allclose(found.B, B, rtol=0, atol=TOLERANCE[name] * np.max(np.abs(B), initial=1))

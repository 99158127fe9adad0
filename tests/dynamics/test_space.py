"""State spaces with unit quaternions: there and back, derivatives, and dynamics that use them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from helpers.differences import central, relative_error
from optdyn.dynamics import DiscreteDynamics, StateSpace

SPACE = StateSpace(quaternions=(2, 7))  # two numbers, a quaternion, a number, a quaternion, two numbers
retract: Any = jax.jit(SPACE.retract)
difference: Any = jax.jit(SPACE.difference)


def random_state(rng):
    x = rng.normal(size=13)
    for start in SPACE.quaternions:
        x[start : start + 4] /= np.linalg.norm(x[start : start + 4])
    return x


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-4, 0.03, 0.0317, 1.0, 1.8])
def test_difference_undoes_retract(size, rng):
    for _ in range(20):
        x, d = random_state(rng), size * rng.uniform(-1, 1, 11)
        moved = retract(x, d)
        np.testing.assert_allclose(np.linalg.norm(moved[2:6]), 1, atol=1e-14)
        np.testing.assert_allclose(difference(moved, x), d, atol=2e-14, rtol=1e-13)


def test_a_quaternion_and_its_negative_are_the_same_rotation(rng):
    x = random_state(rng)
    other = x.copy()
    other[2:6] *= -1
    np.testing.assert_allclose(difference(other, x), 0, atol=1e-14)


def test_rotation_vectors_are_those_of_the_body_frame(rng):
    x, d = random_state(rng), rng.normal(size=11)
    moved = np.asarray(retract(x, d))
    for start, i in ((2, 2), (7, 6)):
        before = Rotation.from_quat(x[start : start + 4], scalar_first=True)
        after = before * Rotation.from_rotvec(d[i : i + 3])
        wanted = after.as_quat(scalar_first=True)
        got = moved[start : start + 4]
        np.testing.assert_allclose(got * np.sign(got @ wanted), wanted, atol=1e-14)


def test_derivatives_at_zero_are_finite_and_right(rng):
    x = jnp.asarray(random_state(rng))
    zero = jnp.zeros(11)
    jacobian = jax.jacfwd(lambda d: SPACE.difference(SPACE.retract(x, d), x))(zero)
    np.testing.assert_allclose(jacobian, np.eye(11), atol=1e-14)
    gradient: Any = jax.jit(jax.jacfwd(lambda d: SPACE.retract(x, d)))
    hessian = jax.jacfwd(gradient)(zero)
    difference = central(gradient, np.zeros(11), 1e-5)
    assert relative_error(hessian, difference) <= 1e-8


def test_linearization_of_a_spinning_body_against_differences(rng):
    space = StateSpace(quaternions=(0,))

    def spin(x, u, t):
        rate = x[4:] + 0.1 * u - 0.05 * jnp.sin(x[4:])
        return jnp.concatenate([space.retract(x[:4], 0.1 * rate), rate + 0.3 * x[1:4]])

    dynamics = DiscreteDynamics(spin, state_dim=7, control_dim=3, state_space=space)
    x, u, t = random_state(rng)[2:9], rng.normal(size=3), jnp.asarray(0)
    x[:4] /= np.linalg.norm(x[:4])
    x_next, A, B = dynamics.linearize(jnp.asarray(x), jnp.asarray(u), t)
    assert A.shape == (6, 6)
    assert B.shape == (6, 3)

    @jax.jit
    def moved(d):
        return space.difference(spin(space.retract(x, d[:6]), u + d[6:], t), x_next)

    wanted = central(moved, np.zeros(9), 1e-6)
    assert relative_error(np.concatenate([A, B], axis=1), wanted) <= 1e-8


@pytest.mark.parametrize("starts", [(-1,), (0, 3), (5, 0)])
def test_quaternions_that_overlap_are_refused(starts):
    with pytest.raises(ValueError, match="at least four apart"):
        StateSpace(quaternions=starts)


def test_a_quaternion_has_to_fit_the_state():
    with pytest.raises(ValueError, match="does not fit a state of size 3"):
        DiscreteDynamics(lambda x, u, t: x, 3, 0, state_space=StateSpace(quaternions=(0,)))

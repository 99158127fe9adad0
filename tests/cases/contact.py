"""One contact with Coulomb friction as a complementarity problem, and the steps of the bank built from it.

At the contact, the velocity after the step is v + W f, with the normal first. Normal: f_n >= 0 complementary
to v_n + W f + gap/h >= 0. Friction maximizes dissipation: (mu f_n, f_t) and (slip speed, slip) are
complementary in the second-order cone.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import oracle, settings
from cases.checking import as_array, status_of
from cases.model import Model


class CoulombContact(od.AbstractComplementarityProblem):
    """Unknown: the slip speed; dual: f_n, and (mu f_n, f_t) of the friction cone."""

    cone: od.cones.ProductCone

    def __init__(self, tangents: int):
        self.cone = od.cones.ProductCone(
            od.cones.NonnegativeOrthant(1), od.cones.SecondOrderCone(1 + tangents)
        )

    def initial_guess(self, theta):
        return jnp.ones(1)

    def equations(self, w, z, theta):
        return (z[1] - theta["mu"] * z[0])[None]

    def slack(self, w, z, theta):
        force = jnp.concatenate([z[:1], z[2:]])
        after = theta["v"] + theta["W"] @ force
        return jnp.concatenate([after[:1] + theta["offset"], w, after[1:]])


class ContactSolve(eqx.Module):
    """theta -> outputs; `setup(theta)` gives W, v, mu, offset, and `report(theta, force)` what is wanted."""

    setup: Any = eqx.field(static=True)
    report: Any = eqx.field(static=True)
    tangents: int = eqx.field(static=True)
    central_path: float = eqx.field(static=True, default=settings.CENTRAL_PATH)

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], tuple[od.Solution, dict[str, Any]]]:
        given = self.setup(theta)
        solution = od.solve(
            CoulombContact(self.tangents),
            given,
            solver=settings.solver(central_path=self.central_path),
            adjoint=settings.AT_SOLUTION,
            throw=False,
        )
        force = jnp.concatenate([solution.cone_dual[:1], solution.cone_dual[2:]])
        return self.report(theta, force), (solution, given)


def solved(model: Model) -> Model:
    """The model, after Coulomb's law was recomputed in NumPy."""
    solution, given = model.extra
    status = status_of(solution.result)
    assert status == "successful", f"contact: {status}"
    W, v, mu = (as_array(given[name]) for name in ("W", "v", "mu"))
    force = np.delete(as_array(solution.cone_dual), 1)
    after = v + W @ force
    normal, friction, slip = force[0], force[1:], after[1:]
    oracle.complementary(normal, after[0] + as_array(given["offset"]), 1e-6)
    oracle.small("friction cone", max(np.linalg.norm(friction) - mu * normal, 0), 1e-5)
    oracle.small("dissipation", friction @ slip + mu * normal * np.linalg.norm(slip), 1e-6)
    return model


def _mass_setup(theta: dict[str, Any]) -> dict[str, Any]:
    v = jnp.roll(theta["v"], 1)  # normal first
    return {"W": jnp.eye(3) / theta["m"], "v": v, "mu": theta["mu"], "offset": theta["offset"]}


def _mass_report(theta: dict[str, Any], force: Any) -> dict[str, Any]:
    impulse = jnp.roll(force, -1)
    after = theta["v"] + impulse / theta["m"]
    return {"impulse": impulse, "v_after": after, "ln": impulse[2], "lt": impulse[:2]}


def point_mass(m: Any, v: Any, mu: Any, offset: Any = 0.0, derivatives: bool = False) -> Model:
    """Impact of a point mass with the plane z = 0; v is (x, y, z), `offset` is gap over time step."""
    theta = {"m": m, "v": v, "mu": mu, "offset": offset}
    theta = {name: jnp.asarray(value, float) for name, value in theta.items()}
    return solved(Model(ContactSolve(_mass_setup, _mass_report, 2), theta, derivatives))


def _incline_setup(theta: dict[str, Any]) -> dict[str, Any]:
    v = theta["g"] * jnp.stack([-jnp.cos(theta["angle"]), jnp.sin(theta["angle"])])
    return {"W": jnp.eye(2) / theta["m"], "v": v, "mu": theta["mu"], "offset": jnp.zeros(())}


def _incline_report(theta: dict[str, Any], force: Any) -> dict[str, Any]:
    accel = theta["g"] * jnp.sin(theta["angle"]) + force[1] / theta["m"]
    return {"accel": accel, "friction_force": -force[1], "normal_force": force[0]}


def incline(m: float, g: float, angle_deg: float, mu: float) -> Model:
    """Block at rest on a slope: forces and acceleration in place of impulses and velocities."""
    theta = {"m": m, "g": g, "angle": np.deg2rad(angle_deg), "mu": mu}
    theta = {name: jnp.asarray(value, float) for name, value in theta.items()}
    return solved(Model(ContactSolve(_incline_setup, _incline_report, 1), theta, True))


def _push_jacobian(theta: dict[str, Any]) -> Any:
    """Velocity of the contact point, normal first, per twist (vx, vy, omega)."""
    x, y = theta["contact"]
    point = jnp.stack(
        [jnp.stack([jnp.ones(()), jnp.zeros(()), -y]), jnp.stack([jnp.zeros(()), jnp.ones(()), x])]
    )
    n = theta["normal"]
    return jnp.stack([n, jnp.stack([-n[1], n[0]])]) @ point


def _push_setup(theta: dict[str, Any]) -> dict[str, Any]:
    J = _push_jacobian(theta)
    n = theta["normal"]
    pusher = jnp.stack([n, jnp.stack([-n[1], n[0]])]) @ theta["vp"]
    mobility = jnp.stack([jnp.ones(()), jnp.ones(()), 1 / theta["c"] ** 2])
    return {"W": (J * mobility[None]) @ J.T, "v": -pusher, "mu": theta["mu"], "offset": jnp.zeros(())}


def _push_report(theta: dict[str, Any], force: Any) -> dict[str, Any]:
    mobility = jnp.stack([jnp.ones(()), jnp.ones(()), 1 / theta["c"] ** 2])
    twist = mobility * (_push_jacobian(theta).T @ force)
    n = theta["normal"]
    world = n * force[0] + jnp.stack([-n[1], n[0]]) * force[1]
    return {"twist": twist, "omega": twist[2], "force": world, "contact_force": force}


def planar_push(problem: dict[str, Any]) -> Model:
    """Quasi-static push of a slider with an ellipsoidal limit surface by one frictional point."""
    theta = {name: problem[name] for name in ("c", "contact", "normal", "mu")}
    theta["vp"] = problem["pusher_velocity"]
    theta = {name: jnp.asarray(value, float) for name, value in theta.items()}
    # Products of force and velocity are about 1e-4: kappa has to be small next to that.
    return solved(Model(ContactSolve(_push_setup, _push_report, 1, 1e-12), theta, True))

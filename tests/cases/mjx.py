"""Runner of MuJoCo models given as XML: values after so many steps, and Jacobians of one."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cases.bank import Case, Tolerance
from cases.checking import Findings, check, close, finite, named
from optdyn import RESULTS

# Which tolerance of the case belongs to which quantity.
_TOLERANCES = {
    "forward": ("qpos", "qvel", "vx", "x", "z"),
    "jacobian": ("jacobian", "jacobian_A", "jacobian_B", "dquat_domega"),
    "force": ("normal_force",),
}


def run(case: Case) -> None:
    """Simulate every variant of the model, then ask for what the case expects."""
    models = [case.problem["xml"], *case.problem.get("xml_variants", [])]
    runs = [_Run(xml, case.problem) for xml in models]
    first = runs[0]

    def all_finite(want: Any) -> None:
        assert want is True
        finite("a state", *(run.states for run in runs))
        if case.problem["steps"] == 1:
            finite("a Jacobian", first.A, first.B)

    def reverse_mode(want: Any) -> None:
        assert want == "works"
        close("jacobian in reverse mode", first.reverse(), first.A, Tolerance(atol=1e-9))

    values = named(
        qpos=lambda: first.qpos[-1],
        qvel=lambda: first.qvel[-1],
        x=lambda: [run.qpos[-1, 0] for run in runs],
        vx=lambda: [run.qvel[-1, 0] for run in runs],
        z=lambda: first.qpos[1:, 1],
        normal_force=lambda: first.only_force(),
        jacobian=lambda: first.A,
        jacobian_A=lambda: first.A,
        jacobian_B=lambda: first.B,
        dquat_domega=lambda: first.quaternion_by_spin(),
    )
    tol = _tolerances(case)
    held = Case(case.id, case.group, case.description, case.problem, case.expected, tol)
    assert all(run.solved for run in runs), "a contact solve did not converge"
    check(held, Findings("successful", [values], {"finite": all_finite, "reverse_mode": reverse_mode}))


def _tolerances(case: Case) -> Tolerance:
    given, found = dict(case.tol.named), {}
    if "jacobian_relative_to_max_entry" in given:
        size = np.max(np.abs(np.asarray(case.expected["jacobian"], float)))
        given["jacobian"] = given.pop("jacobian_relative_to_max_entry") * size
    for name, value in given.items():
        found |= dict.fromkeys(_TOLERANCES[name], value)
    return Tolerance(atol=case.tol.atol, rtol=case.tol.rtol, named=found)


class _Run:
    """One model from one state, under a constant control."""

    def __init__(self, xml: str, problem: dict[str, Any]):
        from optdyn.mjx import MJXDynamics

        self.dynamics = MJXDynamics(xml)
        self.x0 = self.dynamics.state(problem["qpos"], problem["qvel"])
        control = problem.get("ctrl", np.zeros(self.dynamics.control_dim))
        self.u = jnp.asarray(control, self.x0.dtype)
        states, infos = _simulate(self.dynamics, self.x0, self.u, problem["steps"])
        self.states = np.concatenate([self.x0[None], states])
        self.solved = bool(jnp.all(infos.result == RESULTS.successful))
        nq = self.dynamics.source_model.nq
        self.qpos, self.qvel = self.states[:, :nq], self.states[:, nq:]
        if problem["steps"] == 1:
            local = _linearize(self.dynamics, self.x0, self.u)
            self.A, self.B = local.A, local.B

    def reverse(self):
        return _reverse(self.dynamics, self.x0, self.u)

    def only_force(self):
        assert self.qvel.shape[1] == 1, "the normal force is read off a single vertical joint"
        return eqx.filter_jit(lambda d, x, u: d.forces(x, u)[0])(
            self.dynamics, jnp.asarray(self.states[-1]), self.u
        )

    def quaternion_by_spin(self):
        nq = self.dynamics.source_model.nq

        def end(dynamics, spin):
            x = self.x0.at[nq + 3 : nq + 6].set(spin)
            return dynamics.step(x, self.u, jnp.asarray(0))[3:7]

        return eqx.filter_jit(lambda d, w: jax.jacrev(lambda w: end(d, w))(w))(
            self.dynamics, self.x0[nq + 3 : nq + 6]
        )


@eqx.filter_jit
def _simulate(dynamics, x0, u, steps: int):
    def advance(x, t):
        x, info = dynamics.advance(x, u, t)
        return x, (x, info)

    return jax.lax.scan(advance, x0, jnp.arange(steps))[1]


@eqx.filter_jit
def _linearize(dynamics, x, u):
    return dynamics.sensitivities(x, u, jnp.asarray(0))


@eqx.filter_jit
def _reverse(dynamics, x, u):
    space = dynamics.state_space
    base = jax.lax.stop_gradient(dynamics.step(x, u, jnp.asarray(0)))

    def move(d):
        return space.difference(dynamics.step(space.retract(x, d), u, jnp.asarray(0)), base)

    return jax.jacrev(move)(jnp.zeros(space.tangent_dim(x.size), x.dtype))

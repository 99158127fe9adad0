"""One step of MJX from its public functions, with only the contact solve exchanged.

MJX 3.17 cannot be differentiated in reverse mode with more than one solver iteration (its solver is a
`while_loop`). Nothing of MJX is copied or patched here: `forward` calls what `mjx.forward` calls.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, PyTree
from optdyn.dynamics import StateSpace
from optdyn.mjx._backend import Data, Model, mjx
from optdyn.mjx._implicit import ImplicitSolve
from optdyn.mjx._residual import Layout, Terms, forces, relative_residual

_RK4_NODES = (0.5, 0.5, 1.0)
_RK4_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


class ContactSolve(eqx.Module):
    """How the contact problem of a step is solved and differentiated.

    Arguments:
        method: "implicit": MJX's solver, differentiated at its solution; "unrolled": as many single
            iterations of MJX's Newton solver in a `scan`, differentiated one by one (for comparison);
            "mjx": MJX's solver as it is (values and forward mode only).
        rule: derivatives of "implicit".
    """

    method: Literal["implicit", "unrolled", "mjx"] = eqx.field(static=True, default="implicit")
    rule: ImplicitSolve = eqx.field(static=True, default_factory=ImplicitSolve)

    def __check_init__(self):
        if self.method not in ("implicit", "unrolled", "mjx"):
            raise ValueError(f"method must be 'implicit', 'unrolled' or 'mjx', got {self.method!r}")

    def __call__(self, m: Model, d: Data) -> Data:
        """Data with accelerations and constraint forces."""
        if self.method == "mjx":
            return mjx.solve(m, d)
        if self.method == "unrolled":
            return _unrolled(m, d)
        layout, terms = contact_problem(m, d)
        found = mjx.solve(*jax.lax.stop_gradient((m, d))).qacc
        qacc = self.rule.attach(layout, terms, found)
        # Integrators use the forces, not only the accelerations: recomputed outside of the rule they carry
        # their own derivative.
        force = forces(layout, qacc, terms)
        return d.tree_replace(
            {"qacc": qacc, "qfrc_constraint": terms.jacobian.T @ force, "_impl.efc_force": force}
        )


def _unrolled(m: Model, d: Data) -> Data:
    if m.opt.solver != mjx.SolverType.NEWTON:
        raise ValueError("method 'unrolled' restarts the solver at each iteration, which suits Newton only")
    flags = m.opt.disableflags & ~mjx.DisableBit.WARMSTART
    single = m.replace(opt=m.opt.replace(iterations=1, disableflags=flags))

    def iterate(qacc, _):
        return mjx.solve(single, d.replace(qacc_warmstart=qacc)).qacc, None

    start = jax.lax.stop_gradient(d.qacc_warmstart)
    if m.opt.disableflags & mjx.DisableBit.WARMSTART:
        start = d.qacc_smooth
    qacc, _ = jax.lax.scan(iterate, start, length=m.opt.iterations - 1)
    return mjx.solve(single, d.replace(qacc_warmstart=qacc))


def contact_problem(m: Model, d: Data) -> tuple[Layout, Terms]:
    """The contact problem of data that `mjx.fwd_acceleration` has completed."""
    raw, contact = d._impl, d._impl.contact
    ne, nf = int(raw.ne), int(raw.nf)
    cones, friction = (), None
    if m.opt.cone == mjx.ConeType.ELLIPTIC:
        which = np.flatnonzero(contact.dim > 1)
        cones = tuple((int(contact.efc_address[i]), int(contact.dim[i])) for i in which)
        slopes = contact.friction[which]
        friction = jnp.concatenate([slopes[:, :1] / jnp.sqrt(m.opt.impratio), slopes], axis=1)
    sparsity = None
    if mjx.is_sparse(m):
        rows = np.repeat(np.arange(m.nv), m.M_rownnz)
        sparsity = tuple(map(int, rows)), tuple(map(int, m.M_colind))
    layout = Layout(ne, nf, raw.efc_J.shape[0], m.nv, cones, sparsity)
    loss = raw.efc_frictionloss[ne : ne + nf]
    return layout, Terms(raw.M, raw.efc_J, raw.efc_aref, raw.efc_D, loss, d.qfrc_smooth, friction)


def forward(m: Model, d: Data, solve: ContactSolve, *, sensors: bool = False) -> Data:
    """Accelerations and forces of a state (`mjx.forward`), sensors on demand."""
    d = mjx.fwd_position(m, d)
    d = mjx.sensor_pos(m, d) if sensors else d
    d = mjx.fwd_velocity(m, d)
    d = mjx.sensor_vel(m, d) if sensors else d
    d = mjx.fwd_actuation(m, d)
    d = mjx.fwd_acceleration(m, d)
    d = solve(m, d) if d._impl.efc_J.size else d.replace(qacc=d.qacc_smooth)
    return mjx.sensor_acc(m, d) if sensors else d


def step(m: Model, d: Data, solve: ContactSolve, space: StateSpace) -> tuple[Data, Array]:
    """The next data (`mjx.step`) and the largest relative residual of the contact solves of the step.

    `space` tells where the quaternions of `qpos` are.
    """
    # The converged solution does not depend on where the solver started.
    d = d.replace(qacc_warmstart=jax.lax.stop_gradient(d.qacc_warmstart))
    d = forward(m, d, solve)
    error = _error(m, d)
    if m.opt.integrator == mjx.IntegratorType.EULER:
        return _advance(m, d, mjx.euler(m, d), space), error
    if m.opt.integrator == mjx.IntegratorType.IMPLICITFAST:
        return _advance(m, d, mjx.implicit(m, d), space), error
    if m.opt.integrator == mjx.IntegratorType.RK4:
        return _rk4(m, d, solve, space, error)
    raise ValueError(f"MJX has no integrator {m.opt.integrator!r}")


def _error(m: Model, d: Data) -> Array:
    if not d._impl.efc_J.size:
        return jnp.zeros_like(d.qpos, shape=())
    return jax.lax.stop_gradient(_relative(*contact_problem(m, d), d.qacc))


def _relative(layout: Layout, terms: Terms, qacc: Array) -> Array:
    terms, qacc = jax.lax.stop_gradient((terms, qacc))
    return relative_residual(layout, qacc, terms)


def _advance(m: Model, d: Data, end: Data, space: StateSpace, qvel: Array | None = None) -> Data:
    """`end` with positions integrated here, along its own velocities by default.

    MJX gives the same values, but no derivative of a rotation by an angular velocity that is zero.
    """
    qvel = end.qvel if qvel is None else qvel
    qpos = space.retract(d.qpos, m.opt.timestep * qvel)
    return end.replace(qpos=qpos, qacc_warmstart=jax.lax.stop_gradient(d.qacc))


def _rk4(m: Model, d0: Data, solve: ContactSolve, space: StateSpace, error: Array) -> tuple[Data, Array]:
    """The classical Runge-Kutta method: `mjx.rungekutta4` calls MJX's own solver."""
    h = m.opt.timestep

    def rates(d) -> PyTree:
        return d.qvel, d.qacc, d.act_dot

    def stage(carry, node):
        d, error = carry
        qvel, qacc, act_dot = rates(d)
        d = d.replace(
            qpos=space.retract(d0.qpos, node * h * qvel),
            qvel=d0.qvel + node * h * qacc,
            act=d0.act + node * h * act_dot,
            time=d0.time + node * h,
        )
        d = forward(m, d, solve)
        return (d, jnp.maximum(error, _error(m, d))), rates(d)

    nodes = jnp.asarray(_RK4_NODES, d0.qpos.dtype)
    (d, error), later = jax.lax.scan(stage, (d0, error), nodes)
    weights = jnp.asarray(_RK4_WEIGHTS, d0.qpos.dtype)
    qvel, qacc, act_dot = jax.tree.map(
        lambda first, rest: weights[0] * first + weights[1:] @ rest, rates(d0), later
    )
    # The update of velocities, activations and time is Euler's with the mean rates; positions are ours.
    flags = m.opt.disableflags | mjx.DisableBit.EULERDAMP
    plain = m.replace(opt=m.opt.replace(disableflags=flags))
    start = d.replace(qpos=d0.qpos, qvel=d0.qvel, act=d0.act, time=d0.time, qacc=qacc, act_dot=act_dot)
    end = mjx.euler(plain, start)
    return _advance(m, d0, end, space, qvel), error

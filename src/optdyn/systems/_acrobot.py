"""Acrobot: a double pendulum with a motor at the elbow only, without and with hard elbow limits.

Parameters, costs and the published step: 'Trajectory Optimization with Optimization-Based Dynamics' (2021)
and its companion code. Angles: shoulder from hanging down, elbow relative to the upper link. The state is
(q_previous, q) [4]; the control is the impulse of the motor per step in N m s [1].
"""

import jax.numpy as jnp
import numpy as np

from optdyn.dynamics import Mechanism, ProgramDynamics, mechanical_dynamics
from optdyn.interior_point import InteriorPoint
from optdyn.systems._scenario import Panel, Scenario, Settings, Shape
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation, Equality, Plan, TrajectoryProblem

MASS = 1.0  # kg, each link
LENGTH = 1.0  # m, each link
CENTER = 0.5  # m, joint to centre of mass
INERTIA = 0.333  # kg m^2, each link about its joint
GRAVITY = 9.81  # m / s^2
DAMPING = 0.5  # N m s / rad, both joints
LIMIT = np.pi / 2  # rad, of the elbow
STEP = 0.05  # s
CENTRAL_PATH = 1e-4  # N m s rad: impulse times gap at which the limits are simulated


GOAL = (np.pi, 0.0, np.pi, 0.0)  # upright and at rest


# Functions of the module rather than closures: all scenarios of one variant share one compiled program.
def _kinetic_energy(q, v):
    coupling = MASS * LENGTH * CENTER * jnp.cos(q[1])
    m11 = 2 * INERTIA + MASS * LENGTH**2 + 2 * coupling
    m12 = INERTIA + coupling
    mass_matrix = jnp.stack([jnp.stack([m11, m12]), jnp.stack([m12, jnp.full_like(m11, INERTIA)])])
    return v @ (mass_matrix @ v) / 2


def _potential_energy(q):
    upper = -CENTER * jnp.cos(q[0])
    lower = -LENGTH * jnp.cos(q[0]) - CENTER * jnp.cos(q[0] + q[1])
    return MASS * GRAVITY * (upper + lower)


def _motor(q):
    return jnp.asarray([[0.0], [1.0]], q.dtype)


def _damping(q, v):
    return -DAMPING * v


def _gaps(q):
    return jnp.stack([LIMIT - q[1], q[1] + LIMIT])


def _velocity(x):
    return (x[2:] - x[:2]) / STEP


def _stage_cost(x, u, t):
    return 0.05 * jnp.sum(_velocity(x) ** 2) + 0.5 * jnp.sum(u**2)


def _terminal_cost(x):
    return 0.05 * jnp.sum(_velocity(x) ** 2)


def _distance_to_goal(x):
    return x - jnp.asarray(GOAL, x.dtype)


def mechanism(limits: bool = True) -> Mechanism:
    """The acrobot by its energies; gaps are pi/2 - q2 and q2 + pi/2."""
    return Mechanism(
        kinetic_energy=_kinetic_energy,
        potential_energy=_potential_energy,
        input_map=_motor,
        force=_damping,
        gap=_gaps if limits else None,
        num_positions=2,
        num_inputs=1,
        num_gaps=2 if limits else 0,
    )


def dynamics(
    limits: bool = True,
    paper: bool = False,
    central_path: float = CENTRAL_PATH,
    smoothing: float | None = 1e-2,
) -> ProgramDynamics:
    """Time stepping of the acrobot; `paper` selects the published discretisation."""
    return mechanical_dynamics(
        mechanism(limits),
        STEP,
        input_units="impulse",
        form="paper_compat" if paper else "variational",
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )


def build(variant: str, settings: Settings) -> Scenario:
    """Swing up from hanging at rest and stop upright."""
    limits, paper = variant.startswith("joint_limits"), variant.endswith("_paper")
    dtype = settings.dtype
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    problem = TrajectoryProblem(
        dynamics(limits, paper, central_path),
        horizon=100 if paper else 200,
        stage_cost=_stage_cost,
        terminal_cost=_terminal_cost,
        terminal_constraint=Equality(_distance_to_goal),
    )
    # The smoothing ends close to the simulated kappa of 1e-4, and the penalties stay moderate: with large
    # ones, derivatives that do not belong to the simulated impacts no longer lower the merit. Ending at 3e-4,
    # one seed in forty of the published form never settled.
    if variant.endswith("_paper"):
        smoothing = Continuation(start=1e-2, end=1e-4, factor=0.75)
    else:
        smoothing = Continuation(start=1e-2, end=2e-4, factor=0.7)
    if settings.smoothing is not None:
        smoothing = Continuation(start=settings.smoothing, end=settings.smoothing)
    noise = np.random.default_rng(settings.seed).normal(size=(problem.horizon, 1))
    return Scenario(
        name="acrobot",
        variant=variant,
        description="Swing up a double pendulum with a motor at the elbow"
        + (", whose angle stays between hard limits" if limits else ""),
        problem=problem,
        x0=jnp.zeros(4, dtype),
        controls=jnp.asarray(1e-3 * noise, dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=12, cost_tol=5e-4),
            constraint_tol=1e-3,
            max_rounds=40,
            early_cost_tol=1e-2,
            initial_penalty=100.0,
            penalty_factor=4.0,
            max_penalty=2e5,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=(-2.3, 2.3, -2.3, 2.3),
        goal_error=lambda plan: float(np.max(np.abs(np.asarray(plan.states[-1]) - np.asarray(GOAL)))),
        draw=_draw,
        panels=lambda plan: _panels(plan, limits),
    )


def _draw(x) -> list[Shape]:
    q = np.asarray(x, dtype=float)[2:]
    elbow = LENGTH * np.array([np.sin(q[0]), -np.cos(q[0])])
    tip = elbow + LENGTH * np.array([np.sin(q[0] + q[1]), -np.cos(q[0] + q[1])])
    return [
        Shape("polygon", np.array([[-0.18, 0.16], [0.18, 0.16], [0.0, 0.0]]), color="#9AA0A6", width=1.0),
        Shape("polyline", np.stack([np.zeros(2), elbow]), color="#0072B2", width=6.0, label="upper link"),
        Shape("polyline", np.stack([elbow, tip]), color="#D55E00", width=6.0, label="lower link"),
        Shape("disc", elbow[None], radius=0.07, color="#222222", width=1.0),
        Shape("disc", tip[None], radius=0.05, color="#D55E00", width=1.0, label="tip"),
    ]


def _panels(plan: Plan, limits: bool) -> list[Panel]:
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    times = STEP * np.arange(len(states))
    q, v = states[:, 2:], (states[:, 2:] - states[:, :2]) / STEP
    panels = [
        Panel("Shoulder angle", "rad", times, {"shoulder": q[:, 0]}, goals=(np.pi,)),
        Panel("Elbow angle", "rad", times, {"elbow": q[:, 1]}, (-LIMIT, LIMIT) if limits else ()),
        Panel("Joint velocities", "rad/s", times, {"shoulder": v[:, 0], "elbow": v[:, 1]}),
        Panel("Motor impulse per step", "N m s", times[:-1], {"elbow motor": controls[:, 0]}, kind="step"),
    ]
    if limits:
        impulse = np.asarray(plan.step_info.outputs["impulse"])
        panels.append(
            Panel(
                "Limit impulses per step",
                "N m s",
                times[1:],
                {"upper limit": impulse[:, 0], "lower limit": impulse[:, 1]},
                kind="step",
            )
        )
    return panels

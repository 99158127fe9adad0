"""Direct contact-implicit transcription: everything that happens in all steps in one program.

The same discrete mechanics as the scenarios (variational, contact directions at the end of the step), the
same costs and constraints, complementarity relaxed to the scenarios' kappa (Posa, Cantu and Tedrake, 'A
direct method for trajectory optimization of rigid bodies through contact', 2014). Maximum dissipation:
sigma b + psi v = 0, |b| <= psi, sigma (psi^2 - |b|^2) <= kappa. casadi builds it, IPOPT solves it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdyn.bench._direct_systems import SYSTEMS, Model
from optdyn.bench._plans import Run, summary
from optdyn.systems import load


@dataclass(frozen=True)
class Transcription:
    """A nonlinear program in casadi's form, its bounds, and a first guess from controls.

    The solver may leave the bounds of the constraints by `tolerance`, which is zero except at the goal.
    """

    problem: dict[str, Any]
    lower: np.ndarray
    upper: np.ndarray
    constraint_lower: np.ndarray
    constraint_upper: np.ndarray
    tolerance: np.ndarray
    guess: Callable[[np.ndarray], np.ndarray]


def transcribe(model: Model) -> Transcription:
    """All steps of a model as one program."""
    import casadi as ca

    n, places = model.num_positions, len(model.dims)
    step = _step_function(model)
    q0, q1 = ca.DM(model.start), ca.SX.sym("q1", n)
    w, lower, upper = [q1], [], []
    free = model.first_is_free
    lower.append(np.full(n, -np.inf) if free else model.start)
    upper.append(np.full(n, np.inf) if free else model.start)
    rows, low, high, around = [], [], [], []

    def constrain(row, lo, hi, tolerance=0.0):
        rows.append(row)
        low.append(np.full(row.numel(), lo))
        high.append(np.full(row.numel(), hi))
        around.append(np.full(row.numel(), tolerance))

    cost, previous, current = model.first_cost(ca, q1), q0, q1
    if free:
        constrain(model.first_constraint(ca, q1), 0.0, 0.0)
    tangents = sum(model.dims)
    for t in range(model.horizon):
        u, q = ca.SX.sym(f"u{t}", model.num_inputs), ca.SX.sym(f"q{t}", n)
        press, rub = ca.SX.sym(f"p{t}", model.num_gaps), ca.SX.sym(f"b{t}", tangents)
        speed = ca.SX.sym(f"s{t}", places)
        w += [u, q, press, rub, speed]
        free_rows = np.full(n + tangents, np.inf)
        lower += [np.full(model.num_inputs, -model.limit), -free_rows[:n], np.zeros(model.num_gaps)]
        lower += [-free_rows[n:], np.zeros(places)]
        upper += [np.full(model.num_inputs, model.limit), free_rows[:n], np.full(model.num_gaps, np.inf)]
        upper += [free_rows[n:], np.full(places, np.inf)]
        balance, gap, dissipation, inside, slack_gap, slack_slip = step(
            previous, current, q, u, press, rub, speed
        )
        constrain(balance, 0.0, 0.0)
        constrain(gap, 0.0, np.inf)
        constrain(dissipation, 0.0, 0.0)
        constrain(inside, 0.0, np.inf)
        constrain(slack_gap, -np.inf, model.central_path)
        constrain(slack_slip, -np.inf, model.central_path)
        cost += model.stage_cost(ca, previous, current, u, t)
        previous, current = current, q
    cost += model.terminal_cost(ca, previous, current)
    for row, lo, hi in model.terminal_constraints(ca, q1, previous, current):
        constrain(row, lo, hi, model.tolerance)

    def guess(controls: np.ndarray) -> np.ndarray:
        parts = [model.start]
        for t, control in enumerate(controls):
            posture = model.way((t + 1) / model.horizon)
            parts += [control, posture, np.full(model.num_gaps, 0.1), np.zeros(tangents), np.ones(places)]
        return np.concatenate(parts)

    return Transcription(
        {"x": ca.vertcat(*w), "f": cost, "g": ca.vertcat(*rows)},
        np.concatenate(lower),
        np.concatenate(upper),
        np.concatenate(low),
        np.concatenate(high),
        np.concatenate(around),
        guess,
    )


def _step_function(model: Model):
    """(q0, q1, q2, u, gap impulses, friction impulses, slip speeds) -> rows of one step."""
    import casadi as ca

    n, h = model.num_positions, model.step
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    lagrangian = model.kinetic_energy(ca, q, v) - model.potential_energy(ca, q)
    slopes = ca.Function("slopes", [q, v], [ca.gradient(lagrangian, q), ca.gradient(lagrangian, v)])
    q0, q1, q2 = (ca.SX.sym(name, n) for name in ("q0", "q1", "q2"))
    u, press = ca.SX.sym("u", model.num_inputs), ca.SX.sym("press", model.num_gaps)
    rub, speed = ca.SX.sym("rub", sum(model.dims)), ca.SX.sym("speed", len(model.dims))
    v0, v1, middle = (q1 - q0) / h, (q2 - q1) / h, (q1 + q2) / 2
    early, late = slopes((q0 + q1) / 2, v0), slopes(middle, v1)
    forces = h / 2 * (model.force(ca, (q0 + q1) / 2, v0) + model.force(ca, middle, v1))
    gap = model.gap(ca, q2)
    slip = model.slip(ca, q2, v1)
    pull = ca.jacobian(gap, q2).T @ press + (ca.jacobian(model.slip(ca, q2, v), v)).T @ rub
    balance = (
        h / 2 * (early[0] + late[0]) + early[1] - late[1] + forces + model.input_map(ca, middle) @ u + pull
    )
    limit = model.friction * model.normal_impulse(ca, press)
    dissipation, inside, slack, start = [], [], [], 0
    for place, dim in enumerate(model.dims):
        b, s = rub[start : start + dim], slip[start : start + dim]
        dissipation.append(speed[place] * b + limit[place] * s)
        inside.append(limit[place] ** 2 - ca.sumsqr(b))
        slack.append(speed[place] * inside[-1])
        start += dim
    outputs = [balance, gap, ca.vertcat(*dissipation), ca.vertcat(*inside), press * gap, ca.vertcat(*slack)]
    return ca.Function("step", [q0, q1, q2, u, press, rub, speed], outputs)


def measure_direct(name: str, variant: str, seeds: int) -> dict[str, Any]:
    """Solve the transcription from the scenario's first controls and a straight way of the configurations.

    The goal has the scenario's tolerance on either side: without it the multipliers of a block at rest are
    not determined, and IPOPT stops with an error in the computation of its step. The violation counts from
    the goal itself, as that of a plan does.
    """
    import casadi as ca

    model = SYSTEMS[name](variant)
    began = time.process_time()
    nlp = transcribe(model)
    options = {
        "ipopt.tol": 1e-4,
        "ipopt.constr_viol_tol": 1e-5,
        "ipopt.max_iter": 1000,
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "print_time": False,
    }
    solver = ca.nlpsol("direct", "ipopt", nlp.problem, options)
    build_s = time.process_time() - began
    runs = []
    for seed in range(seeds):
        began = time.process_time()
        answer = solver(
            x0=nlp.guess(np.asarray(load(name, variant, seed=seed).controls)),
            lbx=nlp.lower,
            ubx=nlp.upper,
            lbg=nlp.constraint_lower - nlp.tolerance,
            ubg=nlp.constraint_upper + nlp.tolerance,
        )
        stats, g = solver.stats(), np.asarray(answer["g"]).ravel()
        over = np.maximum(g - nlp.constraint_upper, nlp.constraint_lower - g)
        solved = bool(stats["success"]) and bool(np.all(over <= nlp.tolerance + 1e-5))
        cost, violation = float(answer["f"]), float(max(over.max(), 0.0))
        runs.append(Run(solved, int(stats["iter_count"]), cost, violation, time.process_time() - began))
    # The transcription has no lower level.
    return {
        **summary(runs),
        "lower_level_solves": None,
        "lower_level_failed": None,
        "compile_cpu_s": build_s,
    }

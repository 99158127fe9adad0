"""Forward pass: how far to go along the feedback law."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Bool, Float, Int
from optdyn.trajopt._history import LowerLevelTotals
from optdyn.trajopt._objective import Objective
from optdyn.trajopt._riccati import BackwardPass
from optdyn.trajopt._rollout import Policy, Trajectory


class Candidate(eqx.Module):
    """A rolled-out trajectory and its value."""

    trajectory: Trajectory
    merit: Float[Array, ""]
    cost: Float[Array, ""]
    violation: Float[Array, ""]
    step_length: Float[Array, ""]
    accepted: Bool[Array, ""]
    lower_level: LowerLevelTotals


def evaluate(objective: Objective, trajectory: Trajectory, lower_level: LowerLevelTotals) -> Candidate:
    """Value of a trajectory as it is; one that was not simulated yet has infinite merit."""
    merit, cost, violation = objective.merit(trajectory)
    one, no = jnp.ones((), merit.dtype), jnp.asarray(False)
    return Candidate(trajectory, merit, cost, violation, one, no, lower_level)


def line_search(
    objective: Objective,
    current: Candidate,
    policy: BackwardPass,
    sufficient_decrease: float,
    max_backtracks: Int[Array, ""],
) -> Candidate:
    """Halve the step until the merit falls by a part of what the model predicts (Armijo).

    A candidate with a failed lower-level solve has infinite merit, so it is accepted only where the current
    merit is infinite too, which means that nothing was simulated yet. The last candidate comes back
    unaccepted when none is. `max_backtracks = -1` skips the search.
    """
    law = Policy(
        current.trajectory, policy.gains, policy.feedforward, objective.problem.start, policy.parameter_step
    )
    first = jnp.isinf(current.merit)

    def attempt(alpha, lower_level) -> Candidate:
        trajectory = law.rollout(objective.problem.dynamics, alpha, chained=first)
        merit, cost, violation = objective.merit(trajectory)
        accepted = merit <= current.merit + sufficient_decrease * alpha * policy.slope
        return Candidate(
            trajectory, merit, cost, violation, alpha, accepted, lower_level.add_rollout(trajectory)
        )

    def retry(carry):
        candidate, tries = carry
        return (tries <= max_backtracks) & ((tries == 0) | ~candidate.accepted)

    def halve(carry):
        candidate, tries = carry
        alpha = jnp.where(tries == 0, candidate.step_length, candidate.step_length / 2)
        return attempt(alpha, candidate.lower_level), tries + 1

    # The loop body is the only place where a rollout is compiled.
    start = eqx.tree_at(
        lambda c: (c.step_length, c.accepted), current, (jnp.ones_like(current.merit), jnp.asarray(False))
    )
    candidate, _ = jax.lax.while_loop(retry, halve, (start, jnp.asarray(0)))
    return candidate

"""The one enumeration of outcomes; every solve at every level returns a member of it."""

import equinox as eqx
import jax
import jax.numpy as jnp


class RESULTS(eqx.Enumeration):
    """Outcome of a solve.

    `successful` is claimed only when every violation is within tolerance. All other members are
    failures; what is returned with them is the last iterate, for inspection.
    """

    successful = ""
    max_steps_reached = (
        "The maximum number of solver steps was reached. Raise `max_steps`, give a better `guess`, or check "
        "that the problem has a solution."
    )
    infeasible = (
        "The constraints have no common point: a certificate of infeasibility was found (see "
        "`stats.certificate`). For a program that is not convex the certificate holds for the constraints "
        "linearized at the last iterate."
    )
    unbounded = (
        "The objective is unbounded below along a feasible ray (see `stats.certificate`). Add bounds or "
        "curvature to the objective."
    )
    nonfinite_input = (
        "The problem data or the guess contains NaN or infinity. Only right-hand sides of inequality rows "
        "may be +inf (absent rows)."
    )
    nonfinite = (
        "A NaN or infinity appeared during the iterations. The functions of the problem are probably not "
        "defined at a point near the guess."
    )
    singular = (
        "The linear system of a step could not be factored, even with regularization. Check for variables "
        "that no equation depends on."
    )
    stalled = (
        "No acceptable step was found although the point is not a solution within tolerance. The tolerance "
        "may be below what this data allows in floating point, or the problem has no central path."
    )


RESULT_NAMES = (
    "successful",
    "max_steps_reached",
    "infeasible",
    "unbounded",
    "nonfinite_input",
    "nonfinite",
    "singular",
    "stalled",
)


def first_failed(results) -> RESULTS:
    """The first of several members [n] that is not `successful`; `successful` if there is none."""
    first = jnp.argmax(results != RESULTS.successful)
    return jax.tree.map(lambda leaf: leaf[first], results)


def result_name(result) -> str:
    """Name of one concrete member, such as `"successful"` (for reports and JSON)."""
    for name in RESULT_NAMES:
        if bool(result == getattr(RESULTS, name)):
            return name
    raise ValueError("result_name() takes one concrete member of RESULTS")

"""How a solve is differentiated: a choice of the user, apart from the solver."""

from typing import Literal

import equinox as eqx

from optdyn._typing import Array


class AbstractAdjoint(eqx.Module):
    """Base of the ways to differentiate a solve."""


class ImplicitAdjoint(AbstractAdjoint):
    """Implicit function theorem at the central-path point of `smoothing`; the solver is never unrolled.

    Arguments:
        smoothing: kappa at which the derivative is taken. Larger values give derivatives that also feel
            constraints which are not active yet. None: the solver's own `central_path`, which makes the
            derivative that of the returned value. Default 1e-3.
        mode: "reverse" (`jax.custom_vjp`: grad, jacrev, grad of grad) or "forward" (`jax.custom_jvp`:
            jvp, jacfwd, `jax.hessian`, and reverse mode by transposition).
        on_failure: the derivative after a solve that failed: "nan" (default), "zero", or "best_effort" (the
            formula evaluated at the last iterate).
    """

    smoothing: float | Array | None = 1e-3
    mode: Literal["reverse", "forward"] = eqx.field(static=True, default="reverse")
    on_failure: Literal["nan", "zero", "best_effort"] = eqx.field(static=True, default="nan")

    def __check_init__(self):
        if isinstance(self.smoothing, float | int) and not 0 < self.smoothing < float("inf"):
            raise ValueError(f"smoothing must be a positive number or None, got {self.smoothing}")
        if self.mode not in ("reverse", "forward"):
            raise ValueError(f"mode must be 'reverse' or 'forward', got {self.mode!r}")
        if self.on_failure not in ("nan", "zero", "best_effort"):
            raise ValueError(f"on_failure must be 'nan', 'zero' or 'best_effort', got {self.on_failure!r}")


class UnrolledAdjoint(AbstractAdjoint):
    """Differentiate the iterations themselves, at the solver's `central_path`. For tests and teaching.

    Every step is kept in memory, and all `max_steps` are traced through.
    """

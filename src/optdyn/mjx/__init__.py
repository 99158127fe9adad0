"""MuJoCo MJX models as dynamics, with implicit derivatives of contact (extra `mjx`)."""

from optdyn.mjx._dynamics import MJXDynamics
from optdyn.mjx._implicit import ImplicitSolve
from optdyn.mjx._model import MJXNotice, load_model
from optdyn.mjx._replay import REPLAY_TOLERANCE, replay
from optdyn.mjx._residual import Layout, Terms, cost, forces, hessian, relative_residual, residual
from optdyn.mjx._step import ContactSolve, contact_problem, forward, step

__all__ = [
    "REPLAY_TOLERANCE",
    "ContactSolve",
    "ImplicitSolve",
    "Layout",
    "MJXDynamics",
    "MJXNotice",
    "Terms",
    "contact_problem",
    "cost",
    "forces",
    "forward",
    "hessian",
    "load_model",
    "relative_residual",
    "replay",
    "residual",
    "step",
]

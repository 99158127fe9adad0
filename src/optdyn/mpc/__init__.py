"""Receding horizons: controllers as pure (init, step) pairs, and closed loops with a plant."""

from optdyn.mpc._base import AbstractController, ControllerState, ControlReport
from optdyn.mpc._loop import ClosedLoop, Episode, closed_loop, simulate
from optdyn.mpc._optimizing import ILQRMPC, GaussNewtonMPC
from optdyn.mpc._plant import AbstractPlant, ModulePlant, MuJoCoPlant
from optdyn.mpc._sampling import DIALMPC, MPPI

__all__ = [
    "DIALMPC",
    "ILQRMPC",
    "MPPI",
    "AbstractController",
    "AbstractPlant",
    "ClosedLoop",
    "ControlReport",
    "ControllerState",
    "Episode",
    "GaussNewtonMPC",
    "ModulePlant",
    "MuJoCoPlant",
    "closed_loop",
    "simulate",
]

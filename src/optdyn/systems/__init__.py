"""Ready-made mechanisms and tasks: data and equations only."""

from optdyn.systems._registry import available, load
from optdyn.systems._scenario import Force, Panel, Scenario, ScenarioError, Shape, Solid

__all__ = ["Force", "Panel", "Scenario", "ScenarioError", "Shape", "Solid", "available", "load"]

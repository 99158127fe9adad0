"""Ready-made mechanisms and tasks: data and equations only."""

from optdyn.systems._registry import available, load
from optdyn.systems._scenario import Panel, Scenario, ScenarioError, Shape

__all__ = ["Panel", "Scenario", "ScenarioError", "Shape", "available", "load"]

"""Ready-made mechanisms and tasks: data and equations only."""

from optdyn.systems._control import ControlTask, available_tasks, load_task
from optdyn.systems._registry import available, load
from optdyn.systems._scenario import Force, Panel, Scenario, ScenarioError, Shape, Solid

__all__ = [
    "ControlTask",
    "Force",
    "Panel",
    "Scenario",
    "ScenarioError",
    "Shape",
    "Solid",
    "available",
    "available_tasks",
    "load",
    "load_task",
]

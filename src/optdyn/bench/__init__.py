"""Measured comparisons. Each suite is a list of tasks; a task measures one method on one case."""

from optdyn.bench._figure import plot
from optdyn.bench._machine import machine
from optdyn.bench._suites import available, columns, tasks
from optdyn.bench._task import Options, Task

__all__ = ["Options", "Task", "available", "columns", "machine", "plot", "tasks"]

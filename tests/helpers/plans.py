"""Solving a scenario, and what every picture of a plan must hold to."""

import numpy as np

import optdyn as od


def solve(scenario):
    return od.optimize_trajectory(
        scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver, throw=False
    )


def check_panels(scenario, plan):
    for panel in scenario.panels(plan):
        assert panel.title
        assert panel.unit
        assert panel.series
        for values in panel.series.values():
            assert np.shape(values) == np.shape(panel.times)
            assert np.isfinite(values).all()


def check_pictures(scenario, plan):
    """The drawing stays inside its frame and has the same parts in every state."""
    xmin, xmax, ymin, ymax = scenario.extent
    kinds = None
    for x in np.asarray(plan.states):
        shapes = scenario.draw(x)
        for shape in shapes:
            assert np.all((shape.points >= [xmin, ymin]) & (shape.points <= [xmax, ymax]))
        kinds = kinds or [(shape.kind, shape.label) for shape in shapes]
        assert [(shape.kind, shape.label) for shape in shapes] == kinds

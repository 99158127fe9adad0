"""The suite that compares Gauss-Newton with sampling, in small."""

import numpy as np

from optdyn.bench import Options, tasks
from optdyn.bench._ggn import dial, ggn, measure_batch, measure_episodes


def test_gauss_newton_costs_less_than_sampling():
    few = [measure_episodes(make, knots=3, seeds=2, steps=15) for make in (ggn, dial)]
    assert all(row["completed"] == 2 for row in few)
    assert all(len(row["costs"]) == 2 for row in few)
    assert np.all(np.array(few[0]["costs"]) < np.array(few[1]["costs"]))
    assert few[0]["variables"] == 36
    assert few[0]["cpu_s_per_solve"] > 0


def test_batch_of_environments():
    row = measure_batch(ggn, 2)
    assert row["environments"] == 2
    assert row["cpu_s_per_solve"] > 0


def test_cases():
    named = {(task.case, task.method) for task in tasks("ggn", Options(seeds=1))}
    assert ("knots 25", "DIAL 4x128") in named
    assert ("environments 1024", "GGN 1x16") in named
    assert len(tasks("ggn", Options(seeds=1, quick=True))) == 4

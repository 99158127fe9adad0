"""What the charts of a panel hold, for every kind of picture."""

from typing import Any, NamedTuple

import numpy as np

# A limit this many spans of the data away would flatten the curve; it is named instead of drawn.
_FAR = 4.0


class Line(NamedTuple):
    """A limit or goal, and whether it is near enough to the data to be drawn."""

    name: str
    value: float
    near: bool


def held(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges and values of a piecewise constant series, the last value held to the end of its interval."""
    if times.size == values.size:
        step = times[-1] - times[-2] if times.size > 1 else 1.0
        times = np.append(times, times[-1] + step)
    return times[: values.size + 1], np.append(values, values[-1])


def limit_lines(panel: Any) -> list[Line]:
    """The finite limits and goals of a panel."""
    data = [np.asarray(values, dtype=float).ravel() for values in panel.series.values()]
    finite = np.concatenate(data) if data else np.zeros(0)
    finite = finite[np.isfinite(finite)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    reach = _FAR * max(high - low, abs(high), abs(low), 1e-9)
    named = [("limit", float(value)) for value in panel.limits] + [
        ("goal", float(value)) for value in panel.goals
    ]
    return [
        Line(name, value, bool(low - reach <= value <= high + reach))
        for name, value in named
        if np.isfinite(value)
    ]

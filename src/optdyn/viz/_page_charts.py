"""Charts of the interactive page: a panel as the arrays of a uPlot chart with a line at the present."""

from typing import Any

import numpy as np

from optdyn.viz._curves import held, limit_lines
from optdyn.viz._palette import COLORS, GOAL, INK, LIMIT

_HEIGHT = 190  # pixels
_LABELS = 64  # pixels for the numbers beside the chart
_MARGIN = 0.06  # of the range, above and below


class PageChart:
    """The curves of one panel.

    All curves share their instants. Three more instants are at the present: the line that marks it is a curve
    that lies on the lower edge but for one of them.
    """

    def __init__(self, panel: Any, end: float) -> None:
        """`end` is the last instant of the page in s."""
        times = np.asarray(panel.times, dtype=float)
        curves = {name: np.asarray(values, dtype=float) for name, values in panel.series.items()}
        if panel.kind == "step":
            edges, _ = held(times, next(iter(curves.values())))
            self._x = np.repeat(edges, 2)[1:-1]
            self._y = [np.repeat(values, 2) for values in curves.values()]
        else:
            self._x = times
            self._y = list(curves.values())
        self.end = max(end, float(self._x[-1]))
        self.title = f"{panel.title} [{panel.unit}]" if panel.unit else panel.title
        self.names = list(curves)
        self.lines = [line for line in limit_lines(panel) if line.near]
        self.low, self.high = _range([*self._y, *([line.value] for line in self.lines)])

    def data(self, now: float) -> tuple[np.ndarray, ...]:
        """Instants, curves, limits, and the line at the present; arrays of equal length."""
        i = int(np.searchsorted(self._x, now, side="right"))
        x = np.insert(self._x, i, [now] * 3)
        before, after = max(i - 1, 0), min(i, len(self._x) - 1)
        width = self._x[after] - self._x[before]
        part = (now - self._x[before]) / width if width > 0 else 0.0
        curves = [np.insert(y, i, [y[before] + part * (y[after] - y[before])] * 3) for y in self._y]
        lines = [np.full(len(x), line.value) for line in self.lines]
        present = np.full(len(x), self.low)
        present[i + 1] = self.high
        return (x, *curves, *lines, present)

    def options(self) -> dict[str, Any]:
        """Arguments of `add_uplot` beside the data."""
        no_points = {"show": False}
        series: list[dict[str, Any]] = [{"label": "time [s]"}]
        for i, name in enumerate(self.names):
            color = COLORS[i % len(COLORS)]
            series.append({"label": name, "stroke": color, "width": 1.6, "points": no_points})
        for line in self.lines:
            color = GOAL if line.name == "goal" else LIMIT
            series.append(
                {
                    "label": f"{line.name} {line.value:.3g}",
                    "stroke": color,
                    "width": 1,
                    "dash": (5, 3),
                    "points": no_points,
                }
            )
        series.append({"label": "now", "stroke": INK, "width": 1, "points": no_points})
        return {
            "title": self.title,
            "series": tuple(series),
            "scales": {
                "x": {"time": False, "auto": False, "range": (0.0, self.end)},
                "y": {"auto": False, "range": (self.low, self.high)},
            },
            "axes": ({}, {"size": _LABELS}),
            "legend": {"show": len(self.names) > 1 or self.names[0] != self.title, "live": False},
            "height": _HEIGHT,
        }


def _range(values: list[Any]) -> tuple[float, float]:
    finite = np.concatenate([np.ravel(np.asarray(one, dtype=float)) for one in values])
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    margin = _MARGIN * (high - low) or max(abs(high), 1.0) * _MARGIN
    return low - margin, high + margin

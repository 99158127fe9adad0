"""Controls as splines: few knots, many stages."""

from typing import Literal

import equinox as eqx
import numpy as np

from optdyn._typing import Array, Float


class ControlSpline(eqx.Module):
    """Controls interpolate knots that are spread evenly from the first stage to the last, both included.

    Arguments:
        num_knots: number of knots K (None: one for each stage, so that the controls themselves are free).
        kind: "linear", or "cubic": twice differentiable with zero curvature at both ends. A linear spline
            stays between its knots; a cubic one can overshoot them, and is then cut off at the bounds.

    Raises:
        ValueError: for fewer than one knot or an unknown kind.
    """

    num_knots: int | None = eqx.field(static=True, default=None)
    kind: Literal["linear", "cubic"] = eqx.field(static=True, default="linear")

    def __check_init__(self):
        if self.num_knots is not None and self.num_knots < 1:
            raise ValueError(f"num_knots must be at least 1, got {self.num_knots}")
        if self.kind not in ("linear", "cubic"):
            raise ValueError(f"kind must be 'linear' or 'cubic', got {self.kind!r}")

    def size(self, horizon: int) -> int:
        """Number of knots on a horizon."""
        return horizon if self.num_knots is None else self.num_knots

    def basis(self, horizon: int) -> Float[np.ndarray, "N K"]:
        """The matrix with `controls = basis @ knots`."""
        K = self.size(horizon)
        if K == horizon:
            return np.eye(K)
        return _basis(np.linspace(0, 1, horizon), K, self.kind)

    def resampling(self, horizon: int) -> Float[np.ndarray, "K N"]:
        """The matrix with `knots = resampling @ controls`: linear interpolation where the knots are."""
        K = self.size(horizon)
        if K == horizon:
            return np.eye(K)
        return _basis(np.linspace(0, 1, K), horizon, "linear")

    def shift(self, controls: Float[Array, "N nu"]) -> Float[Array, "N nu"]:
        """Controls one stage later, the last one repeated: a start for the next problem of a horizon."""
        return controls[np.minimum(np.arange(1, len(controls) + 1), len(controls) - 1)]


def _basis(places: np.ndarray, K: int, kind: str) -> np.ndarray:
    """Values at `places` in [0, 1] of the splines that are one at one of K knots and zero at the others."""
    if K == 1:
        return np.ones((len(places), 1))
    at = places * (K - 1)
    left = np.minimum(at.astype(int), K - 2)
    b = at - left
    a, unit = 1 - b, np.eye(K)
    values = a[:, None] * unit[left] + b[:, None] * unit[left + 1]
    if kind == "linear" or K == 2:
        return values
    # Curvatures of the natural spline solve a tridiagonal system (unit spacing): m_- + 4 m + m_+ = 6 y''.
    system, rhs = np.eye(K), np.zeros((K, K))
    for i in range(1, K - 1):
        system[i, i - 1 : i + 2] = 1, 4, 1
        rhs[i, i - 1 : i + 2] = 6, -12, 6
    curvature = np.linalg.solve(system, rhs)
    bend = (a**3 - a)[:, None] * curvature[left] + (b**3 - b)[:, None] * curvature[left + 1]
    return values + bend / 6

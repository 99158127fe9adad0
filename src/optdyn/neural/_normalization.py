"""Centres and scales of states and controls."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float

_FLOOR = 1e-5


def median_absolute_deviation(
    data: Float[Array, "... n"] | np.ndarray, groups: Sequence[Sequence[int]] = (), floor: float = _FLOOR
) -> Float[Array, " n"]:
    """Median of |x - median(x)| over all leading axes, in units of the data; at least `floor`.

    Arguments:
        data: samples.
        groups: indices that share the largest value among them, such as the joints of a robot.
        floor: smallest scale, for entries that never change.

    Raises:
        ValueError: for an index outside the data.
    """
    flat = np.asarray(data, float).reshape(-1, np.shape(data)[-1])
    return _grouped(np.median(np.abs(flat - np.median(flat, axis=0)), axis=0), groups, floor)


def _grouped(scale: np.ndarray, groups: Sequence[Sequence[int]], floor: float) -> Array:
    scale = np.maximum(scale, floor)
    for group in groups:
        if any(not 0 <= i < scale.size for i in group):
            raise ValueError(f"group {list(group)} has an index outside 0..{scale.size - 1}")
        scale[list(group)] = scale[list(group)].max()
    return jnp.asarray(scale, jnp.result_type(float))


class Normalization(eqx.Module):
    """`(value - center) / scale` for states [n] and controls [m], in their units."""

    state_center: Float[Array, " n"]
    state_scale: Float[Array, " n"]
    control_center: Float[Array, " m"]
    control_scale: Float[Array, " m"]

    @classmethod
    def of(
        cls, states, controls, *, scale: Literal["deviation", "mad"] = "mad", groups=()
    ) -> "Normalization":
        """From samples [.., n] and [.., m].

        Arguments:
            states: of all trajectories.
            controls: likewise.
            scale: "mad": medians and median absolute deviations; "deviation": means and standard deviations.
            groups: indices of states that share the largest scale among them.

        Raises:
            ValueError: for an unknown scale, or a group that does not fit.
        """
        if scale not in ("deviation", "mad"):
            raise ValueError(f"scale must be 'deviation' or 'mad', got {scale!r}")
        center = np.median if scale == "mad" else np.mean
        parts = []
        for data, shared in ((states, groups), (controls, ())):
            flat = np.asarray(data, float).reshape(-1, np.shape(data)[-1])
            if scale == "mad":
                spread = median_absolute_deviation(flat, shared)
            else:
                spread = _grouped(flat.std(axis=0), shared, _FLOOR)
            parts += [jnp.asarray(center(flat, axis=0), jnp.result_type(float)), spread]
        return cls(*parts)

    @classmethod
    def none(cls, state_dim: int, control_dim: int) -> "Normalization":
        """Leaves everything as it is."""
        return cls(jnp.zeros(state_dim), jnp.ones(state_dim), jnp.zeros(control_dim), jnp.ones(control_dim))

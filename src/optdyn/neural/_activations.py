"""Activation functions with the largest slope and the largest curvature that they have."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from optdyn._typing import Array


@dataclass(frozen=True)
class Activation:
    """A scalar function with its constants.

    Attributes:
        fn: applied to each entry.
        slope: supremum of |fn'|.
        curvature: supremum of |fn''|, infinite where the slope jumps.
    """

    fn: Callable[[Array], Array]
    slope: float
    curvature: float


def _mish(x: Array) -> Array:
    return x * jnp.tanh(jax.nn.softplus(x))


# Constants that are not round are rounded upwards, so that a bound made of them holds.
_TABLE = {
    "tanh": Activation(jnp.tanh, 1.0, 0.76981),  # 4 / (3 sqrt 3)
    "softplus": Activation(jax.nn.softplus, 1.0, 0.25),
    "mish": Activation(_mish, 1.08851, 0.64422),
    "silu": Activation(jax.nn.silu, 1.09985, 0.5),
    "gelu": Activation(lambda x: jax.nn.gelu(x, approximate=False), 1.12891, 0.79789),
    "elu": Activation(jax.nn.elu, 1.0, 1.0),
    "sine": Activation(jnp.sin, 1.0, 1.0),
    "relu": Activation(jax.nn.relu, 1.0, float("inf")),
}


def activations() -> tuple[str, ...]:
    """Names that `activation` knows."""
    return tuple(_TABLE)


def activation(name: str) -> Activation:
    """The activation of that name.

    Raises:
        ValueError: for a name that is not known.
    """
    if name not in _TABLE:
        raise ValueError(f"unknown activation {name!r}; choose from: {', '.join(_TABLE)}")
    return _TABLE[name]

"""Multilayer perceptrons: free, with softplus bounds of layers, with exponential ones and a budget."""

import abc
import itertools
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.neural._activations import activation as find_activation
from optdyn.neural._clipping import clip_rows, row_sum_norm, spectral_norm
from optdyn.neural._smoothness import (
    curvature_budget,
    excess,
    log_certified,
    log_curvature,
    log_sensitivity,
)

Layers = tuple[Float[Array, "out in"], ...]


class AbstractNetwork(eqx.Module):
    """`y = network(x)` for one input [in]; use `jax.vmap` for several.

    The hidden layers are followed by the activation, the last one is not. `freeze()` is differentiable: a
    loss over a batch calls it once, not once for each sample.
    """

    weights: eqx.AbstractVar[Layers]
    biases: eqx.AbstractVar[tuple[Float[Array, " out"], ...]]
    activation: eqx.AbstractVar[str]

    @abc.abstractmethod
    def effective_weights(self) -> Layers:
        """The matrices that inputs are multiplied with."""

    @abc.abstractmethod
    def log_constants(self) -> Float[Array, " L"]:
        """Log c_l: the norm that layer l is held to, or has where nothing holds it."""

    @abc.abstractmethod
    def penalty(self) -> Float[Array, ""]:
        """What the smoothness objective adds to a loss, before its weight."""

    @property
    def in_size(self) -> int:
        """Length of an input."""
        return self.weights[0].shape[1]

    @property
    def out_size(self) -> int:
        """Length of an output."""
        return self.weights[-1].shape[0]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """The output for one input."""
        fn = find_activation(self.activation).fn
        *hidden, (W, b) = zip(self.effective_weights(), self.biases, strict=True)
        for V, c in hidden:
            x = fn(V @ x + c)
        return W @ x + b

    def freeze(self) -> "FrozenNetwork":
        """The same function with the clipping folded into plain weights."""
        return FrozenNetwork(self.effective_weights(), self.biases, self.activation)

    def sensitivity(self) -> Float[Array, ""]:
        """G = prod c_l, as the smoothness objective sees it: it takes the slope of the activation for 1."""
        return jnp.exp(log_sensitivity(self.log_constants()))

    def curvature(self) -> Float[Array, ""]:
        """J = g sum_m prod_{l<=m} c_l, as the smoothness objective sees it."""
        return jnp.exp(log_curvature(self.log_constants()))

    def certified_bound(self, norm: Literal["max", "euclidean"] = "max") -> Float[Array, ""]:
        """A Lipschitz constant that holds: from the true slope of the activation and norms of the weights.

        |f(x) - f(y)| <= bound |x - y| in the chosen norm (mish is steeper than 1, so `sensitivity()` may be
        exceeded).
        """
        return jnp.exp(self._certified(norm)[0])

    def certified_curvature(self, norm: Literal["max", "euclidean"] = "max") -> Float[Array, ""]:
        """A Lipschitz constant of the Jacobian that holds; infinite for relu, zero for a single layer."""
        return jnp.exp(self._certified(norm)[1])

    def _certified(self, norm: str) -> tuple[Array, Array]:
        norms = {"max": row_sum_norm, "euclidean": spectral_norm}
        if norm not in norms:
            raise ValueError(f"norm must be 'max' or 'euclidean', got {norm!r}")
        constants = find_activation(self.activation)
        log_norms = jnp.log(jnp.stack([norms[norm](W) for W in self.effective_weights()]))
        return log_certified(log_norms, constants.slope, constants.curvature)


class AbstractPlainNetwork(AbstractNetwork):
    """A network whose weights are used as they are; nothing holds its layers."""

    def effective_weights(self):
        return self.weights

    def log_constants(self):
        return jnp.log(jnp.stack([row_sum_norm(W) for W in self.weights]))

    def penalty(self):
        return jnp.zeros((), self.weights[0].dtype)


class FrozenNetwork(AbstractPlainNetwork):
    """A network given by its arrays.

    Arguments:
        weights: matrices [out, in], first layer first.
        biases: [out] for each of them.
        activation: one of `activations()`.

    Raises:
        ValueError: for shapes that do not fit, or an unknown activation.
    """

    weights: Layers
    biases: tuple[Float[Array, " out"], ...]
    activation: str = eqx.field(static=True)

    def __init__(self, weights: Sequence[Array], biases: Sequence[Array], activation: str):
        self.weights, self.biases = tuple(map(jnp.asarray, weights)), tuple(map(jnp.asarray, biases))
        find_activation(activation)
        self.activation = activation
        if not self.weights or len(self.weights) != len(self.biases):
            raise ValueError(f"{len(weights)} matrices and {len(biases)} biases; as many of both are needed")
        width = self.weights[0].shape[-1]
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if W.ndim != 2 or W.shape[1] != width or b.shape != W.shape[:1]:
                raise ValueError(
                    f"layer {i + 1}: weights {W.shape} and biases {b.shape} do not fit {width} inputs"
                )
            width = W.shape[0]


class MLP(AbstractPlainNetwork):
    """A network that nothing bounds.

    Arguments:
        sizes: lengths of input, hidden layers and output, at least two.
        activation: one of `activations()`.
        key: for the initial weights (He normal, the last layer Glorot uniform); the biases are zero.

    Raises:
        ValueError: for sizes or an activation that cannot be meant.
    """

    weights: Layers
    biases: tuple[Float[Array, " out"], ...]
    activation: str = eqx.field(static=True)

    def __init__(self, sizes: Sequence[int], *, activation: str = "mish", key: Array):
        self.weights, self.biases = _initial(sizes, key)
        find_activation(activation)
        self.activation = activation


class LipschitzMLP(AbstractNetwork):
    """Layer bounds c_l = softplus(raw_l).

    'Learning Smooth Neural Functions via Lipschitz Regularization' (2022). A baseline: the slope of
    softplus makes the small constants shrink first, until the network has lost its input.

    Arguments:
        sizes: lengths of input, hidden layers and output.
        budget: allowed sensitivity; the penalty is max(0, g / budget - 1). None: the penalty is g itself.
        activation: one of `activations()`.
        key: for the initial weights.

    Raises:
        ValueError: for arguments that cannot be meant.
    """

    weights: Layers
    biases: tuple[Float[Array, " out"], ...]
    raw: Float[Array, " L"]
    activation: str = eqx.field(static=True)
    budget: float | None = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        budget: float | None = None,
        activation: str = "mish",
        key: Array,
    ):
        self.weights, self.biases = _initial(sizes, key)
        find_activation(activation)
        self.raw = jnp.stack([row_sum_norm(W) for W in self.weights])
        self.activation = activation
        self.budget = None if budget is None else _positive("budget", budget)

    def effective_weights(self):
        return tuple(clip_rows(W, c) for W, c in zip(self.weights, jax.nn.softplus(self.raw), strict=True))

    def log_constants(self):
        return jnp.log(jax.nn.softplus(self.raw))

    def penalty(self):
        log_g = log_sensitivity(self.log_constants())
        return jnp.exp(log_g) if self.budget is None else excess(log_g, self.budget)


class SmoothNeuralSurrogate(AbstractNetwork):
    """Layer bounds c_l = exp(theta_l) and a budget for the whole network.

    'Learning Legged MPC with Smooth Neural Surrogates' (2026), section IV. Rows of W_l whose absolute sum
    exceeds c_l are scaled back to it. Above the budget every theta_l has the same gradient, so the ratios
    of the layers stay as the data want them. The penalty is soft: the bound comes to rest near the budget,
    not below it.

    Arguments:
        sizes: lengths of input, hidden layers and output.
        budget: allowed sensitivity c_ub, without unit (inputs and outputs are meant to be normalised).
        order: 1: penalty max(0, g / c_ub - 1); 2: the same for the curvature j with `curvature_budget`;
            "both": their sum.
        activation: one of `activations()`.
        key: for the initial weights; theta_l starts at the norm of W_l, where nothing is clipped.

    Raises:
        ValueError: for arguments that cannot be meant.
    """

    weights: Layers
    biases: tuple[Float[Array, " out"], ...]
    theta: Float[Array, " L"]
    activation: str = eqx.field(static=True)
    budget: float = eqx.field(static=True)
    order: Literal[1, 2, "both"] = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        budget: float,
        order: Literal[1, 2, "both"] = 1,
        activation: str = "mish",
        key: Array,
    ):
        if order not in (1, 2, "both"):
            raise ValueError(f"order must be 1, 2 or 'both', got {order!r}")
        self.weights, self.biases = _initial(sizes, key)
        find_activation(activation)
        self.theta = jnp.log(jnp.stack([row_sum_norm(W) for W in self.weights]))
        self.activation, self.budget, self.order = activation, _positive("budget", budget), order

    def effective_weights(self):
        return tuple(clip_rows(W, c) for W, c in zip(self.weights, jnp.exp(self.theta), strict=True))

    def log_constants(self):
        return self.theta

    def penalty(self):
        first = excess(log_sensitivity(self.theta), self.budget)
        if self.order == 1:
            return first
        second = excess(log_curvature(self.theta), curvature_budget(self.budget, len(self.weights)))
        return second if self.order == 2 else first + second


def _initial(sizes: Sequence[int], key: Array) -> tuple[Layers, tuple[Array, ...]]:
    if len(sizes) < 2 or any(size < 1 for size in sizes):
        raise ValueError(
            f"sizes must be at least two positive numbers (input, hidden.., output), got {sizes}"
        )
    dtype = jnp.result_type(float)
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = [(m, n) for n, m in itertools.pairwise(sizes)]
    he = jax.nn.initializers.he_normal(in_axis=1, out_axis=0)
    glorot = jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=0)
    kinds = [he] * (len(shapes) - 1) + [glorot]
    weights = tuple(kind(k, shape, dtype) for kind, k, shape in zip(kinds, keys, shapes, strict=True))
    return weights, tuple(jnp.zeros(m, dtype) for m, _ in shapes)


def _positive(name: str, value: float) -> float:
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive number, got {value}")
    return float(value)

"""Networks with a bounded sensitivity, likelihoods for heavy tails, and dynamics made of them."""

from optdyn.neural._activations import Activation, activation, activations
from optdyn.neural._clipping import clip_rows, row_sum_norm, spectral_norm
from optdyn.neural._dynamics import NeuralDynamics
from optdyn.neural._likelihoods import AbstractLikelihood, Cauchy, Gaussian
from optdyn.neural._networks import MLP, AbstractNetwork, FrozenNetwork, LipschitzMLP, SmoothNeuralSurrogate
from optdyn.neural._normalization import Normalization, median_absolute_deviation
from optdyn.neural._smoothness import curvature_budget, log_curvature, log_sensitivity

__all__ = [
    "MLP",
    "AbstractLikelihood",
    "AbstractNetwork",
    "Activation",
    "Cauchy",
    "FrozenNetwork",
    "Gaussian",
    "LipschitzMLP",
    "NeuralDynamics",
    "Normalization",
    "SmoothNeuralSurrogate",
    "activation",
    "activations",
    "clip_rows",
    "curvature_budget",
    "log_curvature",
    "log_sensitivity",
    "median_absolute_deviation",
    "row_sum_norm",
    "spectral_norm",
]

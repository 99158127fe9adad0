"""Runner of cases about networks: norms of weights, activations, values and derivatives, bounds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases.bank import Case
from cases.checking import Findings, as_array, check, finite, named
from optdyn import neural

PAIRS = 2000


def run(case: Case) -> None:
    """Choose by the operation."""
    runners = {
        "spectral norm and W/sigma": _spectral_norm,
        "spectral norm gradient": _spectral_norm,
        "softplus": _activation,
        "tanh MLP": _network,
    }
    op = case.problem["op"]
    assert op in runners, f"no runner knows the operation {op!r} on networks"
    runners[op](case)


def _spectral_norm(case: Case) -> None:
    W = jnp.asarray(case.problem["W"], float)
    sigma, slope = jax.jit(jax.value_and_grad(neural.spectral_norm))(W)

    def subgradient(want: str) -> None:
        assert want == "trace norm of the gradient = 1 and <grad,W>=1"
        assert np.linalg.norm(slope, "nuc") == _near(1.0, case)
        assert float(jnp.sum(slope * W)) == _near(1.0, case)

    source = named(
        sigma=lambda: sigma,
        singular_values=lambda: np.linalg.svd(W, compute_uv=False),
        dsigma_dW=lambda: slope,
        norm_after=lambda: neural.spectral_norm(W / sigma),
    )
    rules = {"subgradient_property": subgradient, "finite": lambda want: finite("sigma", sigma, slope)}
    check(case, Findings("successful", [source], rules))


def _activation(case: Case) -> None:
    fn = neural.activation(case.problem["op"]).fn
    x = jnp.asarray(case.problem["x"], float)
    value, d1, d2 = (jax.jit(jax.vmap(f))(x) for f in (fn, jax.grad(fn), jax.grad(jax.grad(fn))))
    source = named(value=lambda: value, d1=lambda: d1, d2=lambda: d2)
    check(case, Findings("successful", [source], {"finite": lambda want: finite("softplus", value, d1, d2)}))


def _network(case: Case) -> None:
    """The Euclidean bound must also hold on pairs."""
    data = {
        name: jnp.asarray(value, float) for name, value in case.problem.items() if name not in ("type", "op")
    }
    network = neural.FrozenNetwork((data["W1"], data["W2"]), (data["b1"], data["b2"]), "tanh")
    x = data["x"]
    found = jax.jit(lambda x: (network(x), jax.jacrev(network)(x), jax.hessian(network)(x)))
    y, jacobian, hessian = found(x)
    bound = network.certified_bound("euclidean")

    def dominates(want: Any) -> Any:
        rng = np.random.default_rng(0)
        a, b = (jnp.asarray(rng.normal(size=(PAIRS, x.size))) for _ in range(2))
        change = jax.jit(lambda a, b: jax.vmap(network)(a) - jax.vmap(network)(b))(a, b)
        quotients = np.linalg.norm(change, axis=1) / np.linalg.norm(a - b, axis=1)
        assert quotients.max() <= float(bound) * (1 + 1e-12)
        assert as_array(bound) == _near(want, case)

    source = named(
        y=lambda: y,
        jacobian=lambda: jacobian,
        hessian=lambda: hessian,
        jacobian_norm=lambda: neural.spectral_norm(jacobian),
    )
    check(case, Findings("successful", [source], {"lipschitz_product_bound": dominates}))


def _near(value: float, case: Case) -> Any:
    return pytest.approx(value, abs=case.tol.atol)

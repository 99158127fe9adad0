"""Custom derivative rules; the only `custom_vjp` and `custom_jvp` of the lower level.

Each rule has the pattern that keeps higher derivatives right: the forward function calls the rule itself
to get the point, so a second differentiation meets a rule again and never the iterations.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._results import RESULTS
from optdyn._tree import stop_gradient
from optdyn._typing import PyTree
from optdyn.implicit._sensitivity import sensitivity
from optdyn.interior_point import InteriorPoint, PathPoint, PrimalDualPoint
from optdyn.programs import AbstractSystem


class _Settings(eqx.Module):
    """Arguments of a rule that are not differentiated."""

    solver: InteriorPoint
    smoothing: PyTree  # kappa of the derivative, or None: that of the solver
    on_failure: str = eqx.field(static=True)

    def at_smoothing(self) -> "_Settings":
        solver = eqx.tree_at(lambda s: s.central_path, self.solver, self.smoothing)
        return _Settings(solver, None, self.on_failure)


def implicit_solve(
    system: AbstractSystem,
    start: PrimalDualPoint,
    solver: InteriorPoint,
    smoothing,
    mode: str,
    on_failure: str,
) -> PathPoint:
    """Solve, with the implicit derivative at `smoothing` (None: at the solver's central path)."""
    settings = _Settings(solver, smoothing, on_failure)
    parameters, rest = eqx.partition(system, eqx.is_inexact_array)
    dynamic, static = eqx.partition((rest, stop_gradient(start), stop_gradient(settings)), eqx.is_array)
    rule = _reverse_rule if mode == "reverse" else _forward_rule
    return rule(_Static(static), parameters, dynamic)


class _Static:
    """Hashable holder of the static parts, compared by structure so that compilations are shared."""

    def __init__(self, tree):
        self.tree = tree
        leaves, self.structure = jax.tree.flatten(tree)
        self.leaves = tuple(leaves)

    def __hash__(self):
        return hash((self.leaves, self.structure))

    def __eq__(self, other):
        return isinstance(other, _Static) and (self.leaves, self.structure) == (other.leaves, other.structure)


def _unpack(static: _Static, parameters, dynamic):
    rest, start, settings = eqx.combine(dynamic, static.tree)
    return eqx.combine(parameters, rest), start, settings


def _run(static, parameters, dynamic) -> PathPoint:
    system, start, settings = _unpack(static, parameters, dynamic)
    # The iterations are not differentiated, whatever transformation is going on.
    return stop_gradient(settings.solver.run(stop_gradient(system), start))


def _derivative_point(rule, static, parameters, dynamic) -> PathPoint:
    """Where the derivative is taken: an exact central-path point, itself differentiable by `rule`."""
    _, start, settings = _unpack(static, parameters, dynamic)
    if settings.smoothing is None:
        return rule(static, parameters, dynamic)
    rest, _, _ = eqx.combine(dynamic, static.tree)
    inner, inner_static = eqx.partition((rest, start, settings.at_smoothing()), eqx.is_array)
    return rule(_Static(inner_static), parameters, inner)


def _restarted(static, parameters, dynamic, point: PrimalDualPoint):
    """The same solve continued from `point`: the path passes the smoothing point on its way down."""
    rest, _, settings = eqx.combine(dynamic, static.tree)
    again, again_static = eqx.partition((rest, stop_gradient(point), settings), eqx.is_array)
    return _Static(again_static), parameters, again


def _gate(settings: _Settings, ok, cotangent: PyTree) -> PyTree:
    """What the derivative is after a failure."""
    if settings.on_failure == "best_effort":
        return cotangent
    bad = jnp.nan if settings.on_failure == "nan" else 0.0
    return jax.tree.map(lambda x: jnp.where(ok, x, jnp.asarray(bad, x.dtype)), cotangent)


def _usable_start(settings: _Settings, smooth: PathPoint, start: PrimalDualPoint) -> PrimalDualPoint:
    """Continue from the smoothing point, unless that solve failed."""
    ok = smooth.result == RESULTS.successful
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), smooth.point, start)


def _both_points(rule, static, parameters, dynamic) -> tuple[PathPoint, PathPoint]:
    """(point at the solver's kappa, point at the kappa of the derivative)."""
    _, start, settings = _unpack(static, parameters, dynamic)
    smooth = _derivative_point(rule, static, parameters, dynamic)
    if settings.smoothing is None:
        return smooth, smooth
    restart = _usable_start(settings, smooth, start)
    exact = rule(*_restarted(static, parameters, dynamic, restart))
    steps = exact.steps + smooth.steps
    return eqx.tree_at(lambda p: p.steps, exact, steps), smooth


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _reverse_rule(static, parameters, dynamic):
    return _run(static, parameters, dynamic)


def _reverse_fwd(static, parameters, dynamic):
    exact, smooth = _both_points(_reverse_rule, static, parameters, dynamic)
    ok = (exact.result == RESULTS.successful) & (smooth.result == RESULTS.successful)
    return exact, (parameters, dynamic, smooth.point, ok)


def _reverse_bwd(static, residuals, cotangent: PathPoint):
    parameters, dynamic, point, ok = residuals
    system, _, settings = _unpack(static, parameters, dynamic)
    E_bar, S_bar = sensitivity(system, point).reverse(cotangent.point)

    def of_parameters(parameters):
        return _unpack(static, parameters, dynamic)[0].residual(point.w, point.z)

    _, pullback = jax.vjp(of_parameters, parameters)
    (parameters_bar,) = pullback((E_bar, S_bar))
    return _gate(settings, ok, parameters_bar), jax.tree.map(_zero_cotangent, dynamic)


_reverse_rule.defvjp(_reverse_fwd, _reverse_bwd)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _forward_rule(static, parameters, dynamic):
    return _run(static, parameters, dynamic)


@_forward_rule.defjvp
def _forward_jvp(static, primals, tangents):
    parameters, dynamic = primals
    parameters_dot, _ = tangents
    exact, smooth = _both_points(_forward_rule, static, parameters, dynamic)
    ok = (exact.result == RESULTS.successful) & (smooth.result == RESULTS.successful)
    system, _, settings = _unpack(static, parameters, dynamic)

    def of_parameters(parameters):
        return _unpack(static, parameters, dynamic)[0].residual(smooth.point.w, smooth.point.z)

    _, (E_dot, S_dot) = jax.jvp(of_parameters, (parameters,), (parameters_dot,))
    point_dot = _gate(settings, ok, sensitivity(system, smooth.point).forward(E_dot, S_dot))
    out_dot = jax.tree.map(_zero_cotangent, exact)
    return exact, eqx.tree_at(lambda p: p.point, out_dot, point_dot)


def _zero_cotangent(x):
    if jnp.issubdtype(jnp.result_type(x), jnp.inexact):
        return jnp.zeros_like(x)
    return np.zeros(jnp.shape(x), dtype=jax.dtypes.float0)

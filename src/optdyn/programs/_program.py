"""Statements of problems as the user writes them."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from optdyn._tree import as_float_arrays, trace_function
from optdyn._typing import Array, Float, PyTree
from optdyn.cones import AbstractCone
from optdyn.programs._system import AbstractSystem, DirectSystem, ProgramSystem


class AbstractProblem(eqx.Module):
    """Anything that `optdyn.solve` accepts. Array fields are differentiable parameters, like `theta`."""

    cone: eqx.AbstractVar[AbstractCone]

    def initial_guess(self, theta: PyTree) -> PyTree:
        """A value of the decision variables; it also tells their structure.

        Define it, or pass `guess=` to `solve`.
        """
        raise ValueError(
            f"{type(self).__name__} has no initial_guess(theta): define it, or pass guess= to solve(), so "
            "that the structure of the decision variables is known"
        )

    @abc.abstractmethod
    def bind(self, theta: PyTree, primal: PyTree) -> AbstractSystem:
        """The system E = 0, s = S, s o z = kappa e at these parameters; `primal` gives the structure only."""


class AbstractProgram(AbstractProblem):
    """`min over w of objective(w) subject to equality(w) = 0, cone_constraint(w) in cone`.

    Derivatives come from automatic differentiation. The decision variables `w` may be any pytree of float
    arrays. Set `convex = True` in a subclass whose program is convex for every parameter: it saves the check
    of the curvature in every step. Otherwise negative curvature is detected and the step is modified, so
    that a maximum or saddle is not returned as a solution.
    """

    cone: eqx.AbstractVar[AbstractCone]
    convex: ClassVar[bool] = False

    @abc.abstractmethod
    def objective(self, w: PyTree, theta: PyTree) -> Float[Array, ""]:
        """The cost to be minimized (scalar)."""

    def equality(self, w: PyTree, theta: PyTree) -> Float[Array, " p"]:
        """Vector that must be zero. Default: no equality."""
        return jnp.zeros(0)

    def cone_constraint(self, w: PyTree, theta: PyTree) -> Float[Array, " m"]:
        """Vector that must lie in `cone`. Default: none (then `cone` must have dimension 0)."""
        return jnp.zeros(0)

    def bind(self, theta, primal):
        flat, unravel = ravel_primal(primal)

        def functions(x):
            w = unravel(x)
            f = jnp.asarray(self.objective(w, theta))
            g = jnp.asarray(self.equality(w, theta))
            h = jnp.asarray(self.cone_constraint(w, theta))
            if f.shape != ():
                raise ValueError(f"objective must return a scalar, got shape {f.shape}")
            if g.ndim != 1:
                raise ValueError(f"equality must return a vector, got shape {g.shape}")
            _check_dim("cone_constraint", h, self.cone)
            return f.astype(x.dtype), g.astype(x.dtype), h.astype(x.dtype)

        traced = trace_function(functions, flat)
        num_equality = jax.eval_shape(traced, flat)[1].size
        return ProgramSystem(
            functions=traced,
            cone=self.cone,
            num_primal=flat.size,
            num_equality=num_equality,
            convex=self.convex,
        )


class AbstractComplementarityProblem(AbstractProblem):
    """`find w, z: equations(w, z) = 0, s = slack(w, z), s and z in cone, s o z = kappa e`.

    For systems that are not the optimality conditions of one program, such as contact with Coulomb
    friction. `equations` has as many entries as there are numbers in `w`; `z` is a flat vector of length
    `cone.dim`.
    """

    cone: eqx.AbstractVar[AbstractCone]

    @abc.abstractmethod
    def equations(self, w: PyTree, z: Float[Array, " m"], theta: PyTree) -> Float[Array, " n"]:
        """Vector that must be zero."""

    @abc.abstractmethod
    def slack(self, w: PyTree, z: Float[Array, " m"], theta: PyTree) -> Float[Array, " m"]:
        """Vector that must lie in `cone` and be complementary to `z`."""

    def bind(self, theta, primal):
        flat, unravel = ravel_primal(primal)

        def functions(w, z):
            E = jnp.asarray(self.equations(unravel(w), z, theta))
            S = jnp.asarray(self.slack(unravel(w), z, theta))
            if E.shape != (flat.size,):
                raise ValueError(
                    f"equations must return as many entries as there are decision variables ({flat.size}), "
                    f"got shape {E.shape}"
                )
            _check_dim("slack", S, self.cone)
            return E.astype(w.dtype), S.astype(w.dtype)

        traced = trace_function(functions, flat, jax.ShapeDtypeStruct((self.cone.dim,), flat.dtype))
        return DirectSystem(
            functions=traced,
            cone=self.cone,
            num_primal=flat.size,
            slack_uses_dual=_slack_uses_dual(traced),
        )


def ravel_primal(primal: PyTree):
    """Flat vector of the decision variables and its inverse; float leaves only."""
    primal = as_float_arrays(primal)
    for leaf in jax.tree.leaves(primal):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise TypeError(f"decision variables must be float arrays, got {jnp.result_type(leaf)}")
    flat, unravel = ravel_pytree(primal)
    if flat.size == 0:
        flat = jnp.zeros(0, jnp.result_type(float))
    return flat, unravel


def _check_dim(name: str, value: Array, cone: AbstractCone) -> None:
    if value.shape != (cone.dim,):
        raise ValueError(
            f"{name} must return a vector of length cone.dim = {cone.dim}, got shape {value.shape}"
        )


def _slack_uses_dual(traced) -> bool:
    """Whether S depends on z, read off the jaxpr: if not, z can be eliminated before factoring."""
    jaxpr = traced.jaxpr
    dependent = {jaxpr.invars[1]}
    for equation in jaxpr.eqns:
        if any(var in dependent for var in equation.invars if not hasattr(var, "val")):
            dependent.update(equation.outvars)
    return jaxpr.outvars[1] in dependent if not hasattr(jaxpr.outvars[1], "val") else False

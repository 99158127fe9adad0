"""Problems of the library whose functions are formulas."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import optdyn as od
from cases.formulas import Formula, Relation, lookup, natural_order


class Variables(eqx.Module):
    """Names of the decision variables, and how entries of vectors are counted in the text."""

    names: tuple[str, ...] = eqx.field(static=True)
    indexed: tuple[str, ...] = eqx.field(static=True, default=())  # names such as p0, y1 of vector parameters
    zero_based: bool = eqx.field(static=True, default=False)

    def values(self, w: Any, theta: Mapping[str, Any], xp: Any = jnp) -> dict[str, Any]:
        """Values of all names; with one name only, it may be a vector."""
        found = dict(theta)
        for name in self.indexed:
            found[name] = lookup(name, theta, self.zero_based)
        if len(self.names) == 1:
            return found | {self.names[0]: w[0] if w.shape == (1,) else w}
        return found | {name: w[i] for i, name in enumerate(self.names)}


def find_variables(names: list[str], parameters: Mapping[str, Any], size: int) -> Variables:
    """The names that are not parameters, in natural order; there must be `size` of them, or one vector."""
    zero_based = any(name[-1] == "0" for name in names if name not in parameters)
    unknown, indexed = [], []
    for name in names:
        if name in parameters:
            continue
        try:
            lookup(name, parameters, zero_based)
            indexed.append(name)
        except (KeyError, IndexError, TypeError):
            unknown.append(name)
    unknown = natural_order(unknown)
    assert len(unknown) in (1, size), (
        f"the formulas have the unknowns {unknown}, but the start has {size} entries"
    )
    return Variables(tuple(unknown), tuple(indexed), zero_based)


class FormulaProgram(od.AbstractProgram):
    """`min cost` subject to relations and bounds."""

    cost: Formula = eqx.field(static=True)
    variables: Variables
    equalities: tuple[Relation, ...] = eqx.field(static=True)
    inequalities: tuple[Relation, ...] = eqx.field(static=True)
    lower: Any
    upper: Any
    cone: od.cones.NonnegativeOrthant
    sign: float = eqx.field(static=True, default=1.0)

    def objective(self, w, theta):
        return self.sign * self.cost(self.variables.values(w, theta))

    def equality(self, w, theta):
        values = self.variables.values(w, theta)
        return _stack([relation.excess(values) for relation in self.equalities])

    def cone_constraint(self, w, theta):
        values = self.variables.values(w, theta)
        rows = [r.excess(values) * (1.0 if r.op == ">=" else -1.0) for r in self.inequalities]
        parts = [_stack(rows)]
        parts += [] if self.lower is None else [w - self.lower]
        parts += [] if self.upper is None else [self.upper - w]
        return jnp.concatenate(parts)


class LeastSquares(od.AbstractProgram):
    """`min 1/2 |residual|^2`."""

    residual: Formula = eqx.field(static=True)
    variables: Variables
    cone: od.cones.NonnegativeOrthant

    def objective(self, w, theta):
        return jnp.sum(self.residual(self.variables.values(w, theta)) ** 2) / 2


class Root(od.AbstractComplementarityProblem):
    """`residual = 0`, with as many entries as unknowns."""

    residual: Formula = eqx.field(static=True)
    variables: Variables
    cone: od.cones.NonnegativeOrthant

    def equations(self, w, z, theta):
        return jnp.atleast_1d(self.residual(self.variables.values(w, theta)))

    def slack(self, w, z, theta):
        return jnp.zeros(0)


class Pair(od.AbstractComplementarityProblem):
    """`dual * slack = kappa` with both nonnegative; the slack is a formula of the dual."""

    dual_name: str = eqx.field(static=True)
    slack_formula: Formula = eqx.field(static=True)
    cone: od.cones.NonnegativeOrthant

    def initial_guess(self, theta):
        return jnp.zeros(0)

    def equations(self, w, z, theta):
        return jnp.zeros(0)

    def slack(self, w, z, theta):
        return jnp.atleast_1d(self.slack_formula({**theta, self.dual_name: z[0]}))


def _stack(rows: list[jax.Array]) -> jax.Array:
    return jnp.stack([jnp.asarray(row) for row in rows]) if rows else jnp.zeros(0)

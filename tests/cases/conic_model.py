"""Quadratic and second-order cone programs as functions of their data and of named parameters."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import settings
from cases.formulas import Formula, lookup, split

FIELDS = ("P", "q", "A", "b", "G", "h")


class ConicSolve(eqx.Module):
    """theta (data, parameters) -> outputs. `law(parameters)` is added to the data that it names."""

    law: Any = eqx.field(static=True, default=None)
    parameters: tuple[str, ...] = eqx.field(static=True, default=())
    loss: Formula | None = eqx.field(static=True, default=None)
    central_path: float = eqx.field(static=True, default=settings.CENTRAL_PATH)
    guess: Any = None

    def __call__(self, theta: dict[str, Any]) -> tuple[dict[str, Any], od.Solution]:
        data = self.data(theta)
        solution = od.solve(
            build(data),
            solver=settings.solver(data["q"].dtype, self.central_path),
            guess=self.guess,
            adjoint=settings.AT_SOLUTION,
            throw=False,
        )
        x = solution.primal
        obj = x @ data["P"] @ x / 2 + data["q"] @ x
        outputs = {"x": x, "obj": obj, "V": obj + theta["constant"]}
        outputs |= {"y": solution.equality_dual, "z": solution.cone_dual, "s": solution.slack}
        if self.loss is not None:
            outputs["L"] = self.loss({"x": x[0] if x.size == 1 else x, **theta})
        return outputs, solution

    def data(self, theta: dict[str, Any]) -> dict[str, Any]:
        """The program's data at these parameters."""
        data = {name: theta[name] for name in (*FIELDS, "soc")}
        if self.law is not None:
            extra = self.law({name: theta[name] for name in self.parameters})
            data |= {name: jax.tree.map(jnp.add, data[name], extra[name]) for name in extra}
        return data


def build(data: dict[str, Any]) -> od.QuadraticProgram | od.ConicProgram:
    """The program of the library."""
    P, q, A, b, G, h = (data[name] for name in FIELDS)
    if not data["soc"]:
        return od.QuadraticProgram(P, q, A, b, G, h)
    blocks = [od.cones.SecondOrderCone(block["h"].size) for block in data["soc"]]
    cone = od.cones.ProductCone(od.cones.NonnegativeOrthant(h.size), *blocks)
    G = jnp.concatenate([G, *(block["G"] for block in data["soc"])])
    h = jnp.concatenate([h, *(block["h"] for block in data["soc"])])
    return od.ConicProgram(P, q, A, b, G, h, cone)


def read(problem: dict[str, Any], dtype: Any = float) -> dict[str, Any]:
    """Arrays of a case; fields given by formulas are zeros (their law adds the values)."""
    n = _size(problem)

    def array(name: str, value: Any, shape: tuple[int, ...]) -> Any:
        if _is_formula(value):
            return jnp.zeros(shape, dtype)
        return jnp.asarray(np.reshape(np.asarray(value, dtype), shape))

    def block(matrix: str, vector: str, source: dict[str, Any]) -> dict[str, Any]:
        rows = len(source.get(vector, []))
        return {
            matrix: array(matrix, source.get(matrix, []), (rows, n)),
            vector: array(vector, source.get(vector, []), (rows,)),
        }

    data = {"P": array("P", problem["P"], (n, n)), "q": array("q", problem["q"], (n,))}
    data |= block("A", "b", problem) | block("G", "h", problem)
    return data | {"soc": [block("G", "h", soc) for soc in problem.get("soc", [])]}


def _size(problem: dict[str, Any]) -> int:
    if "n" in problem:
        return int(problem["n"])
    for name in ("q", "P"):
        if not isinstance(problem[name], str):
            return len(problem[name])
    return len(split(problem["P"].strip()[1:-1]))


def _is_formula(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and any(_is_formula(item) for item in value))


def formula_law(problem: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Law and parameters of the fields that are formulas; (None, {}) without any."""
    n = _size(problem)
    texts = {name: _text(problem[name]) for name in FIELDS if _is_formula(problem.get(name))}
    if not texts:
        return None, {}
    formulas = {name: Formula(text) for name, text in texts.items()}
    names = dict.fromkeys(name for formula in formulas.values() for name in formula.names)
    values = {name: jnp.asarray(lookup(name, problem), float) for name in names}
    shapes = {"P": (n, n), "q": (n,)}

    def law(parameters: dict[str, Any]) -> dict[str, Any]:
        out = {name: jnp.asarray(formula(parameters)) for name, formula in formulas.items()}
        return {name: value.reshape(shapes[name]) if name in shapes else value for name, value in out.items()}

    return law, values


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_text(item) for item in value) + "]"
    return value if isinstance(value, str) else repr(value)


def parameter_law(text: str, data: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """`q=-p`, or `q=(-p,0), p=1`: the field, how it follows from the parameter, and the parameter's value."""
    assignments = dict(re.split(r"\s*=\s*", part, maxsplit=1) for part in split(text))
    target = next(name for name in assignments if name in FIELDS)
    formula = Formula(assignments.pop(target))
    (name,) = formula.names
    if name in assignments:
        value = jnp.asarray(Formula(assignments[name])({}), float)
    else:  # a plain multiple of a vector: solve for it
        value = data[target] / formula({name: 1.0})

    def law(parameters: dict[str, Any]) -> dict[str, Any]:
        return {target: jnp.asarray(formula(parameters))}

    return law, {name: value}


def friction_law(problem: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Laws of the friction problems, recognized by the names of their parameters."""
    given = {name: jnp.asarray(value, float) for name, value in problem["parameters"].items()}
    n = _size(problem)
    if set(given) >= {"mu", "fn", "eps"}:  # min v'l + eps/2 |l|^2, |l| <= mu fn
        given["v"] = jnp.asarray(problem["q"], float)

        def disc(p: dict[str, Any]) -> dict[str, Any]:
            radius = jnp.concatenate([(p["mu"] * p["fn"])[None], jnp.zeros(n)])
            soc = {"G": jnp.zeros((n + 1, n)), "h": radius}
            return {"P": p["eps"] * jnp.eye(n), "q": p["v"], "soc": [soc]}

        return disc, given
    if set(given) >= {"m", "v", "mu"}:  # kinetic energy after an impact, |l_t| <= mu l_n (the last entry)

        def impact(p: dict[str, Any]) -> dict[str, Any]:
            G = jnp.zeros((n, n)).at[0, n - 1].set(-p["mu"])
            soc = {"G": G, "h": jnp.zeros(n)}
            return {"P": jnp.eye(n) / p["m"], "q": p["v"], "soc": [soc]}

        return impact, given
    raise AssertionError(f"no runner knows a cone program with parameters {sorted(given)}")


def parametric(problem: dict[str, Any], dtype: Any = float) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Data, law and parameters, such that data + law(parameters) is the program."""
    data = read(problem, dtype)
    law, parameters = formula_law(problem)
    if law is not None:
        return data, law, parameters
    if isinstance(problem.get("parameters"), dict):
        law, parameters = friction_law(problem)
    elif "parameter" in problem:
        law, parameters = parameter_law(problem["parameter"], data)
    if law is not None:  # the data holds the values already: keep only what the law does not explain
        extra = law(parameters)
        data |= {name: jax.tree.map(jnp.subtract, data[name], extra[name]) for name in extra}
    return data, law, parameters

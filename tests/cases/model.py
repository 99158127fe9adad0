"""A solve as a function of named parameters, with derivatives by name.

Keys of derivatives: `jac_x_q`, `grad_obj_q`, `dx_dp`, `dobj_dr`, `d2x_dyda`, `jac_z_q_22` (entry 2, 2),
`dz1_dq1`, and `dL`, `d2L` where there is one parameter only.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np

from cases.checking import as_array

_DERIVATIVE = re.compile(
    r"(?:jac|grad)_(?P<out>[A-Za-z]+\d*)_(?P<inp>[A-Za-z_]+?)(?:_(?P<entry>\d\d))?"
    r"|d(?P<out2>[A-Za-z]+)(?P<row>\d*)_d(?P<inp2>[A-Za-z_]+?)(?P<column>\d*)"
)
_SECOND = re.compile(r"d2(?P<out>[A-Za-z]+)_d(?P<a>[A-Za-z]+)d(?P<b>[A-Za-z]+)")


@eqx.filter_jit
def _evaluate(fn, theta):
    return fn(theta)


@eqx.filter_jit
def _jacobian(fn, theta):
    def outputs(theta):
        out, extra = fn(theta)
        return out, (out, extra)

    jacobian, (out, extra) = jax.jacrev(outputs, has_aux=True)(theta)
    return out, extra, jacobian


@eqx.filter_jit
def _second(fn, theta, out, a, b):
    def first(value_b):
        at_b = {**theta, b: value_b}
        return jax.jacrev(lambda value_a: fn({**at_b, a: value_a})[0][out])(at_b[a])

    return jax.jacrev(first)(theta[b])


@eqx.filter_jit
def _pullback(fn, theta, out, weight):
    _, pull = jax.vjp(lambda theta: fn(theta)[0][out], theta)
    return pull(weight)[0]


class Model:
    """`fn(theta) -> (outputs, extra)`: a module that solves, its parameters, and what was asked of both.

    `differentiate`: derivatives will be asked for, so that value and derivative are compiled together.
    """

    def __init__(self, fn: Any, theta: Mapping[str, Any], differentiate: bool = False):
        self.fn, self.theta, self.differentiate = fn, dict(theta), differentiate

    @cached_property
    def _solved(self) -> tuple[dict[str, Any], Any]:
        if self.differentiate:
            return self._with_jacobian[:2]
        return _evaluate(self.fn, self.theta)

    @cached_property
    def _with_jacobian(self) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        return _jacobian(self.fn, self.theta)

    @property
    def outputs(self) -> dict[str, Any]:
        """Named results."""
        return self._solved[0]

    @property
    def extra(self) -> Any:
        """Whatever else the solve returned, such as the `Solution`."""
        return self._solved[1]

    def at(self, **changed: Any) -> "Model":
        """The same at other parameters; nothing is compiled anew."""
        return Model(self.fn, {**self.theta, **changed}, self.differentiate)

    def jacobian(self, out: str, inp: str) -> np.ndarray:
        """d outputs[out] / d theta[inp]."""
        return as_array(self._with_jacobian[2][out][inp])

    def second(self, out: str, a: str, b: str) -> np.ndarray:
        """d2 outputs[out] / d theta[a] d theta[b], the derivative of a derivative."""
        return as_array(_second(self.fn, self.theta, out, a, b))

    def pullback(self, out: str, weight: Any) -> dict[str, Any]:
        """Gradient of weight' outputs[out] by all parameters."""
        return _pullback(self.fn, self.theta, out, weight)

    def derivative(self, key: str, parameter: str | None = None) -> np.ndarray | None:
        """The derivative that `key` names, or None when it names none of this model."""
        if parameter is not None and (match := re.fullmatch(r"d(2?)([A-Za-z]+)", key)):
            out = self._output(match[2])
            if out is not None:
                return self.second(out, parameter, parameter) if match[1] else self.jacobian(out, parameter)
        if match := _SECOND.fullmatch(key):
            out, a, b = self._output(match["out"]), self._input(match["a"]), self._input(match["b"])
            return None if out is None or a is None or b is None else self.second(out, a, b)
        match = _DERIVATIVE.fullmatch(key)
        if match is None:
            return None
        out, inp = self._output(match["out"] or match["out2"]), self._input(match["inp"] or match["inp2"])
        if out is None or inp is None:
            return None
        value = self.jacobian(out, inp)
        if match["entry"]:
            return value[int(match["entry"][0]) - 1, int(match["entry"][1]) - 1]
        if match["row"] and match["column"]:
            return value[int(match["row"]) - 1, int(match["column"]) - 1]
        return value

    def _output(self, name: str) -> str | None:
        return _find(name, self.outputs)

    def _input(self, name: str) -> str | None:
        return _find(name, self.theta)


def _find(name: str, names: Mapping[str, Any]) -> str | None:
    """`uref` finds u_ref."""
    for candidate in names:
        if candidate.replace("_", "") == name.replace("_", ""):
            return candidate
    return None


def asks_for_derivatives(expected: Mapping[str, Any]) -> bool:
    """Whether any key is a derivative (a guess too many only costs compile time)."""
    keys = [*expected, *(expected["must_not"] if isinstance(expected.get("must_not"), dict) else ())]
    pattern = re.compile(r"jac_|grad$|grad_(?!policy|members)|d2?[A-Za-z]+\d*_d|d2?[A-Z]$|directional|more$")
    return any(pattern.match(key) for key in keys)

"""Runner of quadratic and second-order cone programs given by their data."""

import copy
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import contact, oracle, settings
from cases.bank import Case, Tolerance
from cases.checking import Findings, as_array, check, close, finite, named, parallel, status_of
from cases.conic_model import ConicSolve, parametric
from cases.formulas import Formula, relations
from cases.model import Model, asks_for_derivatives

PROSE = frozenset(
    {
        "typical_x",  # where an interior-point method normally ends, but any point of the face is right
        "grad_policy",
        "acceptable_alternative",
        "alternatives",
        "batch_note",  # shown by the batching cases
    }
)


def run(case: Case) -> None:
    """Solve, recompute, compare."""
    for problem in case.problem.get("variants", [case.problem]):
        single = ConicCase(case, problem)
        values = single.batch_of_parameters()
        if values is None:
            check(case, single.findings())
        else:
            check(case, single.stacked_findings(values))


class ConicCase:
    """One program of a case."""

    def __init__(self, case: Case, problem: dict[str, Any]):
        self.case, self.problem = case, problem
        dtype = jnp.dtype(problem.get("dtype", "float64"))
        data, law, self.parameters = parametric(problem, dtype)
        loss = Formula(problem["loss"]) if isinstance(problem.get("loss"), str) else None
        derivatives = asks_for_derivatives(case.expected) or dtype == jnp.float32
        kappa = settings.CENTRAL_PATH_DERIVATIVE if derivatives else settings.CENTRAL_PATH
        fn = ConicSolve(law, tuple(self.parameters), loss, kappa)
        constant = jnp.asarray(problem.get("objective_constant", 0.0), dtype)
        theta = {**data, **self.parameters, "constant": constant}
        if "initial_guess" in problem:
            fn = eqx.tree_at(
                lambda f: f.guess,
                fn,
                jnp.asarray(problem["initial_guess"], dtype),
                is_leaf=lambda x: x is None,
            )
        if "warm_start" in problem:
            guess = warm_start(Model(fn, theta).extra, problem["warm_start"])
            fn = eqx.tree_at(lambda f: f.guess, fn, guess, is_leaf=lambda x: x is None)
        self.model = Model(fn, theta, derivatives)

    # --- a list of values of the one parameter: one solve for each

    def batch_of_parameters(self) -> tuple[str, Any] | None:
        """(name, values) when the problem lists several values of its parameter."""
        for name, value in self.parameters.items():
            if isinstance(self.problem.get("q"), str) and value.ndim == 1 and value.size > 1:
                return name, value
        return None

    def stacked_findings(self, batch: tuple[str, Any]) -> Findings:
        """Findings whose values are the lists over the batch."""
        name, values = batch
        singles = []
        for value in values:
            single = copy.copy(self)
            single.model = self.model.at(**{name: value})
            singles.append(single.findings())
        worst = next((f.status for f in singles if not f.solved), "successful")

        def stacked(key: str, want: Any) -> Any:
            return np.stack([np.squeeze(f.value(key, item)) for f, item in zip(singles, want, strict=True)])

        return Findings(worst, [stacked], prose=PROSE)

    # --- one solve

    @property
    def tol(self) -> float:
        """Absolute tolerance, for rules that are not a comparison with a value."""
        return max(self.case.tol.atol, self.case.tol.rtol, 1e-6)

    def findings(self) -> Findings:
        """Everything that can be said about the current solve."""
        model, solution = self.model, self.model.extra
        self.solution, self.theta = solution, model.theta
        self.data = model.fn.data(model.theta)
        status = status_of(solution.result)
        if status == "successful":
            oracle.conic(self.data, solution)
        parameter = next(iter(self.parameters)) if len(self.parameters) == 1 else None
        x = as_array(solution.primal)
        self.outputs = {name: as_array(value) for name, value in model.outputs.items()}
        values = [
            self._friction,
            self._part_of_primal,
            named(
                obj_with_constant=lambda: self.outputs["V"],
                dx_dp_left=lambda: self._one_sided(-1),
                dx_dp_right=lambda: self._one_sided(1),
                sum_q=lambda: self._pullback(sum(self._weights())),
                grad1_q=lambda: self._pullback(self._weights()[0]),
                grad2_q=lambda: self._pullback(self._weights()[1]),
                dist=lambda: np.linalg.norm(np.subtract(*np.split(x, 2))),
            ),
            lambda key, want: self.outputs.get(key),
            lambda key, want: model.derivative(self._by_primal(key), parameter),
        ]
        rules = {
            "finite": self._finite,
            "terminates": lambda want: None,  # it returned
            "feasible": lambda want: self._feasible(),
            "grad": self._gradient_of_sum,
            "residual_eq_max": lambda want: self._residual(
                "equality", as_array(self.data["A"]) @ x - self.data["b"], want
            ),
            "max_violation_of_row": lambda want: self._residual("row", np.maximum(self._rows(), 0), want),
            "max_iterations": self._steps,
            "certificate": self._certificate,
            "ray": self._ray,
            "directional": self._directional,
            "accept": self._accept,
            "obj_grad_p": self._derivative_of_text,
            "relation": self._additive,
            "more": self._more_points,
            "z_difference": self._relations,
            "multiplier_identity": self._relations,
        }
        return Findings(status, values, rules, PROSE)

    def _rows(self) -> np.ndarray:
        h, present = as_array(self.data["h"]), np.isfinite(as_array(self.data["h"]))
        return (as_array(self.data["G"]) @ as_array(self.solution.primal))[present] - h[present]

    def _residual(self, name: str, residual: Any, want: float) -> None:
        worst = np.max(np.abs(as_array(residual)), initial=0.0)
        assert worst <= want, f"residual of {name} is {worst:.3g}, allowed {want}"

    def _feasible(self) -> None:
        self._residual("inequality", np.maximum(self._rows(), 0), self.tol)
        x = as_array(self.solution.primal)
        self._residual("equality", as_array(self.data["A"]) @ x - as_array(self.data["b"]), self.tol)

    def _finite(self, want: Any) -> None:
        solution = self.solution
        finite("solution", solution.primal, solution.equality_dual, solution.cone_dual, self.outputs["obj"])
        if self.model.differentiate:
            finite("derivative", *(self.model.jacobian("x", name) for name in ("q", "G", "b")))

    def _steps(self, want: int) -> None:
        assert int(self.solution.stats.steps) <= want, (
            f"{int(self.solution.stats.steps)} steps, allowed {want}"
        )

    def _gradient_of_sum(self, want: dict[str, Any]) -> None:
        assert want["of"] == "sum(x)", f"no check knows the gradient of {want['of']!r}"
        for key, value in want.items():
            if key in ("of", "note"):
                continue
            if key == "h_finite_rows":
                gradient = self.model.jacobian("x", "h").sum(axis=0)
                for row, entry in value.items():
                    close(f"grad of h[{row}]", gradient[int(row)], entry, self.case.tol)
                assert np.all(gradient[~np.isfinite(as_array(self.data["h"]))] == 0), (
                    "an absent row has a gradient"
                )
            else:
                close(f"grad of {key}", self.model.jacobian("x", key).sum(axis=0), value, self.case.tol)

    def _certificate(self, want: dict[str, Any]) -> None:
        z = as_array(self.solution.stats.certificate.cone_dual)
        for key, value in want.items():
            if key == "z":
                parallel("certificate", z, value, self.tol)
                z = z * np.linalg.norm(value) / np.linalg.norm(z)
            elif key == "Gt_z":
                close(key, as_array(self.data["G"]).T @ z, value, Tolerance(atol=self.tol))
            elif key == "h_z":
                close(key, as_array(self.data["h"]) @ z, value, Tolerance(atol=self.tol))
            else:
                raise AssertionError(f"no check knows the certificate's {key!r}")

    def _ray(self, want: list[float]) -> None:
        """A proof of unboundedness: recomputed, because the listed ray is one of many."""
        found = as_array(self.solution.stats.certificate.ray)
        for d in (found, as_array(want)):
            d = d / np.linalg.norm(d)
            oracle.small("P d", as_array(self.data["P"]) @ d, 1e-6)
            oracle.small("A d", as_array(self.data["A"]) @ d, 1e-6)
            oracle.small("G d", np.maximum(as_array(self.data["G"]) @ d, 0), 1e-6)
            assert as_array(self.data["q"]) @ d < 0, "the objective does not fall along the ray"

    def _directional(self, want: dict[str, Any]) -> None:
        (source, direction), (target, change) = want.items()
        jacobian = self.model.jacobian(target.removeprefix("d").lstrip("_"), source.removeprefix("d"))
        close(target, jacobian @ as_array(direction), change, self.case.tol)

    def _one_sided(self, side: int) -> np.ndarray:
        (name,) = self.parameters
        moved = self.model.at(**{name: self.parameters[name] + side * 1e-2})
        return moved.jacobian("x", name)

    def _accept(self, want: str) -> None:
        """`(1-t/2, -t/2) for some t in [0,1], finite` about the derivative by the parameter."""
        match = re.match(r"(\(.*\)) for some (\w) in \[(.*),(.*)\]", want)
        assert match, f"no check knows {want!r}"
        curve, name, low, high = Formula(match[1]), match[2], float(match[3]), float(match[4])
        (parameter,) = self.parameters
        got = self.model.jacobian("x", parameter)
        first, last = (curve({name: end}, np) for end in (low, high))
        t = np.clip((got - first) @ (last - first) / ((last - first) @ (last - first)), 0, 1)
        close("derivative", got, first + t * (last - first), self.case.tol)

    def _derivative_of_text(self, want: str) -> None:
        """`d/dp of FORMULA = NUMBER`, where the formula uses x and the parameter."""
        match = re.match(r"d/d(\w+) of (.+) = (.+)", want)
        assert match, f"no check knows {want!r}"
        name, formula, number = match[1], Formula(match[2]), float(match[3])
        x, p = self.model.outputs["x"], self.theta[name]
        by_x, by_p = jax.grad(lambda x, p: formula({"x": x, name: p}), (0, 1))(x, p)
        close(want, by_x @ self.model.jacobian("x", name) + by_p, number, self.case.tol)

    def _weights(self) -> list[Any]:
        losses = self.problem["losses"]
        return [jnp.asarray(losses[name]) for name in sorted(losses)]

    def _pullback(self, weight: Any) -> np.ndarray:
        return as_array(self.model.pullback("x", weight)["q"])

    def _additive(self, want: str) -> None:
        first, second = (self._pullback(weight) for weight in self._weights())
        close(want, first + second, self._pullback(sum(self._weights())).tolist(), self.case.tol)

    def _more_points(self, want: list[dict[str, Any]]) -> None:
        (name,) = self.parameters
        for point, answer in zip(self.problem["more_points"], want, strict=True):
            model = self.model.at(**{name: jnp.asarray(point, float)})
            assert status_of(model.extra.result) == "successful", f"{point}: {status_of(model.extra.result)}"
            close(f"x at {point}", model.outputs["x"], answer["x"], self.case.tol)
            close(f"jac at {point}", model.jacobian("x", name), answer["jac"], self.case.tol)

    def _relations(self, want: str) -> None:
        values = {}
        for output in ("x", "y", "z"):
            values |= {f"{output}{i}": value for i, value in enumerate(self.outputs[output])}
            values[output] = self.outputs[output]
        for relation in relations(want):
            violation = relation.violation(values)
            assert violation <= self.tol, f"{want}: violated by {violation:.3g}"

    def _part_of_primal(self, key: str, want: Any) -> Any:
        """Blocks of x by the names in `meaning` or the description, and x when the text says `z=argmin`."""
        x = as_array(self.solution.primal)
        text = f"{self.problem.get('meaning', '')} {self.case.description}"
        if self._is_primal(key):
            return x
        match = re.search(r"[Vv]ariables \(([\w, ]+)\)", text)
        names = [name.strip() for name in match[1].split(",")] if match else []
        entry = re.fullmatch(r"([A-Za-z]+)(\d+)", key)
        if entry and entry[1] in names and x.size % len(names) == 0:
            return np.split(x, len(names))[names.index(entry[1])][int(entry[2]) - 1]
        if key in names and key in (names[0], names[-1]):
            size = np.size(want)
            return x[:size] if key == names[0] else x[x.size - size :]
        return None

    def _is_primal(self, name: str) -> bool:
        """The description says `z=argmin ...`."""
        return re.search(rf"\b{re.escape(name)}(\(\w\))?=argmin", self.case.description) is not None

    def _by_primal(self, key: str) -> str:
        """`dz_da` as `dx_da` when z is the decision variable."""
        match = re.fullmatch(r"d(\w)_(d\w+)", key)
        return f"dx_{match[2]}" if match and self._is_primal(match[1]) else key

    def _friction(self, key: str, want: Any) -> Any:
        """Names of the friction problems: l is the decision variable."""
        if not isinstance(self.problem.get("parameters"), dict):
            return None
        x, theta = as_array(self.solution.primal), self.theta
        if key in ("l", "l_convex"):
            return x
        if key in ("v_after", "v_after_convex"):
            return as_array(theta["v"]) + x / float(theta["m"])
        if key in ("l_coulomb", "v_after_coulomb"):
            coulomb = contact.point_mass(theta["m"], theta["v"], theta["mu"])
            return coulomb.outputs["impulse" if key.startswith("l") else "v_after"]
        return self.model.derivative(re.sub(r"^jac_l_", "jac_x_", re.sub(r"^dl_", "dx_", key)))


def warm_start(solution: od.Solution, given: dict[str, Any]) -> od.Solution:
    """A solution with the point that the case starts from."""
    dtype = solution.primal.dtype
    point = [jnp.asarray(given[name], dtype) for name in ("x", "y", "s", "z")]
    return eqx.tree_at(lambda s: (s.primal, s.equality_dual, s.slack, s.cone_dual), solution, point)

"""The runner itself: formulas, and that wrong or unknown expectations fail."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases import conic
from cases.bank import Case, Tolerance
from cases.checking import Findings, check, check_status, close, named
from cases.formulas import Formula, FormulaError, relations

VALUES = {"x": 2.0, "y": 3.0, "p": 4.0, "th": 0.5, "om": 1.5, "om_next": 5.0, "u": np.array([3.0, 4.0])}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x^2+y", 7.0),
        ("0.5 x^2+0.1((y-1)^2+0.1 om^2)", 2.4225),
        ("x-9.81 sin th", 2 - 9.81 * np.sin(0.5)),
        ("th+x*om+", 10.5),
        ("0.1|u|^2", 2.5),
        ("|u|", 5.0),
        ("1/2|u-(x,0)|^2", 8.5),
        ("-x^2", -4.0),
        ("(y-1)(y+1)/x", 4.0),
        ("where(x>1, log(x), 0)", np.log(2.0)),
    ],
)
def test_formula(text, value):
    np.testing.assert_allclose(Formula(text)(VALUES, np), value, rtol=1e-14)
    np.testing.assert_allclose(Formula(text)(VALUES, jnp), value, rtol=1e-14)


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "x.real", "open(x)", "x if y else p", "[v for v in x]", "lambda: x", "x +", "x@y"],
)
def test_formula_refuses_everything_else(text):
    with pytest.raises(FormulaError):
        Formula(text)(VALUES, np)


def test_branch_not_taken_has_no_derivative():
    formula = Formula("where(x>0, log(x), 0)")
    assert jax.grad(lambda x: formula({"x": x}))(0.0) == 0


def test_relations():
    first, second = relations("z0+2*z1 = 1, z0>=0")
    assert first.violation({"z0": 0.5, "z1": 0.25}) == 0
    assert second.violation({"z0": -0.5}) == 0.5


def _case(expected, tol=1e-6):
    data = {
        "P": [[1.0, 0.0], [0.0, 1.0]],
        "q": [-1.0, -2.0],
        "A": [],
        "b": [],
        "G": [[1.0, 1.0]],
        "h": [10.0],
    }
    return Case("T", "", "", {"type": "qp", "n": 2, "parameter": "q=-p", **data}, expected, Tolerance(tol))


def test_right_expectations_pass():
    conic.run(
        _case({"x": [1, 2], "status": "solved", "jac_x_p": [[1, 0], [0, 1]], "must_not": {"x": [2, 2]}})
    )


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"x": [1, 2.1]}, "expected"),
        ({"x": [1, 2, 3]}, "shape"),
        ({"status": "infeasible"}, "status is 'successful'"),
        ({"status": "happy"}, "no check knows the status 'happy'"),
        ({"must_not": {"status": "solved"}}, "must not be"),
        ({"must_not": {"x": [1, 2]}}, "wrong answer"),
        ({"jac_x_p": [[1, 0.1], [0, 1]]}, "expected"),
        ({"jac_x_nothing": [1]}, "no check knows the expected key 'jac_x_nothing'"),
        ({"colour": "blue"}, "no check knows the expected key 'colour'"),
    ],
)
def test_wrong_expectations_fail(expected, message):
    with pytest.raises(AssertionError, match=message):
        conic.run(_case(expected))


def test_missing_entries_only_have_to_be_finite():
    close("x", [1.0, 2.0], [None, 2.0], Tolerance(1e-6))
    with pytest.raises(AssertionError, match="not finite"):
        close("x", [float("nan"), 2.0], [None, 2.0], Tolerance(1e-6))


def test_honest_failure_is_accepted_only_where_the_case_says_so():
    findings = Findings("stalled", [named(x=lambda: [9.0])])
    case = _case({"x": [1.0], "status": "solved_or_flagged"})
    check(case, findings)
    with pytest.raises(AssertionError, match="stalled"):
        check(dataclasses.replace(case, expected={"x": [9.0], "status": "solved"}), findings)
    check_status("infeasible", "infeasible_or_error")

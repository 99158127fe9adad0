"""Compares what a runner found with what a case expects, key by key."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import optdyn as od
from cases.bank import Case, Tolerance

Values = Callable[[str, Any], Any]  # (key, expected) -> value, or None when the key is not known
Rule = Callable[[Any], None]  # asserts on the expected value itself

# Remarks for the reader in `expected`; nothing to compare.
PROSE = frozenset({"note"})


@dataclass
class Findings:
    """What a runner can say.

    `status`: name of the result, or "raised: ..." when the library refused the input.
    `values`: sources of values that must be close to the expected ones, asked in this order.
    `rules`: keys with a meaning of their own.
    `prose`: keys that are remarks, with why they need no check.
    """

    status: str
    values: list[Values] = field(default_factory=list)
    rules: dict[str, Rule] = field(default_factory=dict)
    prose: frozenset[str] = frozenset()

    @property
    def solved(self) -> bool:
        """The library claims success."""
        return self.status == "successful"

    def value(self, key: str, want: Any) -> Any:
        """The value of a key; a key that nobody knows fails the test."""
        for source in self.values:
            found = source(key, want)
            if found is not None:
                return found
        raise AssertionError(f"no check knows the expected key {key!r}")


def check(case: Case, findings: Findings) -> None:
    """Assert everything that the case expects.

    Where a case accepts an honest failure, a failed solve is only asked for status and finite numbers.
    """
    may_fail = "flagged" in str(case.expected.get("status", ""))
    may_fail = may_fail or any(key.endswith("_if_solved") for key in case.expected)
    waived = may_fail and not findings.solved
    for key, want in sorted(case.expected.items(), key=lambda item: item[0] != "status"):
        if key in PROSE or key in findings.prose:
            continue
        if key == "status" and isinstance(want, str):
            check_status(findings.status, want)
        elif key == "must_not":
            _check_must_not(findings, want, case.tol)
        elif key in findings.rules:
            if not waived or key == "finite":
                findings.rules[key](want)
        elif not waived:
            close(key, findings.value(key, want), want, case.tol)


def check_status(status: str, want: str) -> None:
    """`want` is one of the names below, or several joined by `_or_`."""
    flagged = status != "successful"
    meanings = {
        "solved": not flagged,
        "optimal": not flagged,
        "converged": not flagged,
        "infeasible": status == "infeasible",
        "unbounded": status == "unbounded",
        "not_solved": flagged,
        "no_solution": flagged,
        "not_converged": flagged,
        "flagged": flagged,
        "error": flagged,
    }
    names = want.split("_or_")
    unknown = [name for name in names if name not in meanings]
    assert not unknown, f"no check knows the status {unknown[0]!r}"
    assert any(meanings[name] for name in names), f"status is {status!r}, expected {want!r}"


def _check_must_not(findings: Findings, want: Any, tol: Tolerance) -> None:
    assert isinstance(want, dict), f"must_not: no check knows {want!r}"
    for key, wrong in want.items():
        if key == "status":
            try:
                check_status(findings.status, wrong)
            except AssertionError:
                continue
            raise AssertionError(f"status is {findings.status!r}, which must not be")
        found = as_array(findings.value(key, wrong))
        try:
            close(key, found, wrong, tol)
        except AssertionError:
            continue
        raise AssertionError(f"{key} is {found.tolist()}, a wrong answer that the case warns of")


# Values that grow with the data are held to the tolerance relative to their size: an absolute 1e-5 on an
# objective of 1e8 asks for more digits than the listed answers have.
_SIZED = ("obj", "obj_with_constant", "J", "V")
_FLOOR = 1e-12


def close(key: str, got: Any, want: Any, tol: Tolerance) -> None:
    """Entries that are None in `want` only have to be finite. Axes of length one do not matter."""
    got, (target, known) = as_array(got), _with_gaps(want)
    name = f"{key} = {got.tolist()}"
    if np.squeeze(got).shape != np.squeeze(target).shape:
        raise AssertionError(f"{name} has shape {got.shape}, expected {target.shape}")
    got = got.reshape(target.shape)
    assert np.all(np.isfinite(got)), f"{name} is not finite"
    atol, rtol = tol.of(key)
    scale = np.maximum(1.0, np.abs(target)) if key in _SIZED else 1.0
    error = np.where(known, np.abs(got - target), 0.0)
    allowed = np.maximum(atol * scale + rtol * np.max(np.abs(target), initial=0.0), _FLOOR)
    worst = float(np.max(error - allowed, initial=0.0))
    assert worst <= 0, (
        f"{name}, expected {target.tolist()}: error {np.max(error):.3g}, allowed {np.max(allowed):.3g}"
    )


def as_array(value: Any) -> np.ndarray:
    """A NumPy array of floats."""
    return np.asarray(value, dtype=float)


def _with_gaps(want: Any) -> tuple[np.ndarray, np.ndarray]:
    raw = np.asarray(want, dtype=object) if _has_gap(want) else np.asarray(want, dtype=float)
    if raw.dtype != object:
        return raw, np.ones(raw.shape, bool)
    shape = as_array(next(item for item in want if item is not None)).shape
    rows = [np.zeros(shape) if item is None else as_array(item) for item in want]
    known = [np.full(shape, item is not None) for item in want]
    return np.stack(rows), np.stack(known)


def _has_gap(want: Any) -> bool:
    return isinstance(want, list) and any(item is None for item in want)


def status_of(result: Any) -> str:
    """Name of a result."""
    return od.result_name(result)


def finite(name: str, *values: Any) -> None:
    """No NaN, no infinity."""
    for value in values:
        assert np.all(np.isfinite(as_array(value))), f"{name} is not finite: {as_array(value).tolist()}"


def parallel(name: str, got: Any, want: Any, tol: float) -> None:
    """Same direction, whatever the length."""
    got, want = as_array(got).ravel(), as_array(want).ravel()
    length = np.linalg.norm(got)
    assert length > 0, f"{name} is zero"
    error = np.max(np.abs(got / length - want / np.linalg.norm(want)))
    assert error <= tol, f"{name} points along {(got / length).tolist()}, expected {want.tolist()}"


def named(**values: Callable[[], Any]) -> Values:
    """A source of values by name."""

    def source(key: str, want: Any) -> Any:
        return values[key]() if key in values else None

    return source

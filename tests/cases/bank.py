"""Reads a bank of problems: a JSON list of cases (non-finite numbers as strings: "inf", "-inf", "nan")."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NONFINITE = {"inf": float("inf"), "+inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


@dataclass(frozen=True)
class Tolerance:
    """`|got - want| <= atol + rtol |want|`; `named` overrides `atol` for single quantities."""

    atol: float = 0.0
    rtol: float = 0.0
    named: dict[str, float] = field(default_factory=dict)

    def of(self, key: str) -> tuple[float, float]:
        """(atol, rtol) of a quantity."""
        return self.named.get(key, self.atol), self.rtol


@dataclass(frozen=True)
class Case:
    """One problem of the bank."""

    id: str
    group: str
    description: str
    problem: dict[str, Any]
    expected: dict[str, Any]
    tol: Tolerance

    @property
    def type(self) -> str:
        """Which runner it needs."""
        return self.problem["type"]


def load(path: Path) -> list[Case]:
    """All cases of a file, in its order; ids must be unique."""
    cases = [_case(entry) for entry in json.loads(path.read_text())]
    ids = [case.id for case in cases]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{path} has two cases with the same id")
    return cases


def _case(entry: dict[str, Any]) -> Case:
    return Case(
        id=entry["id"],
        group=entry.get("group", ""),
        description=entry.get("description", ""),
        problem=_numbers(entry["problem"]),
        expected=_numbers(entry["expected"]),
        tol=_tolerance(entry.get("tol", 0.0)),
    )


def _tolerance(tol: float | dict[str, float]) -> Tolerance:
    if not isinstance(tol, dict):
        return Tolerance(atol=float(tol))
    named = {name: value for name, value in tol.items() if name not in ("atol", "rtol")}
    return Tolerance(atol=tol.get("atol", 0.0), rtol=tol.get("rtol", 0.0), named=named)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return _NONFINITE.get(value, value) if isinstance(value, str) else value

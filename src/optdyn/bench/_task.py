"""One measurement, and what it needs."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Options:
    """What the user chose. `peers` names other people's packages that may be used; None: all there are."""

    seeds: int = 5
    quick: bool = False
    peers: tuple[str, ...] | None = None

    def allows(self, package: str) -> bool:
        """Whether a peer was asked for."""
        return self.peers is None or package in self.peers


@dataclass(frozen=True)
class Task:
    """A method on a case. `measure()` returns named numbers; `needs` names packages that have to be there."""

    case: str
    method: str
    measure: Callable[[], dict[str, Any]]
    needs: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Measure; a missing package is a row that says so, not an error."""
        missing = missing_packages(self.needs)
        if missing:
            numbers: dict[str, Any] = {"skipped": f"{' and '.join(missing)} not installed"}
        else:
            numbers = self.measure()
        return {"case": self.case, "method": self.method, **numbers}


def missing_packages(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the packages that cannot be imported."""
    return tuple(name for name in packages if importlib.util.find_spec(name) is None)

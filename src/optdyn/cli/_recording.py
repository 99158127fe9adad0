"""Reading the JSON document of `optdyn solve` back, with one line for whatever is wrong with it."""

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from optdyn.cli._errors import BadInputError

_AGAIN = "name a file that `optdyn solve --json` wrote"


@dataclass(frozen=True)
class Recording:
    """What a document holds of a trajectory: states [N + 1, nx], controls [N, nu], times [N + 1] in s.

    `outputs` are arrays [N, ...] by name, None if the document has none; `document` is all of it.
    """

    path: Path
    scenario: str
    variant: str
    states: np.ndarray
    controls: np.ndarray
    times: np.ndarray
    outputs: dict[str, np.ndarray] | None
    document: dict[str, Any]

    def as_plan(self, outputs: dict[str, np.ndarray]) -> Any:
        """What pictures read of a plan."""
        return SimpleNamespace(
            states=self.states, controls=self.controls, step_info=SimpleNamespace(outputs=outputs)
        )

    def facts(self) -> str:
        """The result and its numbers in a line of Markdown."""
        parts = []
        if isinstance(self.document.get("result"), str):
            parts.append(f"**{self.document['result']}**")
        for key, text in (("cost", "cost"), ("constraint_violation", "violation")):
            value = self.document.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                parts.append(f"{text} {value:.4g}")
        return ", ".join(parts)


def read_recording(path: Path) -> Recording:
    """Read and check a document.

    Raises:
        BadInputError: it cannot be read, is no such document, or its arrays do not fit one another.
    """
    document = _read(path)
    missing = [key for key in ("scenario", "variant", "states", "controls", "times") if key not in document]
    if missing:
        raise BadInputError(f"{path} is no result: it has no {', '.join(missing)}; {_AGAIN}")
    for key in ("scenario", "variant"):
        if not isinstance(document[key], str):
            raise BadInputError(f"{path} is damaged: {key} is not a name; {_AGAIN}")
    states, controls = (_numbers(path, document, key, 2) for key in ("states", "controls"))
    times = _numbers(path, document, "times", 1)
    if not (len(states) == len(times) == len(controls) + 1 and len(controls) >= 1):
        counts = f"{len(states)} states, {len(controls)} controls and {len(times)} times"
        raise BadInputError(f"{path} is damaged: {counts} do not fit together; {_AGAIN}")
    if not (np.isfinite(times).all() and np.all(np.diff(times) > 0)):
        raise BadInputError(f"{path} is damaged: times do not increase; {_AGAIN}")
    return Recording(
        path=path,
        scenario=document["scenario"],
        variant=document["variant"],
        states=states,
        controls=controls,
        times=times,
        outputs=_outputs(path, document, len(controls)),
        document=document,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); {_AGAIN}") from None
    except (ValueError, RecursionError):  # no UTF-8, no JSON
        raise BadInputError(f"{path} is not JSON; {_AGAIN}") from None
    if not isinstance(document, dict):
        raise BadInputError(f"{path} is no result: it holds no JSON object; {_AGAIN}")
    return document


def _numbers(path: Path, document: dict[str, Any], key: str, dims: int) -> np.ndarray:
    """An array of floats; null, which stands for what is not finite, becomes NaN."""
    array = _array(document[key])
    if array is None or array.ndim != dims:
        kind = "a list of numbers" if dims == 1 else "lists of numbers of one length"
        raise BadInputError(f"{path} is damaged: {key} does not hold {kind}; {_AGAIN}")
    return array


def _outputs(path: Path, document: dict[str, Any], count: int) -> dict[str, np.ndarray] | None:
    given = document.get("outputs")
    if given is None:
        return None
    arrays = {name: _array(value) for name, value in given.items()} if isinstance(given, dict) else None
    if arrays is None or any(array is None or len(array) != count for array in arrays.values()):
        raise BadInputError(f"{path} is damaged: outputs do not hold {count} entries each; {_AGAIN}")
    return {name: array for name, array in arrays.items() if array is not None}


def _array(value: Any) -> np.ndarray | None:
    """Nested lists of numbers and null as an array; None if they are anything else."""
    if not isinstance(value, list):
        return None
    try:
        array = np.array(value, dtype=object)
    except ValueError:
        return None
    flat = array.ravel()
    if any(
        item is not None and (isinstance(item, bool) or not isinstance(item, int | float)) for item in flat
    ):
        return None
    try:
        return np.array([np.nan if item is None else float(item) for item in flat]).reshape(array.shape)
    except OverflowError:
        return None

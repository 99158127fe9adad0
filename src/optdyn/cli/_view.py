"""`optdyn view`: show what `optdyn solve --json` wrote."""

from pathlib import Path
from typing import Any

import numpy as np

from optdyn import viz
from optdyn.cli import _errors
from optdyn.cli._errors import BadInputError
from optdyn.cli._recording import Recording, read_recording


def view(path: Path, port: int | None, *, open_browser: bool) -> int:
    """Serve the page until Ctrl-C; returns the exit code."""
    missing = viz.missing_packages("view")
    if missing:
        raise BadInputError(f"view needs {' and '.join(missing)}; run `pip install 'optdyn[viz]'`")
    recording = read_recording(path)
    scenario = _load(recording)
    outputs = _checked_outputs(recording, scenario)
    plan = recording.as_plan(outputs)

    def announce(url: str) -> None:
        print(f"{scenario.name} ({scenario.variant}) is shown at {url} (end with Ctrl-C)", flush=True)

    try:
        viz.view(
            scenario,
            plan,
            times=recording.times,
            facts=recording.facts(),
            port=port,
            open_browser=open_browser,
            announce=announce,
        )
    except OSError as error:
        raise BadInputError(
            f"port {port} cannot be used ({error.strerror}); name another --port, or none"
        ) from None
    except ValueError as error:
        raise BadInputError(f"{path} cannot be drawn: {error}") from None
    return _errors.SUCCESS


def _load(recording: Recording) -> Any:
    """The scenario that the recording names, if states and controls have the size that it asks for."""
    import jax

    # The library leaves this to its users, and here the user is the command line. No array exists yet.
    jax.config.update("jax_enable_x64", True)
    import optdyn as od

    try:
        scenario = od.systems.load(recording.scenario, recording.variant)
    except od.ScenarioError as error:
        raise BadInputError(f"{recording.path}: {error} (see `optdyn list`)") from None
    dynamics = scenario.dynamics
    for name, array, size in (
        ("states", recording.states, dynamics.state_dim),
        ("controls", recording.controls, dynamics.control_dim),
    ):
        if array.shape[1] != size:
            raise BadInputError(
                f"{recording.path}: {name} have {array.shape[1]} numbers each, but those of "
                f"{recording.scenario} have {size}; solve it again with --json"
            )
    return scenario


def _checked_outputs(recording: Recording, scenario: Any) -> dict[str, np.ndarray]:
    """What the dynamics report of each step: as recorded, or simulated where the file does not hold it."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    count = len(recording.controls)

    def outputs(x, u):
        advance = jax.vmap(lambda x, u, t: scenario.dynamics.advance(x, u, t)[1].outputs)
        return advance(x, u, jnp.arange(count))

    x, u = jnp.asarray(recording.states[:-1]), jnp.asarray(recording.controls)
    if recording.outputs is None:
        return {name: np.asarray(value) for name, value in eqx.filter_jit(outputs)(x, u).items()}
    for name, expected in jax.eval_shape(outputs, x, u).items():
        recorded = recording.outputs.get(name)
        if recorded is None or recorded.shape != expected.shape:
            raise BadInputError(
                f"{recording.path}: outputs.{name} is missing or has another shape than {expected.shape}; "
                "solve it again with --json"
            )
    return recording.outputs

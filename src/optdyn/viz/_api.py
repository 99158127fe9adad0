"""The entries `plot`, `animate` and `view`, and what they need."""

import importlib.util
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

PLOT_EXTENSIONS = (".png", ".pdf", ".svg")
ANIMATION_EXTENSIONS = (".gif", ".html")

# The page draws itself in the browser, so it is the one kind of picture that needs no package.
_NEEDS: dict[str, tuple[str, ...]] = {".html": (), ".gif": ("matplotlib", "PIL"), "view": ("viser",)}
_PACKAGE_OF: dict[str, str] = {"PIL": "pillow"}


def missing_packages(extension: str) -> tuple[str, ...]:
    """Names of the packages that a picture with this extension, or "view", needs and that are not there."""
    needed = _NEEDS.get(extension.lower(), ("matplotlib",))
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    return tuple(_PACKAGE_OF.get(name, name) for name in absent)


def plot(scenario: Any, plan: Any, path: str | PathLike[str]) -> None:
    """Write one figure that explains the solution.

    It shows the motion as stroboscopic pictures coloured by time, every quantity that the scenario wants seen
    with its limits, and the convergence of cost and constraint violation over the inner iterations.

    Arguments:
        scenario: what `optdyn.systems.load` returned.
        plan: what `optdyn.optimize_trajectory` returned for it; it need not have converged.
        path: a file ending in `.png`, `.pdf` or `.svg`.
    """
    target = _checked(path, PLOT_EXTENSIONS)
    from optdyn.viz._figure import draw_figure

    draw_figure(scenario, plan).savefig(target, dpi=140)


def animate(scenario: Any, plan: Any, path: str | PathLike[str]) -> None:
    """Write an animation that plays in real time.

    Arguments:
        scenario: what `optdyn.systems.load` returned.
        plan: what `optdyn.optimize_trajectory` returned for it; it need not have converged.
        path: a file ending in `.gif`, or in `.html` for a self-contained page with play, pause, speed and a
            slider (it is smaller than the GIF, sharp at every size, and needs no network).
    """
    target = _checked(path, ANIMATION_EXTENSIONS)
    if target.suffix.lower() == ".html":
        from optdyn.viz._html import write_html as write
    else:
        from optdyn.viz._gif import write_gif as write
    write(scenario, plan, target)


def view(
    scenario: Any,
    plan: Any,
    *,
    times: Any = None,
    facts: str = "",
    port: int | None = None,
    open_browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Show the motion of a plan as an interactive page in space, until Ctrl-C.

    The page plays and scrubs, shows the forces of contacts as arrows and every quantity that the scenario
    wants seen as a chart. It is served to browsers on this machine only.

    Arguments:
        scenario: what `optdyn.systems.load` returned.
        plan: what `optdyn.optimize_trajectory` returned for it; of it, `states`, `controls` and
            `step_info.outputs` are read.

    Other Arguments:
        times: of the states in s. Default: the scenario's time step from 0 on.
        facts: what to say about the plan beside the picture, in Markdown.
        port: default the first free one from 8080 on; 0 is any free one.
        open_browser: open the page in the default browser.
        announce: called with the address once the page is there.

    Raises:
        ImportError: viser is not installed.
        OSError: the port is taken.
        ValueError: no state is finite, or there are fewer than two.
    """
    missing = missing_packages("view")
    if missing:
        raise ImportError(f"the viewer needs {' and '.join(missing)}: pip install 'optdyn[viz]'")
    states = np.asarray(plan.states)
    if len(states) < 2 or not np.isfinite(states).all(axis=1).any():
        raise ValueError("there is nothing to see: a plan needs two states, and one of finite numbers")
    from optdyn.viz._serve import serve

    times = scenario.dt * np.arange(len(states)) if times is None else np.asarray(times, dtype=float)
    serve(scenario, plan, times, facts, port, open_browser, announce)


def _checked(path: str | PathLike[str], known: tuple[str, ...]) -> Path:
    target = Path(path)
    extension = target.suffix.lower()
    if extension not in known:
        raise ValueError(f"cannot write {target}: the file name has to end in {' or '.join(known)}")
    missing = missing_packages(extension)
    if missing:
        raise ImportError(f"{extension} pictures need {' and '.join(missing)}: pip install 'optdyn[viz]'")
    return target

"""Reads MuJoCo models and says in one line what MJX cannot do with them."""

import copy
import warnings
from os import PathLike
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from optdyn._typing import PyTree
from optdyn.mjx._backend import Data, MjModel, Model, mjx, mujoco

# Below these the solver of MJX does not converge on contact, and the implicit function theorem has no
# solution to hold at. Models tuned for reinforcement learning have 1 and 5.
MIN_ITERATIONS = 4
MIN_LINE_SEARCH = 10
CONVERGED_ITERATIONS = 20
CONVERGED_LINE_SEARCH = 20


class MJXNotice(UserWarning):
    """Something in a model was changed, or will not behave as in MuJoCo's C engine."""


def load_model(
    source: str | PathLike | MjModel,
    *,
    iterations: int | None = None,
    line_search_iterations: int | None = None,
    tolerance: float | None = None,
    timestep: float | None = None,
) -> MjModel:
    """A model that MJX can run, from a path, an XML string or an `MjModel` (which is copied).

    Arguments:
        source: path of an XML file, the XML itself (begins with "<"), or a model.
        iterations: largest number of iterations of the contact solver; None keeps the model's, but raises
            fewer than 4 to 20 with an `MJXNotice`.
        line_search_iterations: of the solver; None keeps the model's, but raises fewer than 10 to 20.
        tolerance: of the solver; None keeps the model's.
        timestep: of one step in s; None keeps the model's.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the XML is invalid, or MJX does not support something in it.
        TypeError: for other sources.
    """
    model = _read(source)
    # The C engine clamps friction when it makes a contact; MJX does not, and does not converge without it.
    model.geom_friction[:] = np.maximum(model.geom_friction, mujoco.mjMINMU)
    model.pair_friction[:] = np.maximum(model.pair_friction, mujoco.mjMINMU)
    if iterations is not None:
        model.opt.iterations = _positive("iterations", iterations)
    elif model.opt.iterations < MIN_ITERATIONS:
        _notice(
            f"the model asks for {model.opt.iterations} solver iteration(s), too few for contact; "
            f"raised to {CONVERGED_ITERATIONS} (set `iterations` to choose)"
        )
        model.opt.iterations = CONVERGED_ITERATIONS
    if line_search_iterations is not None:
        model.opt.ls_iterations = _positive("line_search_iterations", line_search_iterations)
    elif model.opt.ls_iterations < MIN_LINE_SEARCH:
        _notice(
            f"the model asks for {model.opt.ls_iterations} line-search iteration(s); raised to "
            f"{CONVERGED_LINE_SEARCH} (set `line_search_iterations` to choose)"
        )
        model.opt.ls_iterations = CONVERGED_LINE_SEARCH
    if tolerance is not None:
        model.opt.tolerance = _positive("tolerance", tolerance)
    if timestep is not None:
        model.opt.timestep = _positive("timestep", timestep)
    return model


def compile_model(model: MjModel) -> tuple[Model, Data]:
    """MJX's model and its data at the reference configuration.

    Raises:
        ValueError: MJX does not support something in the model.
    """
    supported = (
        mujoco.mjtIntegrator.mjINT_EULER,
        mujoco.mjtIntegrator.mjINT_RK4,
        mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    )
    if model.opt.integrator not in [int(kind) for kind in supported]:
        name = mujoco.mjtIntegrator(model.opt.integrator).name.removeprefix("mjINT_").lower()
        raise ValueError(f"MJX has no integrator {name!r}; use Euler, implicitfast or RK4")
    try:
        compiled = mjx.put_model(model)
        data = mjx.make_data(model)
    except NotImplementedError as error:
        raise ValueError(f"MJX cannot run this model: {error}") from error
    return _arrays(compiled), _arrays(data)


def _arrays(tree: PyTree) -> PyTree:
    """Every leaf a JAX array of a definite type: weak types and NumPy arrays would compile a step twice."""

    def convert(leaf):
        array = jnp.asarray(leaf)
        return jax.lax.convert_element_type(array, array.dtype)

    return jax.tree.map(convert, tree)


def _read(source: str | PathLike | MjModel) -> MjModel:
    if isinstance(source, mujoco.MjModel):
        return copy.copy(source)
    if not isinstance(source, str | PathLike):
        raise TypeError(f"a model is a path, an XML string or an MjModel, got {type(source).__name__}")
    text = str(source)
    try:
        if text.lstrip().startswith("<"):
            return mujoco.MjModel.from_xml_string(text)
        if not Path(text).is_file():
            raise FileNotFoundError(f"no such model file: {text}")
        return mujoco.MjModel.from_xml_path(text)
    except ValueError as error:
        raise ValueError(f"MuJoCo cannot read this model: {' '.join(str(error).split())}") from error


def _positive(name: str, value):
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return value


def _notice(text: str) -> None:
    warnings.warn(text, MJXNotice, stacklevel=4)

"""MuJoCo and MJX, in one place: their types are opaque to type checkers, and MJX's arithmetic is loose."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import jax

try:
    mujoco: Any = importlib.import_module("mujoco")
    mjx: Any = importlib.import_module("mujoco.mjx")
except ImportError as error:
    raise ImportError("optdyn.mjx needs MuJoCo and MJX: pip install 'optdyn[mjx]'") from error

MjModel: TypeAlias = Any  # mujoco.MjModel
Model: TypeAlias = Any  # mujoco.mjx.Model
Data: TypeAlias = Any  # mujoco.mjx.Data


@contextlib.contextmanager
def loose_rules() -> Iterator[None]:
    """JAX' standard promotion of dtypes and ranks while MJX is traced (this thread, this block only).

    MJX mixes dtypes and ranks; a user's stricter rules stop at its door.
    """
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield

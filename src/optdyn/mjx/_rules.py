"""MJX mixes dtypes and ranks in its arithmetic; a user's stricter rules stop at its door."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def loose_rules() -> Iterator[None]:
    """JAX' standard promotion of dtypes and ranks while MJX is traced (this thread, this block only)."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield

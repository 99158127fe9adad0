"""One precision, one seed and one policy for warnings (see pyproject.toml) for the whole suite."""

import gc
from pathlib import Path

import jax
import numpy as np
import pytest

SEED = 20211
# Compiled programs live as long as the process; a worker above this size drops them between modules.
MEMORY_LIMIT_BYTES = 4 * 2**30

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases",
        metavar="FILE",
        type=Path,
        default=Path(__file__).parent / "data" / "cases.json",
        help="bank of problems that tests/cases runs",
    )


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers for NumPy; the same ones in every test."""
    return np.random.default_rng(SEED)


@pytest.fixture
def key() -> jax.Array:
    """Random key for JAX; the same one in every test."""
    return jax.random.key(SEED)


@pytest.fixture(scope="module", autouse=True)
def _bounded_memory():
    yield
    if _resident_bytes() > MEMORY_LIMIT_BYTES:
        jax.clear_caches()
        gc.collect()


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux: nothing is known, so nothing is cleared
        return 0
    return 4096 * pages

"""Reading result codes and members of a batch."""

import jax
import numpy as np

from optdyn import RESULTS
from optdyn._results import RESULT_NAMES


def names(result):
    """Names of a batch of results (or of one, as a list of length 1)."""
    found = None
    for name in RESULT_NAMES:
        equal = np.atleast_1d(np.asarray(result == getattr(RESULTS, name)))
        found = np.full(equal.shape, "", dtype=object) if found is None else found
        found[equal] = name
    return list(found) if found is not None else []


def member(tree, i):
    """Entry `i` of a batched pytree."""
    return jax.tree.map(lambda leaf: leaf[i], tree)

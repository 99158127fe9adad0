"""Signals in processes that tests start."""

import contextlib
import signal


@contextlib.contextmanager
def children_hear_ctrl_c():
    """Tests that run in the background ignore SIGINT, and the processes they start inherit that; not these."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

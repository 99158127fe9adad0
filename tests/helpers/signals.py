"""Signals in processes that tests start."""

import contextlib
import signal


@contextlib.contextmanager
def children_hear_ctrl_c():
    """Tests that run in the background ignore SIGINT and hand that on to processes; here they do not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""Exit codes, and the exceptions that become one line on stderr instead of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

SUCCESS = 0
NOT_CONVERGED = 1
BAD_INPUT = 2
INTERNAL_ERROR = 3
INTERRUPTED = 130  # what a shell reports for a process that SIGINT ended


class BadInputError(Exception):
    """The user can put this right; the message says what is wrong and what to change."""


class InterruptedByUserError(Exception):
    """Ctrl-C. Not a KeyboardInterrupt, because the argument parser answers those with output of its own."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn Ctrl-C inside the block into `InterruptedByUserError`."""
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedByUserError from None


def one_line(message: object) -> str:
    """The text of `message` without line breaks."""
    return " ".join(str(message).split())

"""Run a compiled computation so that Ctrl-C is answered at once, and tell how old the process is."""

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_IMPORTED_AT = time.perf_counter()
# Compiling recurses deeply, and threads other than the main one get a small stack on some systems.
_STACK_BYTES = 64 * 2**20


def call_in_thread(work: Callable[[], T]) -> T:
    """Return `work()`, run in a second thread while this one waits for signals.

    Python answers a signal only between its own instructions, and a compiled solve is one call: in the main
    thread Ctrl-C would wait for its end. The abandoned thread is a daemon; who catches the KeyboardInterrupt
    has to end the process.
    """
    values: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            values.append(work())
        except BaseException as error:
            errors.append(error)

    previous = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=body, name="optdyn-solve", daemon=True)
        thread.start()
    finally:
        threading.stack_size(previous)
    while thread.is_alive():
        thread.join(timeout=0.2)
    if errors:
        raise errors[0]
    return values[0]


def process_age() -> float:
    """Seconds since this process started; since the import of this module where the system does not tell."""
    try:
        with open("/proc/self/stat") as file:
            # The second field is a name in parentheses that may itself hold blanks.
            fields = file.read().rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, AttributeError, ValueError):
        return time.perf_counter() - _IMPORTED_AT

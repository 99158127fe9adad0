"""Keep an interactive page alive until the reader ends it."""

import contextlib
import io
import socket
import time
import webbrowser
from collections.abc import Callable
from typing import Any

import numpy as np

from optdyn.viz._page import Page

# Only this machine can see the page: it is not meant for a network, where nobody asks who is reading.
HOST = "127.0.0.1"
FIRST_PORT = 8080
_PERIOD_S = 1 / 30


def open_server(port: int | None) -> Any:
    """A server on this port; on the first free one from 8080 if None, on any free one if 0.

    Raises:
        OSError: the port is taken.
    """
    import viser

    if port:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    with contextlib.redirect_stdout(io.StringIO()):  # it greets even when told to be quiet
        return viser.ViserServer(host=HOST, port=FIRST_PORT if port is None else port, verbose=False)


def close_server(server: Any) -> None:
    """Stop it without the farewell that it would print."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def serve(
    scenario: Any,
    plan: Any,
    times: np.ndarray,
    facts: str,
    port: int | None,
    open_browser: bool,
    announce: Callable[[str], None],
) -> None:
    """Serve one page until KeyboardInterrupt."""
    server = open_server(port)
    try:
        page = Page(server, scenario, plan, times, facts)
        url = f"http://{HOST}:{server.get_port()}"
        announce(url)
        if open_browser:
            webbrowser.open(url)
        before = time.perf_counter()
        while True:
            time.sleep(_PERIOD_S)
            now = time.perf_counter()
            page.tick(now - before)
            before = now
    except KeyboardInterrupt:
        return
    finally:
        close_server(server)

"""What the optimizer is doing, while it does it."""

import time
from typing import Any, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class SolveProgress:
    """A line on stderr that follows the inner iterations.

    On a terminal the line is rewritten in place and vanishes at the end. Elsewhere (a log file) one line is
    printed for each round of the outer loop. `enabled=False` prints nothing.
    """

    def __init__(self, title: str, *, enabled: bool = True, console: Console | None = None) -> None:
        """Prepare for the work called `title`; nothing is shown before the `with` block."""
        self._title = title
        self._console = Console(stderr=True) if console is None else console
        self._live = enabled and self._console.is_terminal
        self._log = enabled and not self._console.is_terminal
        self._following = True
        self._last: Any = None
        self._started = time.perf_counter()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        self._progress.start()
        self._task = self._progress.add_task(self._title)
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def phase(self, text: str, *, follow: bool = True) -> None:
        """Say what happens now; with `follow=False` the records that arrive from now on are not shown."""
        self._following = follow
        if self._log and self._last is not None:
            self._print_round(self._last)
        self._last = None
        self._show(f"{self._title}: {text}")
        if self._log:
            self._print(f"{self._title}: {text}")

    def record(self, record: Any) -> None:
        """Callback of `optimize_trajectory`, called after every inner iteration."""
        if not self._following:
            return
        previous, self._last = self._last, record
        if self._live:
            self._show(describe(record))
        elif self._log and previous is not None and int(previous.outer) != int(record.outer):
            self._print_round(previous)

    def _show(self, text: str) -> None:
        if self._task is not None:
            self._progress.update(self._task, description=text)

    def _print_round(self, record: Any) -> None:
        self._print(f"{describe(record)}  {time.perf_counter() - self._started:.1f} s")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def describe(record: Any) -> str:
    """One record of the optimizer as a short line."""
    return (
        f"round {int(record.outer)}  iter {int(record.inner)}  cost {float(record.cost):.5g}  "
        f"viol {float(record.violation):.1e}  penalty {float(record.penalty):.0e}  "
        f"step {float(record.step_length):.2g}"
    )

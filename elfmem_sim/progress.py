"""Progress with an estimate: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

import sys
import time
from types import TracebackType
from typing import Any

_SECONDS_BETWEEN_LINES = 10.0


class ProgressReport:
    """Reports ``update(done, planned)`` calls on standard error.

    Args:
        label: What is under way.
        quiet: Say nothing.
    """

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self._label = label
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._start = time.monotonic()
        self._spoken = self._start
        self._first = -1

    def __enter__(self) -> "ProgressReport":
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress, TimeRemainingColumn

            self._bar = Progress(
                *Progress.get_default_columns()[:3],
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, planned: int) -> None:
        """Report that ``done`` of ``planned`` runs are finished."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=planned)
            return
        now = time.monotonic()
        if self._first < 0:
            self._first, self._start, self._spoken = done, now, now
            print(f"{self._label}: {done} of {planned} runs", file=sys.stderr, flush=True)
        elif done == planned or now - self._spoken >= _SECONDS_BETWEEN_LINES:
            self._spoken = now
            rate = (done - self._first) / max(now - self._start, 1e-9)
            left = (planned - done) / rate if rate > 0 else float("inf")
            print(
                f"{self._label}: {done} of {planned} runs, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

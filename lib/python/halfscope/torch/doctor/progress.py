"""Progress of a search on standard error: a status line on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from halfscope.torch.words import counted

_QUIET, _EVERY = 5.0, 10.0  # seconds before the first line, and between lines that stay


@dataclass
class Progress:
    """Seconds of a search and its budget. doing: what is looked for."""

    seconds: float
    began: float = field(default_factory=time.monotonic)
    doing: str = "the step in the format and in FP32"
    is_stopped: bool = False  # by Ctrl-C
    _told: float = 0.0
    _shows: bool = False  # a status line stands on the terminal

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    @property
    def is_spent(self) -> bool:
        return self.elapsed > self.seconds

    def stop(self) -> None:
        """Ctrl-C: what is known by now is told."""
        self.seconds, self.is_stopped = self.elapsed, True

    @property
    def ending(self) -> str:
        """A clause on a search that did not come to its end."""
        return f"the search ended after {self.seconds:.3g} s{', by Ctrl-C' * self.is_stopped}"

    def tell(self, runs: int) -> None:
        """Called before each run."""
        elapsed = self.elapsed
        if elapsed < _QUIET:
            return
        text = f"diagnose: {counted(runs, 'run')}, {elapsed:.0f} of {self.seconds:.0f} s: {self.doing}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)
            self._shows = True
        elif not self._told or elapsed - self._told >= _EVERY:
            print(text, file=sys.stderr, flush=True)
            self._told = elapsed

    def end(self) -> None:
        """Takes the status line away."""
        if self._shows:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shows = False

"""Progress of a search on standard error: a status line on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from halfscope.torch.words import counted, listed

_QUIET, _EVERY = 5.0, 10.0  # seconds before the first line, and between lines that stay
_LAST = 4  # runs by whose time that of the next one is known


def check_seconds(seconds: float, door: str) -> None:
    """Raises ValueError, in the name of the door, for seconds of a search that nobody can mean."""
    if not seconds >= 0:
        raise ValueError(f"{door}: seconds={seconds}; give 0 or more")


@dataclass
class Progress:
    """Seconds of a search, and time of its runs: one that will not end in time is not begun. doing: what is looked for.

    is_cut: a run was not begun.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    doing: str = "the step in the format and in FP32"
    is_stopped: bool = False  # by Ctrl-C
    is_cut: bool = False
    untried: list[str] = field(default_factory=list)  # for want of time
    began: float = field(init=False)
    _took: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST))
    _told: float = 0.0
    _shows: bool = False  # a status line stands on the terminal

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def elapsed(self) -> float:
        return self.clock() - self.began

    @property
    def longest(self) -> float:
        """Seconds of the longest of the last runs."""
        return max(self._took, default=0.0)

    def part(self, least: float = 0.0) -> Progress:
        """The seconds that are left, but at least these, for a part that knows the time of earlier runs."""
        return Progress(max(self.seconds - self.elapsed, least), self.clock, _took=self._took)

    @contextmanager
    def run(self, runs: int) -> Iterator[None]:
        """Around each run. A run that ends with an error tells nothing of the others' time."""
        self.tell(runs)
        began = self.clock()
        yield
        self._took.append(self.clock() - began)

    def has_time(self, runs: int = 1, purpose: str = "") -> bool:
        """Whether so many more runs end in time. purpose: what is not tried without them; empty: `doing`."""
        if self.has_room(runs):
            return True
        self.is_cut = True
        self.leave_out(purpose or self.doing)
        return False

    def has_room(self, runs: int) -> bool:
        """Whether so many more runs would end in time."""
        return self.elapsed + runs * self.longest <= self.seconds

    def leave_out(self, purpose: str) -> None:
        if purpose not in self.untried:
            self.untried.append(purpose)

    def stop(self) -> None:
        """Ctrl-C: what is known by now is told."""
        self.seconds, self.is_stopped = self.elapsed, True

    @property
    def ending(self) -> str:
        """A clause on a search that did not come to its end."""
        return f"the search ended after {min(self.elapsed, self.seconds):.3g} s{', by Ctrl-C' * self.is_stopped}"

    @property
    def untried_words(self) -> str:
        """A sentence on what there was no time for; empty where there was, and after Ctrl-C."""
        if self.is_stopped or not self.untried:
            return ""
        spent, one = min(self.elapsed, self.seconds), self.longest
        return f"Not tried, after {spent:.3g} of {self.seconds:.3g} s, with {one:.2g} s a run: {listed(self.untried)}."

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

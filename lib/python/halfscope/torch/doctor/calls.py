"""One call of a run, and the changes that a run makes to its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from halfscope.torch.doctor.source_text import CallPlace

if TYPE_CHECKING:
    from halfscope.torch.doctor.call_mode import CallMode

Change = Callable[["CallMode", Callable, tuple, dict], Any]


class EndlessRun(Exception):
    """A change made a loop of the step endless."""


@dataclass
class Call:
    """One call of a run."""

    place: CallPlace
    func: Callable
    args: tuple
    kwargs: dict
    nodes: tuple[int, int]  # numbers of autograd's nodes that the call made
    result: Any = None
    number: int = 0  # a count of the run's calls up to this one
    makers: tuple[Call, ...] = ()  # that made its operands
    has_floats: bool = False  # it takes or makes float32 tensors
    size: int = 0  # bytes of its result
    is_forgotten: bool = False  # its operands and its result are gone

    @property
    def name(self) -> str:
        return self.place.name

    def forget(self) -> None:
        """Lets go of operands and result."""
        self.args, self.kwargs, self.result, self.is_forgotten = (), {}, None, True


@dataclass(frozen=True)
class Kept:
    """Calls of a run that keep operands and results, while all others are noted without."""

    numbers: frozenset[int] = frozenset()  # a call's, for it and the views behind it
    places: frozenset[CallPlace] = frozenset()  # the first turns at each

    def __or__(self, other: Kept) -> Kept:
        return Kept(self.numbers | other.numbers, self.places | other.places)


@dataclass(frozen=True)
class CallPlan:
    """Changes of calls: those in FP32, and those that compute something else."""

    region: frozenset[CallPlace] | None = frozenset()  # None: every call
    changes: dict[CallPlace, Change] = field(default_factory=dict)
    mixed: frozenset[CallPlace] | None = None  # calls that may take FP32 and 16 bits together; None: every call
    asked: frozenset[CallPlace] = frozenset()  # calls in front of a change whose operands and results it asks for
    rounds: frozenset[CallPlace] = frozenset()  # casts to 16 bits, also where a trial makes their operand say float32
    most_calls: int = 10**7

    def lifts(self, place: CallPlace) -> bool:
        return self.region is None or place in self.region

    def has_line(self, place: CallPlace) -> bool:
        """Whether a place lies between calls of the region in its function."""
        if self.region is None:
            return True
        spans = [each.span for each in self.region if (each.file, each.function) == (place.file, place.function)]
        first, last = min((span.line for span in spans), default=1), max((span.end_line for span in spans), default=0)
        return first <= place.span.line <= last

"""Search for candidates that must stay in FP32, none of which can be left out, by trainings that begin alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from halfscope.reporting import Finding, Report, Reported
from halfscope.torch.search.candidates import exceptions_of, in_words, wide_formats

Accepts = Callable[[], Any]  # yes or no, or a number that is to be small
Train = Callable[[list[str], Accepts], Any]  # judges a training; None for one whose steps were all skipped


@dataclass(frozen=True)
class Bisection(Reported):
    """Result of `bisect`; `str` of it says what to keep in FP32, why, and how sure that is."""

    layers: tuple[str, ...]  # candidates that must stay in FP32; none where the formats alone will do
    runs: int  # trainings
    why: str = ""
    sure: str = ""

    @property
    def exceptions(self) -> dict[str, Any]:
        """The mapping for `emulate(exceptions=...)`."""
        return exceptions_of(self.layers)

    @property
    def report(self) -> Report:
        """The candidates to keep in FP32; no finding where nothing has to be kept."""
        finding = Finding("layers", self._change().rstrip("."), self.why, self.sure, about=self.layers)
        return Report("bisect", (finding,) if self.layers else (), text=str(self))

    def _change(self) -> str:
        if not self.layers:
            return "Keep nothing in FP32."
        kept = ", ".join(map(in_words, self.layers))
        return f"Keep {kept} {wide_formats(self.layers)}: emulate(..., exceptions={self.exceptions})."

    def __str__(self) -> str:
        return f"{self._change()}\nWhy: {self.why}.\nHow sure: {self.sure}."


def bisect(accepts: Accepts, layers: list[str], train: Train, within: float = 0.01) -> Bisection:
    """layers: candidates in the order of the model; train: tells of a training with some of them in FP32.

    within: of a number, how far above that of all layers in FP32 it may be, relative to that.
    """
    search = _Search(accepts, train, layers, within)
    if search.will_do([]):
        return search.result([])
    all_wide = f"bisect: with all {len(layers)} candidates {wide_formats(layers)}"
    if search.told(layers) is None:
        raise ValueError(
            f"{all_wide} the scaler skipped every step too; train more steps, or begin with a smaller scale"
        )
    if not search.will_do(layers):
        raise ValueError(f"{all_wide} the result is refused too ({_some(layers)}); it is not their formats")
    names: list[str] = []
    candidates = list(layers)
    while True:
        candidates = candidates[: search.shortest_prefix(candidates, names)]
        names.append(candidates.pop())
        if not candidates or search.will_do(names):
            break
    return search.result(sorted(_without_needless(names, search), key=layers.index))


def _without_needless(names: list[str], search: _Search) -> list[str]:
    """Drops layers one by one until none of the rest can be left out."""
    while True:
        for name in names:
            without = [other for other in names if other != name]
            if without and search.will_do(without):
                names = without
                break
        else:
            return names


def _these(names: list[str]) -> str:
    return "this alone" if len(names) == 1 else "these"


def _some(layers: list[str]) -> str:
    more = f" and {len(layers) - 6} more" if len(layers) > 6 else ""
    return ", ".join(map(in_words, layers[:6])) + more


class _Search:
    def __init__(self, accepts: Accepts, train: Train, layers: list[str], within: float) -> None:
        self._accepts, self._train, self._layers, self._within = accepts, train, layers, within
        self._known: dict[frozenset[str], Any] = {}

    def result(self, names: list[str]) -> Bisection:
        """The bisection that ended with the candidates `names`."""
        sure = f"{len(self._known)} training{'s' * (len(self._known) != 1)} from the same start"
        if names:
            sure += "; it cannot be left out" if len(names) == 1 else f"; each of the {len(names)} is needed"
        if 0 < len(names) < len(self._layers):
            sure += "; another choice may do too"
        return Bisection(tuple(names), len(self._known), self._why(names), sure)

    def _why(self, names: list[str]) -> str:
        without, told, wide = self.told([]), self.told(names), wide_formats(self._layers)
        if isinstance(told, bool):
            if not names:
                return "the result is accepted so"
            before = "every step is skipped" if without is None else "the result is refused"
            return f"with nothing {wide} {before}, with {_these(names)} it is accepted"
        best = f"{self.told(self._layers):.4g} with all {len(self._layers)} candidates {wide}"
        if not names:
            return f"{told:.4g} with nothing {wide}, {best}"
        before = "every step skipped" if without is None else f"{without:.4g}"
        return f"{before} with nothing {wide}, {told:.4g} with {_these(names)}, {best}"

    def told(self, layers: list[str]) -> Any:
        """Yes, no, a number, or None of a training whose steps were all skipped."""
        key = frozenset(layers)
        if key not in self._known:
            self._known[key] = self._train(layers, self._accepts)
        return self._known[key]

    def will_do(self, layers: list[str]) -> bool:
        """Whether the training is accepted with these in FP32; a number that is NaN is not."""
        told = self.told(layers)
        if told is None or isinstance(told, bool):
            return bool(told)
        best = self.told(self._layers)
        if best is None or isinstance(best, bool):
            return bool(best)
        return bool(told <= best + self._within * abs(best))

    def shortest_prefix(self, candidates: list[str], names: list[str]) -> int:
        """How many of the first candidates it takes beside `names`; all of them will do."""
        low, high = 0, len(candidates)
        while high - low > 1:
            middle = (low + high) // 2
            if self.will_do([*names, *candidates[:middle]]):
                high = middle
            else:
                low = middle
        return high

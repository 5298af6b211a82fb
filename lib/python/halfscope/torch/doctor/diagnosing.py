"""The course of a diagnosis: state before the step, FP32, the format, cause by intervention, remedy by search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from halfscope.torch.doctor.examination import Examination, OutOfTime
from halfscope.torch.doctor.program import Trial
from halfscope.torch.doctor.regions import Region, groups_of, shortest_region
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.transformations.fp32_calls import edits_of
from halfscope.torch.doctor.transformations.table import FAMILIES

_SCALES = tuple(2.0**power for power in (8, 12, 16, 20, 24))
_SHORT = 6  # calls, a short region also in a small step
_NO_LINE = 1 / 3  # share of the calls: a longer region is round-off that grows everywhere


@dataclass(frozen=True)
class Remedy:
    """A change that was tried and accepted, with the calls that it heals."""

    candidate: Candidate
    loss: float | None
    group: tuple[CallPlace, ...] = ()
    second: Candidate | None = None  # the region in FP32, where another change is cheaper


@dataclass
class Course:
    """The findings of one step, as they are made."""

    about: Examination
    remedies: list[Remedy] = field(default_factory=list)
    region: Region | None = None
    base: Trial = field(default_factory=Trial)
    is_spread: bool = False  # round-off that no line explains
    is_unhealed: bool = False
    is_out_of_time: bool = False
    tried: int = 0

    def search(self) -> None:
        """Fills in what heals the step."""
        try:
            self._search()
        except OutOfTime:
            self.is_out_of_time = True
        reasons = {alarm.reason for alarm in self.about.alarms}
        if self.is_unhealed and not self.remedies and "amplified" in reasons and "not finite" not in reasons:
            self.is_spread = True

    def _search(self) -> None:
        if self._is_of_gradients() and self._scale():
            return
        if self._is_only_amplified() and self._has_no_short_region():
            self.is_spread = True
            return
        if not any(self._in_region(base) for base in _BASES):
            self.is_unhealed = not (self._state() or self._scale())
            return
        assert self.region is not None
        groups = groups_of(self.region.needed, self.about.narrow.log)
        for group in groups:
            others = frozenset(place for other in groups if other is not group for place in other)
            self._heal(Group(self.about, group, self.about.region(others, self.base)))

    def _in_region(self, base: Trial) -> bool:
        self.region, self.base = shortest_region(self.about, base), base
        return self.region is not None

    def _heal(self, group: Group) -> None:
        found = next((each for each in self._accepted(group)), None)
        if found is None:
            self.is_unhealed = True
            return
        self.remedies.append(found)

    def _accepted(self, group: Group) -> Iterator[Remedy]:
        for family in FAMILIES:
            for candidate in family(group):
                self.tried += 1
                if self.about.is_right(candidate.trial, candidate.moves):
                    yield self._remedy(candidate, group.places)

    def _remedy(self, candidate: Candidate, group: tuple[CallPlace, ...]) -> Remedy:
        run = self.about.run(replace(candidate.trial, keeps_all=True))
        assert run is not None
        if candidate.family == "FP32":
            candidate = replace(candidate, edits=edits_of(run, self.about.program.format.name))
        return Remedy(candidate, run.outcome.loss, group)

    def _is_of_gradients(self) -> bool:
        """Whether all that is wrong are finite gradients, and what follows from them."""
        groups = {alarm.distance.group for alarm in self.about.alarms}
        finite = all(alarm.reason != "not finite" for alarm in self.about.alarms)
        return finite and groups <= {"gradient", "gradients", "change"} and groups != {"change"}

    def _is_only_amplified(self) -> bool:
        return all(alarm.reason == "amplified" for alarm in self.about.alarms)

    def _has_no_short_region(self) -> bool:
        """Whether no third of the calls, one behind the other, heals the step in FP32."""
        places = self.about.places
        size = max(_SHORT, round(_NO_LINE * len(places)))
        starts = range(0, max(1, len(places) - size + 1), max(1, size // 2))
        windows = [frozenset(places[start : start + size]) for start in starts]
        windows.append(frozenset(places[-size:]))
        return not any(self.about.heals(self.about.region(window, base)) for base in _BASES[::2] for window in windows)

    def _scale(self) -> bool:
        for scale in _SCALES:
            candidate = Candidate("loss scale", "", Trial(scale=scale))
            if scale <= self.about.program.scale:
                continue
            self.tried += 1
            if self.about.heals(candidate.trial):
                log2 = int(math.log2(scale))
                words = f"use a loss scale: torch.amp.GradScaler(init_scale=2.0**{log2})"
                self.remedies.append(self._remedy(replace(candidate, words=words), ()))
                return True
        return False

    def _state(self) -> bool:
        self.tried += 1
        program, trial = self.about.program, Trial(lifts_weights=True, keeps_state=True)
        if not (program.optimizers or program.has_buffers) or not self.about.heals(trial):
            return False
        words = "keep weights, buffers and the optimizer's state in FP32: model.float(), and torch.autocast around it"
        self.remedies.append(self._remedy(Candidate("state", words, trial), ()))
        return True


_BASES = (Trial(), Trial(lifts_inputs=True), Trial(lifts_inputs=True, lifts_weights=True))

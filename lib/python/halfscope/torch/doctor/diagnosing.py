"""The course of a diagnosis: state before the step, FP32, the format, cause by intervention, remedy by search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from halfscope.torch.doctor.calls import Kept
from halfscope.torch.doctor.examination import Examination, OutOfTime
from halfscope.torch.doctor.failures import is_finite
from halfscope.torch.doctor.outcomes import FROM_OUTSIDE
from halfscope.torch.doctor.program import Run, Trial
from halfscope.torch.doctor.regions import Region, groups_of, shortest_region, shortest_span
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.state_causes import last_write
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.transformations.fp32_calls import edits_of
from halfscope.torch.doctor.transformations.table import FAMILIES, SURE, Family
from halfscope.torch.doctor.typing_edits import Edit
from halfscope.torch.words import counted, listed

_SCALES = tuple(2.0**power for power in (8, 12, 16, 20, 24))
_REGION, _REMEDIES, _IN_FP32 = "the calls that FP32 heals", "remedies", "state in FP32"
_CHEAPER = "cheaper remedies than FP32"
_ENOUGH = 60  # runs that any search for remedies ends within
_SHORT = 6  # calls, a short region also in a small step
_NO_LINE = 1 / 3  # share of the calls: a longer region is round-off that grows everywhere
_FEW_LINES = 3  # whatever share of the calls they hold
_KEPT = 2**20  # bytes of operands that the search keeps at hand of a small step


@dataclass(frozen=True)
class Remedy:
    """A change that was tried and accepted, with the calls that it heals."""

    candidate: Candidate
    loss: float | None
    group: tuple[CallPlace, ...] = ()
    is_of_changes: bool = False  # it heals the changes of state alone, beside amplified round-off


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
    _begun: set[str] = field(default_factory=set)  # parts of the search
    _secured: dict[tuple[CallPlace, ...], Remedy] = field(default_factory=dict)  # by the calls of a group

    def search(self) -> None:
        """Fills in what heals the step, until its time is over or Ctrl-C ends it."""
        try:
            self._search()
        except OutOfTime:
            self.is_out_of_time = True
            self._leave_out()
        except KeyboardInterrupt:
            self.is_out_of_time = True
            self.about.progress.stop()
        self.about.end_search()
        if self.is_unhealed and not self.remedies and self.is_only_amplified:
            self.is_spread = True

    def _leave_out(self) -> None:
        """Names the parts of the search that were not begun."""
        for part in (_REGION, _REMEDIES):
            if part not in self._begun:
                self.about.progress.leave_out(part)

    def _begin(self, part: str) -> None:
        self.about.progress.doing = part
        self._begun.add(part)

    def _search(self) -> None:
        if self.about.program.only is not None:
            self._search_chosen()
            return
        if self._is_overflow_of_scaled_gradients() and self._smaller_scale():
            return
        if not self.is_only_amplified and self._is_of_gradients() and self._scale():
            return
        if self._is_of_state() and self._heals_alone(_STATE):
            return
        if self.is_only_amplified and self._has_no_short_region():
            self.is_spread = True
            self._heal_changes()
            return
        if not any(self._heals_beside(base) for base in _BASES):
            self.is_unhealed = not self._scale()

    def _search_chosen(self) -> None:
        """The calls of some modules alone: a loss scale, and state in FP32, are changes of the whole step."""
        if self.is_only_amplified and self._has_no_short_region():
            self.is_spread = True
        elif not any(self._heals_beside(base) for base in _BASES_OF_CALLS):
            self.is_unhealed = True

    def _heals_beside(self, base: Trial) -> bool:
        """Whether a change is accepted beside inputs, weights or state in FP32."""
        if self._heals_alone(base):
            return True
        self.is_unhealed = False
        if self._in_region(base) and self.region is not None:
            self._heal_groups(self.region)
        return bool(self.remedies)

    def _heal_groups(self, region: Region) -> None:
        self._begin(_REMEDIES)
        log = self.about.narrow.log
        groups = [Group(self.about, places) for places in groups_of(region.needed, log)]
        reach = log.first_within((call for group in groups for call in group.reach()), _KEPT)
        decisions = {alarm.distance.place for alarm in self.about.alarms if alarm.distance.place is not None}
        self.about.keep(Kept(reach, frozenset(decisions)))
        for place, group in enumerate(groups):
            others = frozenset(each for other in groups if other is not group for each in other.places)
            groups[place] = replace(group, base=self.about.region(others, self.base))
        if not self.about.progress.has_room(_ENOUGH):
            self._secure(groups)
        for group in groups:
            self._heal(group)
        changes = any(alarm.distance.group == "change" for alarm in self.about.alarms)
        if self.base.keeps_state and self.remedies and changes:
            together = replace(self._state(self.base), trial=self.remedies[-1].candidate.trial)
            self.remedies.insert(0, self._remedy(together, ()))

    def _in_region(self, base: Trial) -> bool:
        self._begin(_REGION)
        region = shortest_region(self.about, base)
        if region is not None:
            self.region, self.base = region, base
        return region is not None

    def _heals_alone(self, base: Trial) -> bool:
        """Whether state in FP32 heals the step with every call in the format."""
        if not base.keeps_state or not self._has_state():
            return False
        self._begin(_IN_FP32)
        self.tried += 1
        if not self.about.heals_but_for_flips(base):
            return False
        self.remedies.append(self._remedy(self._state(base), ()))
        return True

    def _heal_changes(self) -> None:
        """Lost changes of state, which noise beside a state in FP32 does not make, whatever becomes of the rest."""
        if not self._has_state() or all(alarm.reason != "change" for alarm in self.about.alarms):
            return
        self._begin(_IN_FP32)
        self.tried += 1
        run = self.about.run(_STATE)
        left = [] if run is None else self.about.floor.alarms(run.outcome, self.about.exact.outcome)
        if run is not None and all(alarm.distance.group != "change" for alarm in left):
            self.remedies.append(Remedy(self._state(_STATE), run.outcome.loss, is_of_changes=True))

    def _secure(self, groups: list[Group]) -> None:
        """FP32 for each group, before the time is over that cheaper changes may take."""
        for group in groups:
            remedy = self._first(SURE, group)
            if remedy is not None:
                self._secured[group.places] = remedy
                self.remedies.append(remedy)
        if self._secured:
            self._begin(_CHEAPER)

    def _heal(self, group: Group) -> None:
        secured = self._secured.get(group.places)
        families = [family for family in FAMILIES if secured is None or family is not SURE]
        found = next(filter(None, (self._first(family, group) for family in families)), None)
        if found is None:
            self.is_unhealed = self.is_unhealed or secured is None
        elif secured is None:
            self.remedies.append(found)
        else:
            self.remedies = [found if each is secured else each for each in self.remedies]

    def _first(self, family: Family, group: Group) -> Remedy | None:
        """The first of a family's changes that is accepted."""
        for candidate in family(group):
            self.tried += 1
            run = self.about.healed_run(candidate.trial, candidate.moves)
            if run is not None:
                return self._remedy(candidate, group.places, run)
        return None

    def _remedy(self, candidate: Candidate, group: tuple[CallPlace, ...], run: Run | None = None) -> Remedy:
        run = run or self.about.run(replace(candidate.trial, keeps=Kept()))
        assert run is not None
        if candidate.family == "FP32":
            candidate = replace(candidate, edits=self._edits(run))
        return Remedy(candidate, run.outcome.loss, group)

    def _edits(self, run: Run) -> tuple[Edit, ...]:
        """Empty where inputs or weights stay in FP32 too: their casts stand elsewhere, such as `model.half()`."""
        keeps = self.base.lifts_inputs or self.base.lifts_weights
        return () if keeps else edits_of(run, self.about.program.format.name)

    def _is_of_gradients(self) -> bool:
        """Whether all that is wrong are finite gradients, and what follows from them."""
        groups = {alarm.distance.group for alarm in self.about.alarms}
        finite = all(alarm.reason != "not finite" for alarm in self.about.alarms)
        return finite and groups <= {"gradient", "gradients", "change"} and groups != {"change"}

    def _is_overflow_of_scaled_gradients(self) -> bool:
        """Whether gradients, and what follows from them, are all that is not finite, above a loss scale of 1."""
        bad = {alarm.distance.group for alarm in self.about.alarms if alarm.reason == "not finite"}
        return self.about.program.scale > 1 and bool(bad) and bad <= {"gradient", "gradients", "change"}

    @property
    def is_only_amplified(self) -> bool:
        """Amplified round-off, and changes of state and gradients that follow from it."""
        alarms = self.about.alarms
        groups = {alarm.distance.group for alarm in alarms if alarm.reason == "amplified"}
        of_gradients = {"gradient", "gradients"} if "number" in groups else set()
        return bool(groups) and all(
            alarm.reason in ("amplified", "change")
            or (alarm.reason == "round-off" and alarm.distance.group in of_gradients)
            for alarm in alarms
        )

    def _has_no_short_region(self) -> bool:
        """Whether neither a third of the calls, one behind the other, nor a few lines heal the step in FP32."""
        self._begin(_REGION)
        places = self.about.places
        size = max(_SHORT, round(_NO_LINE * len(places)))
        starts = range(0, max(1, len(places) - size + 1), max(1, size // 2))
        windows = [frozenset(places[start : start + size]) for start in starts]
        windows.append(frozenset(places[-size:]))
        every = _BASES if self.about.program.only is None else _BASES_OF_CALLS
        bases = (every[0], every[-1])
        if any(self.about.heals(self.about.region(window, base)) for base in bases for window in windows):
            return False
        return not any(self._is_of_few_lines(shortest_span(self.about, base)) for base in bases)

    def _is_of_few_lines(self, span: list[CallPlace]) -> bool:
        """Layers of PyTorch's are a line each, though one line of the source calls all of a Sequential."""
        return 0 < len({(place.file, place.span.line, place.module) for place in span}) <= _FEW_LINES

    def _scale(self) -> bool:
        """Whether another loss scale heals the step; a format of FP32's range needs none."""
        self._begin("loss scales")
        for scale in () if self.about.program.format.has_range_of_fp32 else _SCALES:
            candidate = Candidate("loss scale", "", Trial(scale=scale))
            if scale <= self.about.program.scale:
                continue
            self.tried += 1
            if self.about.heals(candidate.trial):
                words = f"use a loss scale: torch.amp.GradScaler(init_scale={_typed(scale)})"
                self.remedies.append(self._remedy(replace(candidate, words=words), ()))
                return True
        return False

    def _smaller_scale(self) -> bool:
        """Whether the first scale heals the step that a gradient scaler comes to by halves; none below 1 is tried."""
        self._begin("loss scales")
        least, most = 1, int(math.log2(self.about.program.scale))
        while least <= most:  # by halves over the number of skipped steps
            middle = (least + most) // 2
            self.tried += 1
            run = self.about.run(Trial(scale=self._halved(middle)))
            if run is not None and is_finite(run.outcome):
                most = middle - 1
            else:
                least = middle + 1
        scale = self._halved(least)
        if scale < 1 or not self.about.heals(Trial(scale=scale)):
            return False
        skipped = counted(least, "skipped step")
        words = (
            f"use a smaller loss scale: torch.amp.GradScaler(init_scale={_typed(scale)}); one that begins at "
            f"{_typed(self.about.program.scale)} falls to it by itself, after {skipped}"
        )
        self.remedies.append(self._remedy(Candidate("loss scale", words, Trial(scale=scale)), ()))
        return True

    def _halved(self, times: int) -> float:
        return self.about.program.scale / 2.0**times

    def _state(self, base: Trial) -> Candidate:
        """FP32 for the state that an update changes, by name if these are buffers alone."""
        changed = [alarm for alarm in self.about.alarms if alarm.distance.group == "change"]
        place = None
        names = [alarm.distance.name for alarm in changed]
        if names and set(names) <= {name for name, _ in self.about.program.model.named_buffers()}:
            is_lost = all(alarm.reason == "change" for alarm in changed)
            lost = f": {self.about.program.format.label} loses what a step adds" if is_lost else ""
            words = f"keep {listed(names)} in FP32{lost}"
        elif names and all(name.endswith(FROM_OUTSIDE) for name in names):
            words = "keep in FP32 what this step writes to outside of its model, such as averages of weights"
            place = last_write(self.about, self.about.program.written_outside.keys())
        else:
            words = _KEEP_STATE
        return Candidate("state", words, base, place=place)

    def _has_state(self) -> bool:
        program = self.about.program
        return bool(program.optimizers or program.has_buffers or program.written_outside)

    def _is_of_state(self) -> bool:
        """Whether all that is wrong is how much a step changed weights, buffers or tensors from outside."""
        return {alarm.distance.group for alarm in self.about.alarms} == {"change"}


def _typed(scale: float) -> str:
    """A power of two as a person types it, another number as it is."""
    mantissa, exponent = math.frexp(scale)
    return f"2.0**{exponent - 1}" if mantissa == 0.5 else f"{scale:g}"


_KEEP_STATE = "keep weights, buffers and the optimizer's state in FP32: model.float(), and torch.autocast around it"
_STATE = Trial(lifts_weights=True, keeps_state=True)
_BASES = (Trial(), Trial(lifts_inputs=True), _STATE, replace(_STATE, lifts_inputs=True))
_BASES_OF_CALLS = tuple(replace(base, keeps_state=False) for base in _BASES)

"""The runs that every diagnosis needs, and the question that a search asks: does this change heal the step?"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from halfscope.torch.doctor.calls import Call, EndlessRun, Kept
from halfscope.torch.doctor.failures import HEALED, HEALED_AGAIN, Alarm, Floor
from halfscope.torch.doctor.first_not_finite import FirstNotFinite
from halfscope.torch.doctor.noisy_runs import Pair
from halfscope.torch.doctor.outcomes import Outcome, changed_decisions
from halfscope.torch.doctor.program import Program, Run, Trial
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.doctor.source_text import CallPlace

_LUCK_SEEDS = (1, 1001)  # a failure is to be one again on inputs that each makes slightly smaller
_NOISE = "noise that may explain an error"
_MORE_CALLS = 4  # times as many as in the first run make a run endless


class OutOfTime(Exception):
    """The budget is spent."""


@dataclass
class Examination:
    """A step in FP32 and in the format, its floor, and trials of changes."""

    program: Program
    progress: Progress
    quick: bool = False  # three runs: FP32, the format, noise
    exact: Run = field(init=False)
    narrow: Run = field(init=False)
    floor: Floor = field(init=False)
    alarms: list[Alarm] = field(init=False)
    first: FirstNotFinite = field(default_factory=FirstNotFinite)  # in the format
    base: Trial = field(default_factory=Trial)  # changes that all trials have: inputs before their cast, the loss scale
    _kept: Kept = field(default_factory=Kept)  # calls in the format that have operands and results
    _answers: dict[Any, bool] = field(default_factory=dict)  # whether trials without changes heal
    _smaller: Run | None = None  # FP32 on smaller inputs
    _floor_of_smaller: Floor | None = None

    def begin(self) -> None:
        self.exact = self.made(Trial(is_exact=True))
        types = self.program.own_types | self.exact.narrow_types
        if types:
            self.program.run_as_it_is(types)
        self.floor = Floor(unit_of(self.program), sum(self.exact.log.places.values()))

    def look(self) -> None:
        """The format's run, the floor, and what lies above it."""
        # Noise first: its runs would hold the gradients of the format's run too.
        noise = Pair(self._tolerant_run, Trial(), self.exact.outcome, self.exact.outcome)
        noise.learn(self.floor, self.quick)
        if self.quick:
            self._run_keeping(Kept())
            self.alarms = self.floor.alarms(self.narrow.outcome, self.exact.outcome)
            return
        noise.learn_fp32(self.floor)
        self._run_keeping(Kept())
        self.alarms = self._judged(Pair(self._tolerant_run, Trial(), self.narrow.outcome, self.exact.outcome))
        if self.alarms:
            self.floor.learn_harm(self.narrow.outcome, self.exact.outcome, self.alarms)
            self.narrow.outcome.gradients.clear()  # the alarms tell what they differ in

    def keep(self, calls: Kept) -> None:
        """Has these calls in the format at hand, with operands and results.

        A step has no memory for the operands of all its calls. Raises OutOfTime where that takes a run too long.
        """
        if (self._kept | calls) != self._kept:
            if not self.progress.has_time():
                raise OutOfTime
            self._run_keeping(self._kept | calls)
            if self.alarms:
                self.narrow.outcome.gradients.clear()

    def _run_keeping(self, calls: Kept) -> None:
        self._kept = calls
        self.narrow = self._in_the_format(Trial(keeps=calls))
        self.floor.upstream = self.narrow.log.upstream

    def _judged(self, pair: Pair) -> list[Alarm]:
        alarms = pair.alarms(self.floor)
        return self._confirmed(alarms) if self._may_be_luck(alarms) else alarms

    def _in_the_format(self, trial: Trial) -> Run:
        """A script that refuses tensors of the format's type, as some detectors do, runs again without that type."""
        self.first = FirstNotFinite()
        try:
            return self.made(trial, self.first)
        except Exception as error:
            if self.program.refusal:
                raise
            self.program.refusal = f"{type(error).__name__}: {error}"
        return self._in_the_format(trial)

    def _tolerant_run(self, trial: Trial) -> Run | None:
        """None of a run that ends with an error, as where noise leaves a function's domain, or that comes too late."""
        needed = 1 if hasattr(self, "narrow") else 2  # the format's own run comes behind noise
        if not self.progress.has_time(needed, _NOISE):
            return None
        try:
            return self.made(trial)
        except Exception:
            return None

    def _may_be_luck(self, alarms: list[Alarm]) -> bool:
        """Whether finite numbers are off, and a decision within the step is another one: one near tie is enough.

        Numbers that have lost their digits are no luck.
        """
        explained = any(alarm.reason == "not finite" or alarm.distance.group == "choice" for alarm in alarms)
        return bool(alarms) and not explained and bool(changed_decisions(self.narrow.outcome, self.exact.outcome))

    def _confirmed(self, alarms: list[Alarm]) -> list[Alarm]:
        """Failures on slightly smaller inputs too."""
        for seed in _LUCK_SEEDS:
            exact, narrow = (self._tolerant_run(Trial(is_exact=is_exact, shrinks=seed)) for is_exact in (True, False))
            if exact is not None and narrow is not None:
                again = {alarm.distance.name for alarm in self.floor.alarms(narrow.outcome, exact.outcome)}
                alarms = [alarm for alarm in alarms if alarm.distance.name in again]
        return alarms

    @cached_property
    def places(self) -> list[CallPlace]:
        """Places of the calls in the format that take or make floating numbers, in the order of the first ones.

        A search that is narrowed to modules has the places of their calls alone.
        """
        with_floats = {call.place for call in self.narrow.log.calls if call.has_floats}
        return [place for place in self.narrow.log.places if place in with_floats and self.is_sought(place)]

    def is_sought(self, place: CallPlace) -> bool:
        """Whether a call may be the cause: each, or those of the modules that the search is narrowed to."""
        return self.program.only is None or place in self.narrow.log.of_chosen

    @cached_property
    def first_infinite(self) -> int | None:
        """Number, in `places`, of the call that is infinite or NaN first, or whose gradient is."""
        calls = [origin.call(self.narrow.log) for origin in self.first.origins[:1]]
        return self._first_number({call.place for call in calls if call is not None})

    @cached_property
    def first_decision(self) -> int | None:
        """Number, in `places`, of the first call that decides otherwise than in FP32."""
        return self._first_number({alarm.distance.place for alarm in self.alarms})

    def _first_number(self, places: Set[CallPlace | None]) -> int | None:
        return next((number for number, place in enumerate(self.places) if place in places), None)

    def made(
        self, trial: Trial, see: FirstNotFinite | None = None, after_call: Callable[[Call], None] | None = None
    ) -> Run:
        """A run whose time the next ones are judged by."""
        with self.progress.run(self.program.runs):
            return self.program.run(trial, see, after_call)

    def run(self, trial: Trial, after_call: Callable[[Call], None] | None = None) -> Run | None:
        """A run in the format with changes; None where these make it endless or end it with an error.

        PyTorch's error at FP32 that meets weights of 16 bits is one, unless the step without changes has it too.
        """
        if not self.progress.has_time():
            raise OutOfTime
        mixed = None if trial.is_exact else frozenset(self.narrow.log.mixed)
        most = _MORE_CALLS * self.floor.calls + 100
        plan = replace(trial.calls, mixed=mixed, rounds=self.narrow.log.rounds, most_calls=most)
        try:
            return self.made(replace(trial, calls=plan), after_call=after_call)
        except EndlessRun:
            return None
        except Exception:  # a change that the step does not bear heals nothing
            return None

    def heals(self, trial: Trial) -> bool:
        """Whether the step is FP32's but for round-off; the answer to a trial without changes is kept."""
        key = (trial.calls.region, trial.lifts_inputs, trial.lifts_weights, trial.keeps_state, trial.scale)
        if trial.calls.changes or key not in self._answers:
            run = self.run(trial)
            self._answers[key] = run is not None and self.floor.is_healed(run.outcome, self.exact.outcome)
        return self._answers[key]

    def heals_but_for_flips(self, trial: Trial) -> bool:
        """Whether the step is FP32's but for round-off, after more noise where a sign may have flipped."""
        if self.heals(trial):
            return True
        run = self.run(trial)
        left = [] if run is None else self.floor.alarms(run.outcome, self.exact.outcome, HEALED)
        of_signs = [each for each in left if each.reason == "round-off" and each.distance.group.startswith("gradient")]
        if run is None or not of_signs or any(each.reason not in ("round-off", "change") for each in left):
            return False
        left = Pair(self.run, trial, run.outcome, self.exact.outcome).alarms(self.floor, HEALED)
        return not left and self.floor.is_healed(run.outcome, self.exact.outcome)

    def every_call(self, base: Trial) -> Trial:
        """The trial with all calls in FP32 that may be the cause."""
        return self.region(None if self.program.only is None else frozenset(self.places), base)

    def region(self, places: frozenset[CallPlace] | None, base: Trial | None = None) -> Trial:
        """The trial with these calls in FP32; None: with all of them."""
        base = base or self.base
        return replace(base, calls=replace(base.calls, region=places))

    def healed_run(self, trial: Trial, moves: bool) -> Run | None:
        """The run of a change that heals the step, leaves FP32's own outcome, and does both again on smaller inputs."""
        narrow = self.run(replace(trial, keeps=Kept()))
        if narrow is None or not self._is_healed(trial, narrow, moves):
            return None
        narrow.outcome = Outcome(narrow.outcome.loss)  # its tensors have no memory beside the runs that follow
        return narrow if self._heals_smaller_inputs(trial, moves) else None

    def _is_healed(self, trial: Trial, narrow: Run, moves: bool) -> bool:
        if not self.floor.is_healed(narrow.outcome, self.exact.outcome):
            return False
        exact = self._fp32_with(trial, self.exact)
        if exact is None or not self.floor.keeps_fp32(exact.outcome, self.exact.outcome, moves):
            return False
        return self._is_healed_by_its_own_floor(Pair(self.run, trial, narrow.outcome, exact.outcome))

    def _heals_smaller_inputs(self, trial: Trial, moves: bool) -> bool:
        smaller = self._fp32_on_smaller_inputs()
        again = self.run(replace(trial, shrinks=1))
        if smaller is None or again is None or not self._is_healed_again(again, smaller):
            return False
        del again
        exact = self._fp32_with(replace(trial, shrinks=1), smaller)
        return exact is not None and self.floor.keeps_fp32(exact.outcome, smaller.outcome, moves)

    def _fp32_with(self, trial: Trial, without: Run) -> Run | None:
        """FP32's run with a change. without: the one without it, which casts alone leave as it is."""
        is_changed = trial.calls.changes or trial.moved is not None
        return self.run(replace(trial, is_exact=True)) if is_changed else without

    def _is_healed_by_its_own_floor(self, changed: Pair) -> bool:
        """Whether the round-off of the changed step explains what is left.

        The floor of the step as it was is high where that step amplifies round-off, and so hides half a remedy.
        """
        if self.floor.blank().is_healed(changed.narrow, self.exact.outcome):
            return True
        floor = self.floor.blank()
        changed.learn(floor)
        changed.learn_fp32(floor)
        return not changed.alarms(floor, HEALED)

    def _is_healed_again(self, again: Run, smaller: Run) -> bool:
        """Whether smaller inputs are healed too; their own floor is asked if the first one does not explain the rest.

        Gradients that cancel, as behind a norm, are round-off in any run of the format: these may stay amplified.
        """
        left = self.floor.alarms(again.outcome, smaller.outcome, HEALED_AGAIN)
        if not left or any(alarm.reason == "not finite" for alarm in left):
            return not left
        alarms = self._floor_on_smaller_inputs(smaller).alarms(again.outcome, smaller.outcome)
        return all(alarm.reason == "amplified" for alarm in alarms)

    def _floor_on_smaller_inputs(self, smaller: Run) -> Floor:
        if self._floor_of_smaller is None:
            self._floor_of_smaller = self.floor.blank()
            pair = Pair(self.run, Trial(shrinks=1), smaller.outcome, smaller.outcome)
            pair.learn(self._floor_of_smaller)
            pair.learn_fp32(self._floor_of_smaller)
        return self._floor_of_smaller

    def end_search(self) -> None:
        """Lets go of what trials alone are compared with."""
        self._smaller = None

    def _fp32_on_smaller_inputs(self) -> Run | None:
        if self._smaller is None:
            self._smaller = self.run(Trial(is_exact=True, shrinks=1))
        return self._smaller


def unit_of(program: Program) -> float:
    """Half a step of the format beside 1: the largest relative error of a rounding."""
    return 2.0**-program.format.precision

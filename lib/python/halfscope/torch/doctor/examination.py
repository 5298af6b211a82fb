"""The runs that every diagnosis needs, and the question that a search asks: does this change heal the step?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from halfscope.torch.doctor.calls import EndlessRun
from halfscope.torch.doctor.failures import HEALED_AGAIN, Alarm, Floor
from halfscope.torch.doctor.outcomes import Outcome
from halfscope.torch.doctor.program import Program, Run, Trial
from halfscope.torch.doctor.source_text import CallPlace

_SEEDS = (1, 2, 3)
_MORE_SEEDS = (4, 5, 6, 7, 8)  # before an error of some percent is called more than round-off
_FLIP_SEEDS = tuple(range(9, 17))  # before an error of gradients alone is told: one flipped sign makes some percent
_FLIPPING = 4.0  # units of noise, which flip more signs
_FP32_UNIT = 2.0**-24
_MORE_CALLS = 4  # times as many as in the first run make a run endless


class OutOfTime(Exception):
    """The budget is spent."""


@dataclass
class Examination:
    """A step in FP32 and in the format, its floor, and trials of changes."""

    program: Program
    seconds: float
    quick: bool = False
    began: float = field(default_factory=time.monotonic)
    exact: Run = field(init=False)
    narrow: Run = field(init=False)
    floor: Floor = field(init=False)
    alarms: list[Alarm] = field(init=False)
    base: Trial = field(default_factory=Trial)  # changes that all trials have: inputs before their cast, the loss scale
    _smaller: Run | None = None  # FP32 on smaller inputs
    _floor_of_smaller: Floor | None = None

    def begin(self) -> None:
        self.exact = self.program.run(Trial(is_exact=True))
        types = self.program.own_types | self.exact.narrow_types
        if types:
            self.program.run_as_it_is(types)
        self.floor = Floor(unit_of(self.program), sum(self.exact.log.places.values()))

    def look(self) -> None:
        """The format's run, and the floor."""
        self.narrow = self.program.run(Trial(keeps_all=True))
        for seed in _SEEDS[: 1 if self.quick else None]:
            self._learn(Trial(is_exact=True, noise=self.floor.unit, seed=seed))
        if not self.quick:
            for seed in _SEEDS[:2]:
                self._learn(Trial(is_exact=True, noise=_FP32_UNIT, seed=seed))
        self.alarms = self.floor.alarms(self.narrow.outcome, self.exact.outcome)
        if self.alarms and all(alarm.reason == "round-off" for alarm in self.alarms):  # by a sign that seldom flips
            for seed in _MORE_SEEDS:
                self._learn(Trial(is_exact=True, noise=self.floor.unit, seed=seed))
            self.alarms = self.floor.alarms(self.narrow.outcome, self.exact.outcome)
            if all(alarm.distance.group.startswith("gradient") for alarm in self.alarms):
                self._look_with_more_noise(_FLIP_SEEDS)
        if any(alarm.reason == "amplified" for alarm in self.alarms) and not self.quick:
            self._look_with_more_noise(_FLIP_SEEDS[:3])

    def _look_with_more_noise(self, seeds: tuple[int, ...]) -> None:
        if not self.alarms:
            return
        for seed in seeds:
            trial = Trial(is_exact=True, noise=_FLIPPING * self.floor.unit, seed=seed)
            self._learn_by(self.floor.learn_jumps, trial, self.exact)
        self.alarms = self.floor.alarms(self.narrow.outcome, self.exact.outcome)

    def _learn(self, trial: Trial) -> None:
        self._learn_of(self.floor, trial, self.exact)

    def _learn_of(self, floor: Floor, trial: Trial, exact: Run) -> None:
        learn = floor.learn if trial.noise > _FP32_UNIT else floor.learn_fp32
        self._learn_by(learn, trial, exact)

    def _learn_by(self, learn: Callable[[Outcome, Outcome], None], trial: Trial, exact: Run) -> None:
        try:
            noisy = self.program.run(trial).outcome
        except Exception:  # noise leaves the domain of a function that refuses what lies outside
            return
        learn(noisy, exact.outcome)

    @property
    def places(self) -> list[CallPlace]:
        """Places of the calls in the format, in the order of the first ones."""
        return list(self.narrow.log.places)

    def run(self, trial: Trial) -> Run | None:
        """A run in the format with changes; None where these make it endless or end it with an error."""
        if time.monotonic() - self.began > self.seconds:
            raise OutOfTime
        limit = _MORE_CALLS * self.floor.calls + 100
        try:
            return self.program.run(replace(trial, calls=replace(trial.calls, most_calls=limit)))
        except EndlessRun:
            return None
        except Exception:  # a change that the step does not bear heals nothing
            return None

    def heals(self, trial: Trial) -> bool:
        """Whether the step is FP32's but for round-off."""
        run = self.run(trial)
        return run is not None and self.floor.is_healed(run.outcome, self.exact.outcome)

    def region(self, places: frozenset[CallPlace] | None, base: Trial | None = None) -> Trial:
        """The trial with these calls in FP32; None: with all of them."""
        base = base or self.base
        return replace(base, calls=replace(base.calls, region=places))

    def is_right(self, trial: Trial, moves: bool) -> bool:
        """Whether a change heals the step, leaves FP32's own outcome, and does both again on smaller inputs."""
        exact = self.run(replace(trial, is_exact=True))
        if exact is None or not self.floor.keeps_fp32(exact.outcome, self.exact.outcome, moves):
            return False
        if not self.heals(trial):
            return False
        smaller = self._fp32_on_smaller_inputs()
        again = self.run(replace(trial, shrinks=1))
        exact_again = self.run(replace(trial, is_exact=True, shrinks=1))
        if smaller is None or again is None or exact_again is None:
            return False
        keeps = self.floor.keeps_fp32(exact_again.outcome, smaller.outcome, moves)
        return keeps and self._is_healed_again(again, smaller)

    def _is_healed_again(self, again: Run, smaller: Run) -> bool:
        """On smaller inputs, whose own floor is asked only where the first one does not explain what is left.

        Gradients that cancel, as behind a norm, are round-off in any run of the format: these may stay amplified.
        """
        left = self.floor.alarms(again.outcome, smaller.outcome, HEALED_AGAIN)
        if not left or any(alarm.reason == "not finite" for alarm in left):
            return not left
        alarms = self._floor_on_smaller_inputs(smaller).alarms(again.outcome, smaller.outcome)
        return all(alarm.reason == "amplified" for alarm in alarms)

    def _floor_on_smaller_inputs(self, smaller: Run) -> Floor:
        if self._floor_of_smaller is None:
            self._floor_of_smaller = Floor(self.floor.unit, self.floor.calls)
            for noise, seeds in ((self.floor.unit, _SEEDS), (_FP32_UNIT, _SEEDS[:2])):
                for seed in seeds:
                    trial = Trial(is_exact=True, noise=noise, seed=seed, shrinks=1)
                    self._learn_of(self._floor_of_smaller, trial, smaller)
        return self._floor_of_smaller

    def _fp32_on_smaller_inputs(self) -> Run | None:
        if self._smaller is None:
            self._smaller = self.run(Trial(is_exact=True, shrinks=1))
        return self._smaller


def unit_of(program: Program) -> float:
    """Half a step of the format beside 1: the largest relative error of a rounding."""
    return 2.0**-program.format.precision

"""Floors of round-off, learned from FP32 runs with noise; more of them before a sign that flips is called a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from halfscope.torch.doctor.failures import ALARM, Alarm, Floor, Tolerance
from halfscope.torch.doctor.outcomes import Outcome, changed_decisions
from halfscope.torch.doctor.program import Run, Trial

FP32_UNIT = 2.0**-24
_SEEDS = (1, 2, 3)
_MORE_SEEDS = (4, 5, 6, 7, 8)  # before an error of some percent is called more than round-off
_FLIP_SEEDS = tuple(range(9, 17))  # before an error of gradients alone is told: one flipped sign makes some percent
_FLIPPING = 4.0  # units of noise, which flip more signs


@dataclass(frozen=True)
class Pair:
    """A step with a trial's changes, in the format and in FP32. run: makes a run; None of one that fails."""

    run: Callable[[Trial], Run | None]
    trial: Trial
    narrow: Outcome
    exact: Outcome

    def noisy(self, noise: float, seed: int, keeps_state: bool = False) -> Outcome | None:
        """FP32 with noise; None where it leaves the domain of a function that refuses what lies outside."""
        trial = replace(self.trial, lifts_weights=True, keeps_state=True) if keeps_state else self.trial
        run = self.run(replace(trial, is_exact=True, noise=noise, seed=seed))
        return None if run is None else run.outcome

    def learn(self, floor: Floor, is_quick: bool = False) -> None:
        """Round-off of the format, in the runs that every floor needs."""
        for seed in _SEEDS[: 1 if is_quick else None]:
            self._teach(partial(self._learn, floor), floor.unit, seed)

    def learn_fp32(self, floor: Floor) -> None:
        """Round-off of FP32."""
        for seed in _SEEDS[:2]:
            self._teach(floor.learn_fp32, FP32_UNIT, seed)

    def alarms(self, floor: Floor, tolerance: Tolerance = ALARM) -> list[Alarm]:
        """Failures of the format's run, after more noise where a sign that flips may explain them.

        A decision of numbers that have lost their digits is a cause, which no noise excuses.
        """
        found = self._unexplained(floor, tolerance)
        if not found or any(alarm.reason == "not finite" or alarm.distance.group == "choice" for alarm in found):
            return found
        floor.has_near_ties = bool(changed_decisions(self.narrow, self.exact))
        if floor.has_near_ties or any(alarm.reason == "round-off" for alarm in found):
            for seed in _MORE_SEEDS:
                self._teach(partial(self._learn, floor), floor.unit, seed)
            found = floor.alarms(self.narrow, self.exact, tolerance)
            is_of_gradients = all(alarm.distance.group.startswith("gradient") for alarm in found)
            if found and (is_of_gradients or floor.has_near_ties):
                return self._after_flips(floor, _FLIP_SEEDS, tolerance)
        if any(alarm.reason == "amplified" for alarm in found):
            found = self._after_flips(floor, _FLIP_SEEDS[:3], tolerance)
        return found

    def _unexplained(self, floor: Floor, tolerance: Tolerance) -> list[Alarm]:
        """Failures, after noise in all but the state where the state's change is one."""
        found = floor.alarms(self.narrow, self.exact, tolerance)
        if not any(alarm.reason == "change" for alarm in found):
            return found
        for seed in _SEEDS:
            self._teach(floor.learn_changes, floor.unit, seed, keeps_state=True)
        return floor.alarms(self.narrow, self.exact, tolerance)

    def _teach(
        self, learn: Callable[[Outcome, Outcome], None], noise: float, seed: int, keeps_state: bool = False
    ) -> None:
        """One noisy run, whose outcome goes before the next one needs memory."""
        noisy = self.noisy(noise, seed, keeps_state)
        if noisy is not None:
            learn(noisy, self.exact)

    def _learn(self, floor: Floor, noisy: Outcome, exact: Outcome) -> None:
        """Noise of one unit; beside a state in FP32 it explains what changes too."""
        floor.learn(noisy, exact)
        if self.trial.keeps_state:
            floor.learn_changes(noisy, exact)

    def _after_flips(self, floor: Floor, seeds: tuple[int, ...], tolerance: Tolerance) -> list[Alarm]:
        for seed in seeds:
            learn = partial(floor.learn_jumps, units=_FLIPPING, of_changes=self.trial.keeps_state)
            self._teach(learn, _FLIPPING * floor.unit, seed)
        return floor.alarms(self.narrow, self.exact, tolerance)

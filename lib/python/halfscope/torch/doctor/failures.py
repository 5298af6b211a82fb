"""Failure of a step in a format: what is farther from FP32 than round-off explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median

from halfscope.torch.doctor.decisions import ORDERS, TO_WHOLE
from halfscope.torch.doctor.outcomes import Distance, Outcome, distances
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.tensors.elements import all_finite

_ITSELF = 0.01  # error by FP32's own round-off, from which on a gradient or a change is nothing but that
_ITSELF_AS_A_WHOLE = 0.3  # the same for a result, and for all gradients together: less leaves it a digit
_LEAST_OF_GRADIENTS = 0.02  # error of a gradient that harms a training
_LEAST_OF_SMALL, _SMALL = 0.1, 0.1  # error of a gradient whose norm is below this part of its share of all
_FEW_DECISIONS = 0.05
_NUMBERS, _GRADIENTS = 8, 24  # times u and the root of the calls, from which on round-off is amplified
_LEAST_AMPLIFIED = 0.2  # error of all gradients together that is an alarm: batches of a training differ by more
_LEFT = 0.5  # most of an amplified error that a remedy leaves: any change of the roundings draws another error
_MOST_CHANGE = 0.2
_STANDS = 0.5  # share of the elements to be moved that stay, which no noise explains: it moves them
_EXPLAINED = 4.0  # times what noise makes
_DOUBT = 4.0  # times more, where one noisy run is all that is known: now and then it draws a small error
_TYPICAL = 1 / 4  # share of an amplified error that the median of the noisy runs has too
_JUMP = 2.0  # times what noise explains that grows as it should: a sign that flipped, as before a ReLU
_GROWTH = 2.0  # ratio of amplified errors with 4 times the noise; what a flipped sign costs stays
_SATURATED = 0.3  # error that cannot grow much


@dataclass(frozen=True)
class Alarm:
    """A tensor of the outcome that the format spoils."""

    distance: Distance
    reason: str  # "not finite", "round-off", "amplified", "change", "decision"


@dataclass(frozen=True)
class Tolerance:
    """Floors that explain an error: at least `least`, at most the caps, since constants of -1e9 make floors huge."""

    least: float = 0.0
    numbers: float = 1.0
    gradients: float = 1.0
    amplified: float = 0.0  # error of all gradients together up to which amplified round-off is none

    def of(self, group: str, floor: float) -> float:
        return max(self.least, min(floor, self.gradients if group.startswith("gradient") else self.numbers))


ALARM = Tolerance(amplified=_LEAST_AMPLIFIED)
HEALED = Tolerance(0.0, 0.02, 0.1)
HEALED_AGAIN = Tolerance(0.01, 0.02, 0.1)  # on other inputs, whose floor is not known
_MOVED = 0.02  # change of FP32's outcome that another constant may make


@dataclass
class Floor:
    """Effect of round-off alone on each tensor of the outcome: FP32 runs whose results are multiplied by 1 + u r."""

    unit: float
    calls: int
    errors: dict[tuple[str, str], float] = field(default_factory=dict)
    errors_of_fp32: dict[tuple[str, str], float] = field(default_factory=dict)
    errors_of_changes: dict[tuple[str, str], float] = field(default_factory=dict)  # with the state in FP32
    of_each_run: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    has_near_ties: bool = False  # another decision, which noise makes now and then, is no amplified round-off
    of_large_noise: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    unharmed: frozenset[tuple[str, str]] = frozenset()  # tensors that the format alone leaves within round-off
    amplified: dict[tuple[str, str], float] = field(default_factory=dict)  # errors of the format alone
    # Places of the calls on whose results those at a place depend.
    upstream: Callable[[CallPlace], frozenset[CallPlace]] = lambda place: frozenset()

    def blank(self) -> Floor:
        """One of the same step that has learned nothing."""
        return Floor(self.unit, self.calls, unharmed=self.unharmed, upstream=self.upstream)

    def learn(self, noisy: Outcome, exact: Outcome) -> None:
        every = distances(noisy, exact)
        _learn(self.errors, every)
        _append(self.of_each_run, every)

    def learn_jumps(self, noisy: Outcome, exact: Outcome, units: float, of_changes: bool = False) -> None:
        """Noise of several units flips signs more often, and a flip costs the same.

        An error far above `units` times the median of the runs with noise of one unit is a flip's. of_changes: the
        state is kept in FP32, so that a flip explains its changes too.
        """
        _append(self.of_large_noise, distances(noisy, exact))
        for key, errors in self.of_large_noise.items():
            most = _JUMP * units * median(self.of_each_run.get(key, [0.0]))
            jump = max((error for error in errors if error > most), default=0.0)
            for known in (self.errors, *([self.errors_of_changes] if of_changes else [])):
                known[key] = max(known.get(key, 0.0), jump)

    def learn_fp32(self, noisy: Outcome, exact: Outcome) -> None:
        _learn(self.errors_of_fp32, distances(noisy, exact))

    def learn_changes(self, noisy: Outcome, exact: Outcome) -> None:
        """noisy: of a run whose state is kept in FP32, so that the round-off of the state itself explains nothing."""
        _learn(self.errors_of_changes, distances(noisy, exact))

    def of(self, distance: Distance) -> float:
        return self.errors.get((distance.group, distance.name), 0.0)

    def alarms(self, found: Outcome, exact: Outcome, tolerance: Tolerance = ALARM) -> list[Alarm]:
        return self._alarms(distances(found, exact), tolerance)

    def _alarms(self, every: list[Distance], tolerance: Tolerance) -> list[Alarm]:
        alarms = [
            Alarm(each, reason) for each in every if (reason := self._reason(each, self._tolerance(each, tolerance)))
        ]
        near = {each.place for each in every if self._is_near_tie(each)}
        alarms = [alarm for alarm in alarms if not near or not self._follows(alarm.distance, near)]
        if not any(map(self._is_harm, every)):
            alarms = [alarm for alarm in alarms if alarm.distance.group != "choice"]
        if any(alarm.distance.group == "gradient" for alarm in alarms):
            return alarms
        # The sum of gradients each of which is within its own floor is within it too, signs that flipped included.
        return [alarm for alarm in alarms if (alarm.distance.group, alarm.reason) != ("gradients", "round-off")]

    def _tolerance(self, each: Distance, tolerance: Tolerance) -> Tolerance:
        """The floor of a tensor that needs no healing has no cap."""
        is_unharmed = (each.group, each.name) in self.unharmed
        return replace(tolerance, numbers=ALARM.numbers, gradients=ALARM.gradients) if is_unharmed else tolerance

    def learn_harm(self, found: Outcome, exact: Outcome, alarms: list[Alarm]) -> None:
        """found: the format's run, with its alarms."""
        self.amplified = {
            (alarm.distance.group, alarm.distance.name): alarm.distance.error
            for alarm in alarms
            if alarm.reason == "amplified"
        }
        harmed = {(alarm.distance.group, alarm.distance.name) for alarm in alarms}
        every = [each for each in distances(found, exact) if (each.group, each.name) not in harmed]
        if any(alarm.distance.group == "gradients" for alarm in alarms):  # which each of them is part of
            every = [each for each in every if each.group != "gradient"]
        self.unharmed = frozenset((each.group, each.name) for each in every)

    def is_healed(self, found: Outcome, exact: Outcome, tolerance: Tolerance = HEALED) -> bool:
        """Whether a step with a remedy is FP32's but for round-off, and amplified round-off at most half of it."""
        every = distances(found, exact)
        return not self._alarms(every, tolerance) and all(
            each.error <= _LEFT * self.amplified.get((each.group, each.name), inf) for each in every
        )

    def keeps_fp32(self, changed: Outcome, exact: Outcome, moves: bool) -> bool:
        """Whether a change leaves FP32's own outcome. moves: it moves a constant, or drops a guard, which FP32 may see.

        Two runs with noise know FP32's round-off within some factor. That excuses little where the round-off is large:
        another function would pass for the same one.
        """
        for each in distances(changed, exact):
            key = (each.group, each.name)
            own = self.errors_of_fp32.get(key, 0.0)
            least = max(8 * own, 1e-6)
            if moves:
                least = max(min(least, _MOVED), 2 * own, 2 * self.unit, min(2 * self.errors.get(key, 0.0), _MOVED))
            if each.group != "choice" and (not each.is_finite or each.error > least):
                return False
        return True

    def _reason(self, each: Distance, tolerance: Tolerance) -> str:
        floor = tolerance.of(each.group, self.of(each))
        u, root = self.unit, self.calls**0.5
        if not each.is_finite:
            return "not finite"
        is_noise = self.is_noise(each)
        if each.group == "change":
            explained = _EXPLAINED * self.errors_of_changes.get((each.group, each.name), 0.0)
            least = _MOST_CHANGE if each.stays > _STANDS else max(_MOST_CHANGE, explained)
            return "change" if each.error > least and not is_noise else ""
        if each.group == "decision":
            return "decision" if each.error > (_FEW_DECISIONS if self.of(each) else 0.0) else ""
        is_gradient = each.group in ("gradient", "gradients")
        if each.group == "choice":
            return "decision" if self._has_lost_digits(each) and each.error > _FEW_DECISIONS else ""
        if is_noise:
            return ""
        least = _LEAST_OF_SMALL if each.share < _SMALL else _LEAST_OF_GRADIENTS
        doubt = _DOUBT if len(self.of_each_run.get((each.group, each.name), ())) == 1 else 1.0
        if each.error > doubt * _EXPLAINED * floor and each.error > max(6 * u, least if is_gradient else 0.0):
            return "round-off"
        times = {"number": _NUMBERS, "gradients": _GRADIENTS}.get(each.group)
        if times is None:
            return ""
        most = max(times * u * root, tolerance.amplified if is_gradient else 0.0)
        return "amplified" if min(each.error, self._typical(each) / _TYPICAL) > doubt * most else ""

    def _has_lost_digits(self, choice: Distance) -> bool:
        return choice.lost > _NUMBERS * self.unit * self.calls**0.5

    def _is_near_tie(self, each: Distance) -> bool:
        """Whether numbers that have their digits are put in another order, or rounded to another whole number."""
        is_near = each.place is not None and each.place.name in (*ORDERS, *TO_WHOLE) and each.error > 0
        return is_near and not self._has_lost_digits(each)

    def _follows(self, each: Distance, near: set[CallPlace | None]) -> bool:
        """Whether a choice takes what others, near ties, made: its numbers are those of other elements, or 1 apart."""
        return each.group == "choice" and each.place is not None and not near.isdisjoint(self.upstream(each.place))

    def is_noise(self, each: Distance) -> bool:
        """Whether a tensor is nothing but round-off in FP32 too."""
        most = _ITSELF_AS_A_WHOLE if each.group in ("number", "gradients") else _ITSELF
        return self.errors_of_fp32.get((each.group, each.name), 0.0) > most

    def _is_harm(self, each: Distance) -> bool:
        """Whether a number, or all gradients, are farther from FP32's than a healed step's."""
        most = {"number": HEALED.numbers, "gradients": HEALED.gradients}.get(each.group, inf)
        return not each.is_finite or (each.error > most and not self.is_noise(each))

    def _typical(self, each: Distance) -> float:
        """The median of the noisy runs, 0 where more noise does not raise it: a sign that flips does not grow."""
        key = (each.group, each.name)
        errors = sorted(self.of_each_run.get(key, [0.0]))
        typical = errors[len(errors) // 4] if self.has_near_ties else median(errors)
        if key not in self.of_large_noise:
            return typical
        grows = median(self.of_large_noise[key]) > min(_GROWTH * typical, _SATURATED)
        return typical if grows else 0.0


def _append(runs: dict[tuple[str, str], list[float]], every: list[Distance]) -> None:
    for each in every:
        runs.setdefault((each.group, each.name), []).append(each.error)


def _learn(errors: dict[tuple[str, str], float], every: list[Distance]) -> None:
    for each in every:
        key = (each.group, each.name)
        errors[key] = max(errors.get(key, 0.0), each.error)


def is_finite(outcome: Outcome) -> bool:
    """Whether loss, results, gradients and changes are finite."""
    tensors = [*outcome.numbers.values(), *outcome.gradients.values(), *outcome.changes.values()]
    return all(map(all_finite, tensors))

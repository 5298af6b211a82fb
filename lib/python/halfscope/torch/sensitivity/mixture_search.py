"""Search for a mixture of formats: an integer program over scores, scores beside its solution, and trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from halfscope.torch.sensitivity.integer_program import Choices
from halfscope.torch.sensitivity.measurement import Subject, drawn_scores, first_order
from halfscope.torch.sensitivity.mixture_trials import ByGroup, Tried, tried, unit_formats
from halfscope.torch.sensitivity.unit_scores import Score

ROUNDS = 3  # scores beside the mixture, at most
TRIED_UNITS = 10  # whose formats are tried one by one
LIMITS = 6  # limits on predicted nats, until a trial is within `max_kl`

Scores = dict[tuple[str, str], Score]


@dataclass
class Search:
    """Candidates of a model, and the mixture that trials have found best so far."""

    subject: Subject
    scores: Scores
    groups: tuple[str, ...]  # that are given a format
    prices: Mapping[str, float] = field(default_factory=dict)  # an element's, by format; its bits unless given
    trials: int = 0
    rounds: int = 0  # times that scores were taken beside a mixture
    _known: dict[tuple[tuple[str, str], ...], Tried] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prices = self.prices or {name: format.bits for name, format in self.subject.formats.items()}

    def choices(self, nats: Callable[[str, str], float]) -> Choices:
        """Formats of each group that are finite there, with their prices."""
        formats = {
            group: [format for format in self.subject.formats if (group, format) in self.scores]
            for group in self.groups
        }
        return Choices(
            {group: {format: nats(group, format) for format in own} for group, own in formats.items()},
            {
                group: {format: self.prices[format] * self.subject.elements(group) for format in own}
                for group, own in formats.items()
            },
        )

    def predicted(self) -> Choices:
        """With the scores of the units alone."""
        return self.choices(lambda group, format: self.scores[group, format].nats)

    @property
    def elements(self) -> int:
        """Weights that have a format."""
        return sum(self.subject.elements(group) for group in self.groups)

    def trial(self, *mixtures: ByGroup) -> list[Tried]:
        """KL on the calibration batches; a mixture is tried once."""
        keys = [tuple(sorted(mixture.items())) for mixture in mixtures]
        fresh = {key: dict(key) for key in keys if key not in self._known}
        self.trials += len(fresh)
        self._known.update(zip(fresh, tried(self.subject, list(fresh.values())) if fresh else []))
        return [self._known[key] for key in keys]

    def within_price(self, price: float) -> dict[str, str] | None:
        """The best mixture of at most such a price per element; None where no mixture has so small a one."""
        limit = price * self.elements
        mixture = self.predicted().solve(limit)
        if mixture is None:
            return None
        for _ in range(ROUNDS if isfinite(self.trial(mixture)[0].mean) else 0):
            better = self._kept(mixture, self._beside(mixture).solve(limit))
            if better is None:
                break
            mixture = better
        return self._kept(mixture, self._tried_singly(mixture).solve(limit)) or mixture

    def within_nats(self, most: float) -> dict[str, str] | None:
        """The cheapest mixture whose trial is within so many nats per term; None where none was found."""
        choices, limit = self.predicted(), most
        found: list[dict[str, str]] = []
        for _ in range(LIMITS):
            mixture = choices.solve(limit, on="nats")
            if mixture is None:
                break
            kl = self.trial(mixture)[0].mean
            found += [mixture] if kl <= most else []
            limit *= min(max(most / kl if kl > 0 else 2.0, 0.25), 2.0)
        best = choices.solve(self.elements * max(self.prices.values()))
        found += [best] if not found and best is not None and self.trial(best)[0].mean <= most else []
        return min(found, key=lambda mixture: choices.total(mixture, "prices"), default=None)

    def _kept(self, mixture: dict[str, str], other: dict[str, str] | None) -> dict[str, str] | None:
        """Another mixture whose trial has less KL."""
        if other is None or other == mixture:
            return None
        before, after = self.trial(mixture, other)
        return other if after.mean < before.mean else None

    def _beside(self, mixture: dict[str, str]) -> Choices:
        """Change of the KL by each format, beside a mixture: to second order."""
        subject, formats = self.subject, unit_formats(self.subject, mixture)
        self.rounds += 1
        first, measured = first_order(subject, formats), drawn_scores(subject, formats)
        second = measured.scores(tuple(subject.formats), subject.seed)
        changes = {key: first[key] + score.nats for key, score in second.items()}
        changes |= {(subject.group_of(unit), format): inf for unit, format in measured.failures}
        finite = _finite(changes)
        return self.choices(lambda *key: finite[key])

    def _tried_singly(self, mixture: dict[str, str]) -> Choices:
        """The units with the largest scores in the mixture get the true changes of its KL."""
        worst = sorted(self.groups, key=lambda group: -self.scores[group, mixture[group]].nats)[:TRIED_UNITS]
        keys = [(group, format) for group in worst for format in self.subject.formats if (group, format) in self.scores]
        before, *others = self.trial(mixture, *({**mixture, group: format} for group, format in keys))
        base = before.mean if isfinite(before.mean) else 0.0
        changes = {key: score.nats - self.scores[key[0], mixture[key[0]]].nats
                   for key, score in self.scores.items() if key[0] in mixture}  # fmt: skip
        changes |= {key: each.mean - base for key, each in zip(keys, others)}
        finite = _finite(changes)
        return self.choices(lambda *key: finite[key])


def _finite(changes: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Infinite ones become larger than all others together: the last choice of an integer program."""
    most = 1e-12 + 2 * sum(abs(change) for change in changes.values() if isfinite(change))
    return {key: change if isfinite(change) else most for key, change in changes.items()}

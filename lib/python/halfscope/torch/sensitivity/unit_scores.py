"""Scores of units in nats per term of the loss, with bootstrap intervals over sequences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfscope.torch.sensitivity.samples import Floats, GroupSamples

ENOUGH_SEQUENCES = 100  # from which on the sequence form has less noise than the token form
FEWEST_SAMPLES = 8  # for an interval
RESAMPLES = 1000
_MOST = 2**23  # elements of the resampling, from which on it has fewer rows
SHARED = 4.0  # sequence form over token form from which on tokens err together


@dataclass(frozen=True)
class Score:
    """Predicted KL of a unit alone in a format, in nats per term of the loss."""

    nats: float
    low: float  # 95 % interval over sequences; NaN for fewer than FEWEST_SAMPLES
    high: float
    sequence: float  # the sequence form
    token: float  # the token form
    samples: int

    @property
    def form(self) -> str:
        return "sequence" if self.samples >= ENOUGH_SEQUENCES else "token"

    @property
    def is_shared_by_tokens(self) -> bool:
        """Whether the errors of tokens add up beyond what one has."""
        return self.samples >= ENOUGH_SEQUENCES and self.sequence > SHARED * self.token > 0


def scores_of(group: GroupSamples, seed: int) -> list[Score]:
    """A score for each format."""
    sequence, token = np.concatenate(group.sequence) ** 2, np.concatenate(group.token)
    terms = np.concatenate(group.terms)
    count, total = len(terms), 2 * terms.sum()
    low, high = intervals(sequence if count >= ENOUGH_SEQUENCES else token, 2 * terms, seed)
    forms = zip(sequence.sum(0) / total, token.sum(0) / total, low, high)
    return [
        Score(float(by_sequence if count >= ENOUGH_SEQUENCES else by_token), float(least), float(most),
              float(by_sequence), float(by_token), count)
        for by_sequence, by_token, least, most in forms
    ]  # fmt: skip


def intervals(sums: Floats, terms: Floats, seed: int) -> tuple[Floats, Floats]:
    """95 % intervals of sums (samples, columns) over terms (samples), both resampled alike."""
    count = len(terms)
    if count < FEWEST_SAMPLES:
        nothing = np.full(sums.shape[1], np.nan)
        return nothing, nothing
    draws = np.random.default_rng(seed).multinomial(
        count, np.full(count, 1 / count), max(200, min(RESAMPLES, _MOST // count))
    )
    ratios = (draws @ sums) / (draws @ terms)[:, None]
    low, high = np.quantile(ratios, (0.025, 0.975), axis=0)
    return low, high

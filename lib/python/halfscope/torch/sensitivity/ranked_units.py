"""Result of `sensitivity`: scores of units and formats, and their report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from halfscope.reporting import Finding, Report, Reported
from halfscope.results.dataframes import frame
from halfscope.text_tables import aligned
from halfscope.torch.sensitivity.choosing import Limit, choose
from halfscope.torch.sensitivity.format_mixture import FormatMixture
from halfscope.torch.sensitivity.measurement import Measured, Subject
from halfscope.torch.sensitivity.outlier_channels import OutlierChannels, outlier_channels
from halfscope.torch.sensitivity.unit_scores import FEWEST_SAMPLES, Score
from halfscope.torch.words import called, counted, listed, percent

if TYPE_CHECKING:
    import pandas as pd

ROWS = 30  # rows of the table
MOST = 0.5  # share of the cost that the named units have
QUADRATIC = 0.1  # nats, from which on the second order alone is rough


class Sensitivity(Reported):
    """Predicted KL from FP32 of each unit alone in each format, in nats per term of the loss."""

    def __init__(self, subject: Subject, measured: Measured) -> None:
        self._subject, self._measured = subject, measured
        self.scores: dict[tuple[str, str], Score] = measured.scores(self.formats, subject.seed)
        self.not_finite: dict[tuple[str, str], str] = self._failures()
        for key in self.not_finite:
            self.scores.pop(key, None)

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(self._subject.formats)

    @property
    def units(self) -> tuple[str, ...]:
        """Units in the order of their first call; a group that shares a format has one name, as "0.q + k + v"."""
        return tuple(self._subject.groups)

    def _failures(self) -> dict[tuple[str, str], str]:
        """By group and format, what is not finite."""
        return {
            (self._subject.group_of(unit), format): f"of '{called(unit)}' {words}"
            for (unit, format), words in self._measured.failures.items()
        }

    def ranked(self, format: str) -> list[tuple[str, Score]]:
        """Units with their scores in a format, the most sensitive first. Raises ValueError for another format."""
        if format not in self.formats:
            raise ValueError(f"ranked: format {format!r}; give one of {', '.join(self.formats)}")
        found = [(unit, self.scores[unit, format]) for unit in self.units if (unit, format) in self.scores]
        return sorted(found, key=lambda each: -each[1].nats)

    def choose(
        self,
        bits: float | None = None,
        *,
        bytes: float | None = None,
        max_kl: float | None = None,
        time: float | None = None,
        speeds: Mapping[str, float] | None = None,
        held_out: Iterable[Any] | None = None,
    ) -> FormatMixture:
        """The format of each unit with the least KL from FP32 under a limit, as exceptions of `emulate`.

        bits: per weight of the units, scales included, on average; an integer program over the scores. Up to three
            times the scores are taken beside the mixture, and the ten units with the largest score get true trials in
            it; a change is kept if the trial's KL falls on the calibration batches.
        bytes: of the weights of all units instead, scales of blocks included.
        max_kl: nats per term of the loss instead; the fewest bits whose trial is within them.
        time: of the products with the units' weights instead, over their time at a speed of 1, as 0.4. A product's time
            is the number of its weights over the speed of its format, which `speeds` tells: {"nvfp4": 4, "bf16": 1}.
        held_out: other batches, which judge the mixture and uniform formats of no more bits, or time; without them the
            calibration batches do.

        Embeddings stay FP32, and are not in the budget: `emulate` has no rule for them. Raises ValueError for a limit
        that no mixture meets; ImportError without SciPy.
        """
        return choose(self._subject, self.scores, Limit(bits, bytes, max_kl, time, speeds), held_out)

    def outlier_channels(self, format: str | None = None) -> OutlierChannels:
        """For each operand the channel with the largest maximum, and what it costs the others in a format.

        A channel is an index of the summed axis: an input of the layer, in the activation and in the weight. Channels
        from 4 times the median channel's maximum on are the outliers. Errors of the others with them and without them
        give the cost, by which operands are ranked: an error over the norm of the whole is small where one channel has
        the norm. The same errors with one FP32 scale per row, per block of 32 and per tensor stand beside them; of a
        row of more than 4096 numbers each such part has its own.

        format: one of the formats, without static scales; the narrowest unless given. Two forward passes for each
        batch in evaluation mode; the model and all random numbers are as before afterwards.

        Raises ValueError for another format and one that mixes channels, and for operands that are not finite in FP32.
        """
        return outlier_channels(self._subject, self._narrowest(is_static=False) if format is None else format)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each unit and format, with the numbers of its score. Raises ImportError without pandas."""
        columns = ["nats", "low", "high", "sequence", "token", "samples"]
        rows = [[*key, *(getattr(score, name) for name in columns)] for key, score in self.scores.items()]
        return frame(rows, columns=["unit", "format", *columns]).set_index(["unit", "format"])

    @property
    def report(self) -> Report:
        """The units that a narrow format costs most, tensors that are not finite, and the table."""
        findings = (*self._rank(), *self._not_finite())
        return Report("sensitivity", findings, about=self._about(), table=self.table(),
                      text="" if findings else "No format changes a unit's result.")  # fmt: skip

    def _narrowest(self, is_static: bool = True) -> str:
        """Where several have its bits, one in which the most units are finite. is_static: static scales too."""
        count, formats = Counter(format for _, format in self.scores), self._subject.formats
        known = [name for name in self.formats if is_static or not formats[name].is_static] or self.formats
        return min(known, key=lambda name: (formats[name].bits, -count[name]))

    def _rank(self) -> list[Finding]:
        format = self._narrowest()
        ranked = self.ranked(format)
        total = math.fsum(score.nats for _, score in ranked)
        if not total:
            return []
        most, share = _first(ranked, total)
        change = (
            f"Choose formats with .choose(bits=...): {listed(map(called, most))} {'has' if len(most) == 1 else 'have'} "
            f"{percent(share)} of the {total:.3g} nats per term that {format} costs, units added up"
        )
        return [Finding("rank", change, self._why(ranked[0], format), self._sure(ranked[0]), about=most)]

    def _why(self, first: tuple[str, Score], format: str) -> str:
        name, score = first
        text = f"the error of '{called(name)}' in {format} moves the output by {score.nats:.3g} nats"
        return f"{text}; tokens of a sequence err together" if score.is_shared_by_tokens else text

    def _sure(self, first: tuple[str, Score]) -> str:
        score = first[1]
        if math.isnan(score.low):
            interval = f"no interval below {FEWEST_SAMPLES} samples"
        else:
            interval = f"95 % interval {score.low:.3g} to {score.high:.3g}"
        return f"predicted, not tried; {interval}, over {counted(score.samples, 'sample')}"

    def _not_finite(self) -> list[Finding]:
        return [
            Finding(
                "not finite", f"Keep {called(unit)} out of {format}: not finite {words}", sure="computed", about=unit
            )
            for (unit, format), words in self.not_finite.items()
        ]

    def table(self) -> str:
        """Nats by unit and format, the most sensitive unit first; a dash where a tensor is not finite."""
        ranked = sorted(self.units, key=lambda unit: -max(self._nats(unit), default=0))
        rows = [("unit", "weights", *self.formats)]
        rows += [(called(unit), f"{self._subject.elements(unit)}", *self._cells(unit)) for unit in ranked[:ROWS]]
        rest = len(ranked) - ROWS
        return f"{aligned(rows)}\nand {counted(rest, 'unit')} with less" if rest > 0 else aligned(rows)

    def _nats(self, unit: str) -> list[float]:
        return [self.scores[unit, format].nats for format in self.formats if (unit, format) in self.scores]

    def _cells(self, unit: str) -> list[str]:
        found = [self.scores.get((unit, format)) for format in self.formats]
        return ["-" if score is None else f"{score.nats:.2e}" for score in found]

    def _about(self) -> str:
        subject, terms = self._subject, self._measured.terms
        words = [
            f"Looked at: {counted(len(self.units), 'unit')} in {counted(len(self.formats), 'format')}, "
            f"{counted(len(subject.calibration.batches), 'batch')}, {counted(len(terms), 'sequence')}, "
            f"{counted(int(terms.sum()), 'term')} of the loss; {subject.calibration.family.words}, seed {subject.seed};"
            " evaluation mode."
        ]
        uncovered = subject.units.uncovered(subject.calibration.model)
        rough = [unit for unit in self.units if max(self._nats(unit), default=0) > QUADRATIC]
        if rough:
            words.append(f"Rough, since beyond the second order, are sizes above {QUADRATIC} nats: of {listed(rough)}.")
        without = sorted(subject.units.without_gradient)
        if without:
            words.append(f"Not scored, since no gradient reaches them: {listed(without)}.")
        if uncovered:
            words.append(f"Not scored, since their products are not known here: {listed(uncovered)}.")
        return " ".join(words)


def _first(ranked: list[tuple[str, Score]], total: float) -> tuple[list[str], float]:
    """The fewest units that have most of the cost, and their share."""
    names, share = [], 0.0
    for name, score in ranked:
        names.append(name)
        share += score.nats / total
        if share >= MOST:
            break
    return names, share

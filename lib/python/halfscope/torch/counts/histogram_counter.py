"""Histograms as counts of a watched training: of all tensors, and of the updates that a format loses."""

from __future__ import annotations

import numpy as np
import torch

from halfscope import Histogram, UpdateCounters, _core
from halfscope.formats import describe
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.counts.histogram_words import Circumstances, verdict
from halfscope.torch.counts.histograms import Observations, StalledWeights
from halfscope.torch.counts.ranks import Ranks
from halfscope.torch.counts.totals import Totals
from halfscope.torch.counts.weights import Weights
from halfscope.torch.tensors.elements import FORMATS

_FORMATS = (*FORMATS.values(), "another")
_COUNTS = len(Histogram().numbers()) - 1  # the last one is max_abs, which does not add up


class HistogramCounter:
    """Counter for every format of elements."""

    knows_scale = True
    unseen = ""

    def __init__(self, format: object) -> None:
        """Raises TypeError and ValueError for what is no format."""
        if not isinstance(format, str):
            raise TypeError(f"watch: format={format!r}; give a name, such as 'bf16', 'fp8_e4m3' or 'e5m7'")
        try:
            _core.code_bits(format)
            self.format: str = describe(format)["format"]  # its own name: fp16 for e5m10
        except ValueError as error:
            raise ValueError(f"watch: format={format!r}: {error}") from None

    @staticmethod
    def takes(format: object) -> bool:
        """Every format: others are asked first."""
        del format
        return True

    def observe(self) -> Observations:
        return Observations(self.format)

    def weights(self, owned: dict[str, torch.nn.Parameter]) -> Weights:
        return Weights(owned)

    def totals(self) -> Totals:
        return Totals(self.format)

    def words(self, totals: Totals, about: Circumstances) -> str:
        return verdict(totals, about)

    def merge(self, seen: Observations, ranks: Ranks, scale: float) -> None:
        owners = ranks.owners_of_states(seen.histograms)
        keys = [*ranks.keys, *owners]
        histograms = np.zeros((len(keys), _COUNTS + ranks.size), np.int64)
        for row, key in zip(histograms, keys):
            if key in seen.histograms and ranks.counts(key, owners.get(key, 0)):
                numbers = seen.histograms[key].numbers()
                row[:_COUNTS] = numbers[:_COUNTS]
                row[_COUNTS + ranks.rank] = numbers[-1] << 8 | _code(seen.formats.get(key, "fp32"))
        updates = np.zeros((len(ranks.parameters), 7, ranks.size), np.int64)
        for block, name in zip(updates, ranks.parameters):
            if ranks.is_ours(("update_ratio", name)):
                block[:, ranks.rank] = _update_numbers(seen, name)
        histograms, updates = ranks.add_up(histograms, updates)
        for row, key in zip(histograms, keys):
            _put_histogram(seen, key, row, scale)
        seen.updates, seen.stalled = {}, {}
        for block, name in zip(updates, ranks.parameters):
            _put_updates(seen, name, block)


def _code(format: str) -> int:
    return 1 + _FORMATS.index(format if format in _FORMATS else "another")


def _put_histogram(seen: Observations, key: tuple[str, str], row: np.ndarray, scale: float) -> None:
    told = row[_COUNTS:][row[_COUNTS:] != 0]
    if not told.size:
        seen.histograms.pop(key, None)
        return
    numbers = np.append(row[:_COUNTS], (told >> 8).max())
    seen.histograms[key] = Histogram.from_numbers(numbers, format=seen.format)
    seen.scales.setdefault(key, scale if key[0] in GRADIENTS else 1.0)
    seen.formats.setdefault(key, _FORMATS[(told[0] & 255) - 1])


def _update_numbers(seen: Observations, name: str) -> list[int]:
    numbers = [0] * 7
    if name in seen.updates:
        found = seen.updates[name]
        ratio = np.float64(found.applied_over_intended).view(np.int64)
        numbers[:4] = [found.elements, found.nonzero, found.lost, int(ratio)]
    if name in seen.stalled:
        stalled = seen.stalled[name]
        numbers[4:] = [_code(stalled.format), stalled.with_gradient, stalled.unmoved]
    return numbers


def _put_updates(seen: Observations, name: str, block: np.ndarray) -> None:
    for elements, nonzero, lost, ratio, code, with_gradient, unmoved in block.T:
        if elements:
            found = UpdateCounters(
                elements=int(elements), nonzero=int(nonzero), lost=int(lost),
                applied_over_intended=float(np.int64(ratio).view(np.float64)),
            )  # fmt: skip
            seen.updates[name] = seen.updates[name] + found if name in seen.updates else found
        if code:
            known = seen.stalled.get(name, StalledWeights("", 0, 0))
            seen.stalled[name] = StalledWeights(
                _FORMATS[code - 1], known.with_gradient + int(with_gradient), known.unmoved + int(unmoved)
            )

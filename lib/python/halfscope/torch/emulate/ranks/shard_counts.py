"""Counts of disjoint shards, added up over the ranks of a sharded training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from halfscope import Histogram, UpdateCounters
from halfscope.torch.counts.histograms import Observations, StalledWeights
from halfscope.torch.emulate.book import Book, CastTotals, ShardCounts, is_of_shards

_Updates = tuple[int, int, int, float]  # as UpdateCounters has them
_Histogram = tuple[np.ndarray, float, str]  # numbers, loss scale, format of the tensor


@dataclass(frozen=True)
class _RankCounts:
    """Counts of a step that a rank tells the others."""

    casts: dict[tuple[str, str], CastTotals]
    updates: dict[str, _Updates]  # updates of weights that are stored in a narrow format
    watched: dict[str, _Updates] = field(default_factory=dict)  # updates of other weights, for the histograms' format
    histograms: dict[tuple[str, str], _Histogram] = field(default_factory=dict)
    stalled: dict[str, StalledWeights] = field(default_factory=dict)


def add_up(book: Book, group: Any) -> None:
    """Puts the sums over all ranks in the place of what this rank has counted of its shards, at a step's end.

    Rounded weights, which all ranks have alike, and what each rank computes of its own batch stay this rank's.
    """
    shards, seen = book.shards, book.seen
    assert shards is not None
    told: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(told, _tell(shards, seen), group=group)
    with book.for_all_ranks():
        for rank in told:
            for key, total in rank.casts.items():
                book.totals.setdefault(key, CastTotals(total.quantizer)).add(total)
        if seen is not None:
            _put(seen, told)
        for name, found in _sums(rank.updates for rank in told).items():
            book.add_update(name, found)


def _tell(shards: ShardCounts, seen: Observations | None) -> _RankCounts:
    updates = _numbers(shards.updates)
    if seen is None:
        return _RankCounts(shards.casts, updates)

    def is_ours(name: str) -> bool:
        return shards.is_first or name in shards.sharded

    histograms = {
        (role, name): (found.numbers(), seen.scales[role, name], seen.formats.get((role, name), "fp32"))
        for (role, name), found in seen.histograms.items()
        if is_of_shards(role, name) and (role != "update_ratio" or is_ours(name))
    }
    watched = {name: found for name, found in seen.updates.items() if is_ours(name)}
    stalled = {name: found for name, found in seen.stalled.items() if is_ours(name)}
    return _RankCounts(shards.casts, updates, _numbers(watched), histograms, stalled)


def _put(seen: Observations, told: list[_RankCounts]) -> None:
    for key in [key for key in seen.histograms if is_of_shards(*key)]:
        del seen.histograms[key]
    seen.updates, seen.stalled = _sums(rank.watched for rank in told), {}
    for rank in told:
        for (role, tensor), (numbers, scale, format) in rank.histograms.items():
            seen.add(role, tensor, Histogram.from_numbers(numbers, format=seen.format), scale)
            seen.formats[role, tensor] = format
        for name, stalled in rank.stalled.items():
            known = seen.stalled.get(name, StalledWeights(stalled.format, 0, 0))
            seen.stalled[name] = StalledWeights(
                known.format, known.with_gradient + stalled.with_gradient, known.unmoved + stalled.unmoved
            )


def _numbers(updates: dict[str, UpdateCounters]) -> dict[str, _Updates]:
    return {
        name: (found.elements, found.nonzero, found.lost, found.applied_over_intended)
        for name, found in updates.items()
    }


def _sums(ranks: Iterable[dict[str, _Updates]]) -> dict[str, UpdateCounters]:
    sums: dict[str, UpdateCounters] = {}
    for updates in ranks:
        for name, (elements, nonzero, lost, ratio) in updates.items():
            found = UpdateCounters(elements=elements, nonzero=nonzero, lost=lost, applied_over_intended=ratio)
            sums[name] = sums[name] + found if name in sums else found
    return sums

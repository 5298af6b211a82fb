"""Counts of all ranks of a distributed training, added up once per watched step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from halfscope import BlockCounts, Histogram, UpdateCounters
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.counts.blocks import BLOCK_ROLES, WEIGHT, BlockObservations, Seen
from halfscope.torch.counts.histograms import AT_OPTIMIZER, OPTIMIZER_STATE, Observations, Stalled
from halfscope.torch.private import default_store, is_of_fully_shard
from halfscope.torch.tensors.elements import FORMATS

LAYER_ROLES = ("activation", "activation_gradient")
PARAMETER_ROLES = ("weight_gradient", AT_OPTIMIZER, "update_ratio")
_FORMATS = (*FORMATS.values(), "another")
_COUNTS = len(Histogram().numbers()) - 1  # the last one is max_abs, which does not add up
_BLOCK_COUNTS = len(BlockCounts().numbers())
_PATIENCE = timedelta(seconds=60)
_meetings = 0


def is_fully_sharded(model: torch.nn.Module) -> bool:
    """Whether fully_shard (FSDP2) was called on the model or on a module of it."""
    return any(is_of_fully_shard(module) for module in model.modules())


class Alone:
    """One process."""

    size, first = 1, True

    def merge(self, seen: Seen, scale: float) -> None:
        """Nothing: the counts are whole."""


class Counted(NamedTuple):
    """Roles that every rank counts, and the format for which it does."""

    layers: list[str]
    parameters: dict[str, torch.nn.Parameter]
    format: str = "fp16"
    optimizer_state: bool = False


class Ranks:
    """The processes of a group, each of which watches its own copy, or its own shards, of the same model."""

    def __init__(self, group: Any, counted: Counted) -> None:
        """Raises ValueError where another rank does not watch, or watches a model with other names."""
        self._group = group
        self.size, self._rank = dist.get_world_size(group), dist.get_rank(group)
        self.first = self._rank == 0
        self._keys = [(role, name) for role in LAYER_ROLES for name in counted.layers]
        self._keys += [(role, name) for role in PARAMETER_ROLES for name in counted.parameters]
        self._parameters, self._format = counted.parameters, counted.format
        self._has_states = counted.optimizer_state
        self._meet()

    def _meet(self) -> None:
        """All ranks say in the store what they watch: one that waits for a rank that never comes says so."""
        global _meetings
        _meetings += 1
        members = _members(self._group)
        watched = (self._keys, self._format, self._has_states)
        digest = hashlib.sha256(repr(watched).encode()).hexdigest()
        store = default_store()
        keys = [f"halfscope/{members}/{_meetings}/{rank}" for rank in members]
        store.set(keys[self._rank], digest)
        try:
            store.wait(keys, _PATIENCE)
        except RuntimeError:
            raise ValueError(
                f"watch: not all {self.size} ranks watch this model; call watch on every rank, or give ranks='alone'"
            ) from None
        if any(store.get(key).decode() != digest for key in keys):
            raise ValueError("watch: the ranks watch other layers, or for other formats or roles; give ranks='alone'")

    def merge(self, seen: Seen, scale: float) -> None:
        """Puts the counts of all ranks in the place of this rank's: one all_reduce. `scale` is the step's.

        Counts of layers add up, and those of shards (DTensors). Copies of a parameter have the same gradients and
        updates on every rank: the first rank's count, and of an optimizer's state the first one's that has it.
        """
        if isinstance(seen, BlockObservations):
            self._merge_blocks(seen)
            return
        owners = self._owners_of_states(seen.histograms)
        keys = [*self._keys, *owners]
        histograms = np.zeros((len(keys), _COUNTS + self.size), np.int64)
        for row, key in zip(histograms, keys):
            if key in seen.histograms and (key[0] in LAYER_ROLES or self._is_ours(key, owners.get(key, 0))):
                numbers = seen.histograms[key].numbers()
                row[:_COUNTS] = numbers[:_COUNTS]
                row[_COUNTS + self._rank] = numbers[-1] << 8 | _code(seen.formats.get(key, "fp32"))
        updates = np.zeros((len(self._parameters), 7, self.size), np.int64)
        for block, name in zip(updates, self._parameters):
            if self._is_ours(("update_ratio", name)):
                block[:, self._rank] = _update_numbers(seen, name)
        histograms, updates = self._add_up(histograms, updates)
        for row, key in zip(histograms, keys):
            _put_histogram(seen, key, row, scale)
        seen.updates, seen.stalled = {}, {}
        for block, name in zip(updates, self._parameters):
            _put_updates(seen, name, block)

    def _merge_blocks(self, seen: BlockObservations) -> None:
        owners = self._owners_of_states(seen.counts)
        weights = [(WEIGHT, name) for name in self._parameters]
        keys = [*(key for key in self._keys if key[0] in BLOCK_ROLES), *weights, *owners]
        numbers = np.zeros((len(keys), _BLOCK_COUNTS), np.int64)
        for row, key in zip(numbers, keys):
            if key in seen.counts and (key[0] in LAYER_ROLES or self._is_ours(key, owners.get(key, 0))):
                row[:] = seen.counts[key].numbers()
        (numbers,) = self._add_up(numbers)
        seen.counts = {key: BlockCounts.from_numbers(row) for key, row in zip(keys, numbers) if row.any()}

    def _owners_of_states(self, found: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """By role and tensor, in the same order everywhere, the first rank that has it; an optimizer names its states.

        Some optimizers keep a parameter's state on one rank only.
        """
        if not self._has_states:
            return {}
        names: list[list[str]] = [[] for _ in range(self.size)]
        own = [name for role, name in found if role == OPTIMIZER_STATE]
        dist.all_gather_object(names, own, group=self._group)
        owners = {name: rank for rank in reversed(range(self.size)) for name in names[rank]}
        return {(OPTIMIZER_STATE, name): owners[name] for name in sorted(owners)}

    def _is_ours(self, key: tuple[str, str], owner: int = 0) -> bool:
        """Whether this rank's elements of it count: those of a shard, or of the owner's of several copies."""
        role, name = key
        given: Any = self._parameters[name.rpartition(".")[0] if role == OPTIMIZER_STATE else name]
        if not hasattr(given, "device_mesh"):
            return self._rank == owner
        place = given.device_mesh.get_coordinate()
        return place is not None and all(
            at == 0 for at, placement in zip(place, given.placements) if placement.is_replicate()
        )

    def _add_up(self, *tables: np.ndarray) -> list[np.ndarray]:
        flat = torch.from_numpy(np.concatenate([table.reshape(-1) for table in tables]))
        if dist.get_backend(self._group) == "nccl":
            flat = flat.cuda()
        dist.all_reduce(flat, group=self._group)
        parts = np.split(flat.cpu().numpy(), np.cumsum([table.size for table in tables])[:-1])
        return [part.reshape(table.shape) for part, table in zip(parts, tables)]


def ranks_of(given: Any, counted: Counted) -> Alone | Ranks:
    """By watch's argument `ranks`: "together", "alone" or a process group."""
    if isinstance(given, str) and given not in ("together", "alone"):
        raise ValueError(f"watch: ranks={given!r}; give 'together', 'alone' or a process group")
    if given == "alone" or not (dist.is_available() and dist.is_initialized()):
        return Alone()
    group = None if given == "together" else given
    return Ranks(group, counted) if dist.get_world_size(group) > 1 else Alone()


def _members(group: Any) -> list[int]:
    return list(range(dist.get_world_size())) if group is None else dist.get_process_group_ranks(group)


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
            known = seen.stalled.get(name, Stalled("", 0, 0))
            seen.stalled[name] = Stalled(
                _FORMATS[code - 1], known.with_gradient + int(with_gradient), known.unmoved + int(unmoved)
            )

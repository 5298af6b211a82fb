"""Counts of all ranks of a distributed training, added up once per watched step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from halfscope.torch.counts.counter import Counter, StepCounts
from halfscope.torch.counts.histograms import AT_OPTIMIZER, OPTIMIZER_STATE
from halfscope.torch.private import default_store, groups_of_fully_shard, is_gathered_plain, is_of_fully_shard

LAYER_ROLES = ("activation", "activation_gradient")
PARAMETER_ROLES = ("weight_gradient", AT_OPTIMIZER, "update_ratio")
_PATIENCE = timedelta(seconds=60)
_meetings = 0


def is_fully_sharded(model: torch.nn.Module) -> bool:
    """Whether fully_shard (FSDP2) was called on the model or on a module of it."""
    return any(is_of_fully_shard(module) for module in model.modules())


def dtensor_in_use(model: torch.nn.Module) -> str | None:
    """Name of a parameter that is a DTensor in operations too; fully_shard makes plain tensors of its own."""
    groups = groups_of_fully_shard(model)
    plain = {id(given.sharded_param) for group in groups for given in group.fsdp_params if is_gathered_plain(given)}
    named = model.named_parameters()
    return next((name for name, each in named if hasattr(each, "to_local") and id(each) not in plain), None)


class Alone:
    """One process."""

    size, first = 1, True

    def merge(self, seen: StepCounts, scale: float) -> None:
        """Nothing: the counts are whole."""


class CountedRoles(NamedTuple):
    """Roles that every rank counts, and the way in which it does."""

    layers: list[str]
    parameters: dict[str, torch.nn.Parameter]
    counter: Counter
    optimizer_state: bool = False


class Ranks:
    """The processes of a group, each of which watches its own copy, or its own shards, of the same model."""

    def __init__(self, group: Any, counted: CountedRoles) -> None:
        """Raises ValueError where another rank does not watch, or watches a model with other names."""
        self._group = group
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self.first = self.rank == 0
        self.keys = [(role, name) for role in LAYER_ROLES for name in counted.layers]
        self.keys += [(role, name) for role in PARAMETER_ROLES for name in counted.parameters]
        self.parameters, self._counter = counted.parameters, counted.counter
        self._has_states = counted.optimizer_state
        self._meet()

    def _meet(self) -> None:
        """All ranks say in the store what they watch: one that waits for a rank that never comes says so."""
        global _meetings
        _meetings += 1
        members = _members(self._group)
        watched = (self.keys, self._counter.format, self._has_states)
        digest = hashlib.sha256(repr(watched).encode()).hexdigest()
        store = default_store()
        keys = [f"halfscope/{members}/{_meetings}/{rank}" for rank in members]
        store.set(keys[self.rank], digest)
        try:
            store.wait(keys, _PATIENCE)
        except RuntimeError:
            raise ValueError(
                f"watch: not all {self.size} ranks watch this model; call watch on every rank, or give ranks='alone'"
            ) from None
        if any(store.get(key).decode() != digest for key in keys):
            raise ValueError("watch: the ranks watch other layers, or for other formats or roles; give ranks='alone'")

    def merge(self, seen: StepCounts, scale: float) -> None:
        """Puts the counts of all ranks in the place of this rank's: one all_reduce. `scale` is the step's.

        Counts of layers add up, and those of shards (DTensors). Copies of a parameter have the same gradients and
        updates on every rank: the first rank's count, and of an optimizer's state the first one's that has it.
        """
        self._counter.merge(seen, self, scale)

    def counts(self, key: tuple[str, str], owner: int = 0) -> bool:
        """Whether this rank's count of a role and tensor is among those that add up; owner: rank of a copy."""
        return key[0] in LAYER_ROLES or self.is_ours(key, owner)

    def owners_of_states(self, found: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """First rank that has each role and tensor, in the same order everywhere; an optimizer names its states.

        Some optimizers keep a parameter's state on one rank only.
        """
        if not self._has_states:
            return {}
        names: list[list[str]] = [[] for _ in range(self.size)]
        own = [name for role, name in found if role == OPTIMIZER_STATE]
        dist.all_gather_object(names, own, group=self._group)
        owners = {name: rank for rank in reversed(range(self.size)) for name in names[rank]}
        return {(OPTIMIZER_STATE, name): owners[name] for name in sorted(owners)}

    def is_ours(self, key: tuple[str, str], owner: int = 0) -> bool:
        """Whether this rank's elements of it count: those of a shard, or of the owner's of several copies."""
        role, name = key
        given: Any = self.parameters[name.rpartition(".")[0] if role == OPTIMIZER_STATE else name]
        if not hasattr(given, "device_mesh"):
            return self.rank == owner
        place = given.device_mesh.get_coordinate()
        return place is not None and all(
            at == 0 for at, placement in zip(place, given.placements) if placement.is_replicate()
        )

    def add_up(self, *tables: np.ndarray) -> list[np.ndarray]:
        flat = torch.from_numpy(np.concatenate([table.reshape(-1) for table in tables]))
        if dist.get_backend(self._group) == "nccl":
            flat = flat.cuda()
        dist.all_reduce(flat, group=self._group)
        parts = np.split(flat.cpu().numpy(), np.cumsum([table.size for table in tables])[:-1])
        return [part.reshape(table.shape) for part, table in zip(parts, tables)]


def ranks_of(given: Any, counted: CountedRoles) -> Alone | Ranks:
    """Ranks that watch's argument `ranks` names: "together", "alone" or a process group."""
    if isinstance(given, str) and given not in ("together", "alone"):
        raise ValueError(f"watch: ranks={given!r}; give 'together', 'alone' or a process group")
    if given == "alone" or not (dist.is_available() and dist.is_initialized()):
        return Alone()
    group = None if given == "together" else given
    return Ranks(group, counted) if dist.get_world_size(group) > 1 else Alone()


def _members(group: Any) -> list[int]:
    return list(range(dist.get_world_size())) if group is None else dist.get_process_group_ranks(group)

"""Units of a model that may have a format each: modules whose products have a weight, and groups of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import torch

from halfscope.torch.private import storage_key, version_of
from halfscope.torch.sensitivity.attention_calls import AttentionCall
from halfscope.torch.sensitivity.product_calls import EmbeddingCall, LinearCall, ProductCall
from halfscope.torch.words import listed

_COMPUTED = (0, 0)  # a weight that is computed in each pass


class Layout(Enum):
    """How the rows of a product follow the sequences of a batch; the first that fits holds."""

    OUTER = "the rows of a sequence lie together"
    INNER = "the sequences of a row lie together"
    MIXED = "a row has parts of several sequences, or no known place"


@dataclass
class Unit:
    """Products of one module with its weights; an embedding has a format of its weight alone, a cache no weight."""

    name: str
    is_embedding: bool
    is_cache: bool = False
    weights: dict[tuple[int, int], int] = field(default_factory=dict)  # elements, by storage and offset

    @property
    def elements(self) -> int:
        return sum(self.weights.values())


class Units:
    """Units in the order of their first call, and the modules that multiply the same input."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._stored = {storage_key(weight) for weight in model.parameters()}
        self.by_name: dict[str, Unit] = {}
        self.layouts: dict[str, Layout] = {}
        self.without_gradient: set[str] = set()
        self.multiplied: set[int] = set()  # storages of weights that products take
        self._inputs: dict[tuple, list[str]] = {}

    def of(self, module: str, call: ProductCall) -> Unit:
        """The unit of a call, with its weight."""
        if isinstance(call, AttentionCall):
            name = f"{module}:kv_cache" if module else "kv_cache"
            return self.by_name.setdefault(name, Unit(name, is_embedding=False, is_cache=True))
        is_embedding = isinstance(call, EmbeddingCall)
        known = self.by_name.get(module)
        name = module if known is None or known.is_embedding == is_embedding else f"{module}:embedding"
        unit = self.by_name.setdefault(name, Unit(name, is_embedding))
        storage = storage_key(call.weight)
        key = (storage, call.weight.storage_offset()) if storage in self._stored else _COMPUTED
        unit.weights[key] = max(unit.weights.get(key, 0), call.weight.numel())
        return unit

    def note_input(self, unit: Unit, call: ProductCall) -> None:
        """Notes which input a module's linear product has; valid as long as the inputs of a pass are kept."""
        if isinstance(call, LinearCall) and unit.name:
            parent, seen = unit.name.rpartition(".")[0], call.input
            key = (parent, storage_key(seen), seen.data_ptr(), tuple(seen.shape), version_of(seen))
            names = self._inputs.setdefault(key, [])
            names += [unit.name] if unit.name not in names else []

    def found_groups(self) -> list[tuple[str, ...]]:
        """Units that multiply one input in one module, such as q, k and v."""
        return _merged(names for names in self._inputs.values() if len(names) > 1)

    def uncovered(self, model: torch.nn.Module) -> list[str]:
        """Parameters of two axes or more that a product takes, and no unit."""
        known = {key for unit in self.by_name.values() for key, _ in unit.weights}
        named = ((name, weight) for name, weight in model.named_parameters() if weight.dim() > 1)
        return [name for name, weight in named if storage_key(weight) in self.multiplied - known]


def _merged(groups: Iterable[Iterable[str]]) -> list[tuple[str, ...]]:
    """Groups without a common member."""
    merged: list[list[str]] = []
    for names in groups:
        meeting = [group for group in merged if set(group) & set(names)]
        together = dict.fromkeys([name for group in meeting for name in group] + list(names))
        merged = [group for group in merged if group not in meeting] + [list(together)]
    return [tuple(group) for group in merged]


def checked_groups(groups: Iterable[Iterable[str]], units: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups that a caller gives. Raises ValueError for an unknown unit, and for one in two groups."""
    given = [(group,) if isinstance(group, str) else tuple(group) for group in groups]
    known, every = list(units), [name for group in given for name in group]
    for name in every:
        if name not in known:
            raise ValueError(f"sensitivity: groups: no unit '{name}'; the units are {listed(known)}")
        if every.count(name) > 1:
            raise ValueError(f"sensitivity: groups: '{name}' is given twice; a unit has one format")
    return given


def all_groups(groups: Iterable[tuple[str, ...]], units: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Every unit once, by the name of its group: "blocks.0.q + k + v"."""
    of = {name: group for group in groups for name in group}
    ordered = dict.fromkeys(of.get(name, (name,)) for name in units)
    return {group_name(group): group for group in ordered}


def group_name(group: tuple[str, ...]) -> str:
    """Names with their common module once."""
    first, *others = group
    parent = first.rpartition(".")[0]
    same = all(name.rpartition(".")[0] == parent for name in others)
    return " + ".join([first, *(name.rpartition(".")[2] if same else name for name in others)])

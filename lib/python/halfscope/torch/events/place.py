"""Place of an operation in training: its module, and whether it runs forward, backward or updates weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from halfscope.torch.operations.rules import label_of
from halfscope.torch.operations.table import Operation
from halfscope.torch.policy import Formats


class Region(Enum):
    FORWARD = "forward"
    BACKWARD = "backward"
    FAN_IN = "fan-in"  # the engine adds gradients of one tensor
    UPDATE = "update"


@dataclass(frozen=True)
class Place:
    """Place of an operation."""

    module: str
    is_leaf: bool  # a layer of PyTorch's, whose operations have its name
    region: Region
    formats: Formats

    def tensor(self, operation: str) -> str:
        """Name of what an operation makes here: that of a layer of PyTorch's, else the module's and the operation's."""
        if self.is_leaf and self.module:
            return self.module
        operation = label_of(operation)
        return f"{self.module}.{operation}" if self.module else operation


@dataclass
class RoundingOperations:
    """Operations of the forward pass that round, by module: how often a call has had each, and its kind."""

    modules: dict[str, dict[str, int]] = field(default_factory=dict)
    layers: set[str] = field(default_factory=set)  # modules that are layers of PyTorch's
    kinds: set[str] = field(default_factory=set)

    def add(self, place: Place, line: Operation, number: int) -> None:
        """number: of the operation in the module's call, from 1."""
        counts = self.modules.setdefault(place.module, {})
        label = label_of(line.name)
        counts[label] = max(number, counts.get(label, 0))
        self.kinds.add(line.group.value)
        if place.is_leaf and place.module:
            self.layers.add(place.module)


class Product(NamedTuple):
    """A product of a module's operations of one kind: "forward" of "linear"."""

    module: str
    operation: str
    product: str

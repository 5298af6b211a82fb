"""Forward operations by the node of autograd's graph that differentiates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from halfscope.torch.private import nodes_made


@dataclass
class Forward:
    """A forward operation as its backward pass needs to know it."""

    operation: str
    tensor: str  # name of its result
    row: str = ""  # the same, apart from other results of the operation
    is_wide: bool = False  # computed in FP32, in a model of a narrower format
    narrows: bool = False  # a cast to FP32: the gradient that leaves it has the narrower format again
    site: Any = None  # where the source calls it
    multiplies: str = ""  # operation of a product of matrices: "linear" or "matmul"
    factors: tuple[int, int] = (0, 0)  # storages of a product's left operand, and of its weight

    def multiply(self, operation: str, factors: tuple[int, int]) -> None:
        """Notes it as a product."""
        self.multiplies, self.factors = operation, factors


class Nodes:
    """The operation that made each node, by the node's number.

    A node is made just before its operation is dispatched, so that the number of the latest one is its own.
    """

    def __init__(self) -> None:
        self._latest: dict[int, Forward] = {}
        self._before: dict[int, Forward] = {}  # nodes of the step before

    def begin_step(self) -> None:
        self._before, self._latest = self._latest, {}

    def note(self, forward: Forward) -> None:
        """The operation that is dispatched now; of several in one node the first counts."""
        self._latest.setdefault(nodes_made() - 1, forward)

    def of(self, number: int | None) -> Forward | None:
        """Forward operation of a node; None if it was not noted."""
        if number is None:
            return None
        return self._latest.get(number) or self._before.get(number)

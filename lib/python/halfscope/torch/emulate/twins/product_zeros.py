"""Products of two activations, such as attention's: which gradients of a step are those of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.events.nodes import Forward
from halfscope.torch.operations.table import Kind, Operation

_SIDES = ("left", "right")
_ATTENTION = ("query", "key", "value")
# Nodes between a parameter and a product that has it as an operand.
_PASSED = (
    "TBackward0", "TransposeBackward0", "PermuteBackward0", "ViewBackward0", "UnsafeViewBackward0", "ExpandBackward0",
    "UnsqueezeBackward0", "ReshapeAliasBackward0", "ToCopyBackward0", "CloneBackward0",
)  # fmt: skip


class ProductZeros:
    """Rows of a step's products; owner_of: the parameter or buffer whose storage a tensor shares, or None."""

    def __init__(self, owner_of: Callable[[torch.Tensor], Any]) -> None:
        self._owner_of = owner_of
        self._rows: dict[int, tuple[Forward, list[str]]] = {}  # by identity of the forward operation

    def see(self, line: Operation, args: tuple, forward: Forward | None) -> None:
        """An operation of the forward pass was run."""
        is_attention = line.kind is Kind.ATTENTION
        if forward is None or (line.first is None and not is_attention):
            return
        first, names = line.first or 0, _ATTENTION if is_attention else _SIDES
        operands = args[first : first + len(names)]
        if all(isinstance(value, torch.Tensor) and self._is_activation(value) for value in operands):
            rows = [f"{forward.row or forward.tensor}.{name}" for name in names]
            self._rows[id(forward)] = (forward, [""] * first + rows)

    def rows(self, forward: Forward | None) -> list[str]:
        """Names for the gradients that the operation's node makes; empty of those that are no operand's."""
        found = None if forward is None else self._rows.get(id(forward))
        return [] if found is None else found[1]

    def _is_activation(self, tensor: torch.Tensor) -> bool:
        if self._owner_of(tensor) is not None:
            return False
        node: Any = tensor.grad_fn
        while node is not None and type(node).__name__ in _PASSED:
            node = node.next_functions[0][0]
        return type(node).__name__ != "AccumulateGrad"

"""First operation of a backward pass whose result is not finite, and the call that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.private import current_node, node_number


@dataclass
class FirstNotFinite:
    """Watches the operations of a run below autograd."""

    operation: str = ""
    is_backward: bool = False
    number: int | None = None
    hidden: int = field(default=0)

    def __call__(self, name: str, args: tuple, result: Any) -> None:
        if self.operation:
            return
        results = floats_in(result)
        if not any(not bool(each.isfinite().all()) for each in results):
            return
        if any(not bool(each.isfinite().all()) for each in floats_in(args)):
            return
        node = current_node()
        if node is None and not self._counts(name):
            return
        self.operation, self.is_backward = name, node is not None
        self.number = None if node is None else node_number(node)

    def _counts(self, name: str) -> bool:
        return name not in ("full", "fill", "masked_fill", "scalar_tensor", "full_like", "new_full", "empty", "zeros")

    def call(self, log: CallLog) -> Call | None:
        """The call whose gradient it is; None of a forward operation."""
        if self.number is None:
            return None
        for call in log.calls:
            if call.nodes[0] <= self.number < call.nodes[1]:
                return call
        return None

"""First operations of a run that are infinite or NaN though their operands are not, and their calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.nested_tensors import floats_in, lies_in_memory
from halfscope.torch.private import current_node, node_number, storage_key
from halfscope.torch.tensors.elements import all_finite

# Fills make an infinity on purpose.
_FILLS_NAMES = "full fill masked_fill index_fill where scalar_tensor full_like new_full zeros clone _to_copy copy"
_FILLS = frozenset(_FILLS_NAMES.split())
_UNWRITTEN = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize")


@dataclass(frozen=True)
class Origin:
    """An operation below autograd. node: number of its node in the backward pass; call_number: in the forward pass."""

    operation: str
    is_nan: bool
    node: int | None
    call_number: int | None
    detail: str = ""

    @property
    def is_backward(self) -> bool:
        return self.node is not None

    def call(self, log: CallLog) -> Call | None:
        """The call, with its operands, or the one whose gradient it is, without."""
        if self.node is None:
            return next((call for call in log.calls if call.number == self.call_number), None)
        return next((call for call in log.calls if call.nodes[0] <= self.node < call.nodes[1]), None)

    def words(self, log: CallLog) -> str:
        call = self.call(log)
        name = self.operation if call is None else call.place.called
        found = f"{'the gradient of ' * self.is_backward}{name} is {'NaN' if self.is_nan else 'infinite'}"
        return f"{found}, {self.detail}" if self.detail else found


class FirstNotFinite:
    """Watches the operations of a run below autograd: the first infinity and the first NaN of each pass."""

    def __init__(self) -> None:
        self.log: CallLog | None = None  # the run's
        self._first: dict[tuple[bool, bool], Origin] = {}  # by backward pass and NaN, in the order in which they came

    def __call__(self, name: str, args: tuple, result: Any) -> None:
        if name in _UNWRITTEN:  # whatever the memory held before
            return
        results = [each for each in floats_in(result) if lies_in_memory(each)]
        if all(map(all_finite, results)):
            return
        written = {storage_key(each) for each in results}
        operands = [each for each in floats_in(args) if lies_in_memory(each) and storage_key(each) not in written]
        is_nan = _any(torch.isnan, results)
        if _any(torch.isnan, operands) or (not is_nan and (name in _FILLS or _any(torch.isinf, operands))):
            return
        node = current_node()
        key = (node is not None, is_nan)
        if key not in self._first:
            call_number = self.log.keep_latest() if node is None and self.log is not None else None
            detail = _detail(name, operands) if is_nan else ""
            self._first[key] = Origin(name, is_nan, None if node is None else node_number(node), call_number, detail)

    @property
    def origins(self) -> list[Origin]:
        """The first one of all; then the first NaN, if that is another one."""
        every = list(self._first.values())
        return [*every[:1], *(origin for origin in every[1:] if origin.is_nan)][:2]

    @property
    def backward(self) -> Origin | None:
        return next((origin for origin in self._first.values() if origin.is_backward), None)


def _any(is_bad: Any, tensors: list[torch.Tensor]) -> bool:
    return any(bool(is_bad(tensor).any()) for tensor in tensors)


def _detail(name: str, operands: list[torch.Tensor]) -> str:
    is_softmax = "softmax" in name and "backward" not in name and operands and operands[0].dim()
    if is_softmax and any(bool((operands[0] == -torch.inf).all(axis).any()) for axis in range(operands[0].dim())):
        return "by a softmax of a row without a finite number"
    return ""

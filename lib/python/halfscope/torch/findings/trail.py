"""Trail of a step: its operations by the storages that they made, so that a fault has its line and its sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.events.ran import Call
from halfscope.torch.events.source import Site
from halfscope.torch.findings.fault import OperationNote
from halfscope.torch.findings.finding import called
from halfscope.torch.findings.kinds import PRODUCTS
from halfscope.torch.findings.magnitudes import largest_of
from halfscope.torch.findings.operands import Constant, constant_of, flat
from halfscope.torch.operations.table import TABLE, Kind
from halfscope.torch.private import storage_key

_DEPTH = 6  # operations that are followed back from a fault


class Trail:
    """Notes operations; owner_of: the parameter or buffer whose storage a tensor shares, or None."""

    def __init__(self, format: Format, owner_of: Callable[[torch.Tensor], Any]) -> None:
        self.format, self._owner_of = format, owner_of
        self.made: dict[int, OperationNote] = {}

    def note(self, ran: Call, site: Site | None) -> OperationNote:
        """Notes an operation for later ones that use its result."""
        forward, place = ran.forward, ran.place
        constants: list[Constant] = []
        inputs: list[int] = []
        factors: list[int] = []
        for value in flat((*ran.args, *ran.kwargs.values()) if ran.kwargs else ran.args):
            if isinstance(value, torch.Tensor):
                if not value.is_floating_point():
                    continue
                inputs.append(storage_key(value))
                if value.dim():
                    factors.append(inputs[-1])
                    continue
            elif not isinstance(value, float):
                continue
            constant = constant_of(value, self.format, self._is_known)
            if constant is not None:
                constants.append(constant)
        return OperationNote(
            operation=forward.operation if ran.is_backward and forward is not None else ran.operation,
            row=row_of(ran),
            module="" if place is None else place.module,
            site=site,
            constants=constants,
            inputs=inputs,
            is_square=ran.operation == "mul" and len(factors) == 2 and factors[0] == factors[1],
            order="" if place is None or ran.operation not in PRODUCTS else place.formats.products or "",
            is_outside=place is None,
            is_gradient=ran.is_backward,
        )

    def _is_known(self, tensor: torch.Tensor) -> bool:
        return storage_key(tensor) in self.made or self._owner_of(tensor) is not None

    def made_at(self, key: int) -> OperationNote | None:
        """The operation that made a storage."""
        return self.made.get(key)

    def maker_of(self, tensor: torch.Tensor) -> OperationNote | None:
        return self.made_at(storage_key(tensor))

    def name_of(self, tensor: torch.Tensor) -> str:
        owned = self._owner_of(tensor)
        if owned is not None:
            return str(owned.name)
        made = self.maker_of(tensor)
        return "the input" if made is None else called(made.row)

    def sources_of(self, made: OperationNote) -> list[OperationNote]:
        """The operations before it, the nearest first, as far back as a product."""
        found: list[OperationNote] = []
        level = list(made.inputs)
        for _ in range(_DEPTH):
            before: list[int] = []
            while level:
                makers = map(self.made_at, level)
                nearer = [each for each in makers if each is not None and each not in found and each is not made]
                found += nearer
                before += [key for each in nearer if not _ends(each) for key in each.inputs]
                level = [key for each in nearer if _moves(each) for key in each.inputs]
            level = before
        return found

    def made_of_largest(self, args: tuple) -> OperationNote | None:
        """The operation that made the largest of the gradients which the engine adds up."""
        tensors = [tensor for tensor in float_tensors(args) if tensor.numel() and storage_key(tensor) in self.made]
        largest = max(tensors, key=largest_of, default=None)
        return None if largest is None else self.made[storage_key(largest)]


def _moves(made: OperationNote) -> bool:
    """Whether it only selects or moves numbers, which is no step on the way back."""
    row = TABLE.get(made.operation)
    return row is not None and row.kind is Kind.EXACT


def _ends(made: OperationNote) -> bool:
    return made.operation in PRODUCTS or _moves(made)


def row_of(ran: Call) -> str:
    """The operation's name in its module, apart from others of its kind; without a module its own."""
    return ran.operation if ran.forward is None else ran.forward.row or ran.forward.tensor


def float_tensors(value: Any) -> list[torch.Tensor]:
    """Tensors of floating-point numbers among arguments."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in float_tensors(part)]
    return []


def first_tensor(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        value = value[0] if value else None
    return value if isinstance(value, torch.Tensor) else None

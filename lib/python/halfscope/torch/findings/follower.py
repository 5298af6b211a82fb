"""Follower of the faults of a step: the tensors that carry one, the operation that makes NaN of it, or hides it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import torch

from halfscope.torch.events.ran import Ran
from halfscope.torch.findings.fault import Fault, OperationNote
from halfscope.torch.findings.trail import first_tensor, float_tensors
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.storages import covers_storage


class Judge(Protocol):
    """The numbers that a door has beside those of a step: they tell which results are wrong.

    ran: a `Ran`, or the door's own kind of one.
    """

    def bad(self, ran: Any) -> torch.Tensor | None:
        """The elements of a result that are wrong; None where there are none."""

    def born(self, ran: Any, made: OperationNote, bad: torch.Tensor) -> Fault | None:
        """The fault of an operation whose operands carry none; None where the operation is not to blame."""

    def damage(self, ran: Any, fault: Fault) -> float | None:
        """The relative error of a right result that an operand with a fault went into; None where it is not known."""

    def ended(self, fault: Fault, made: OperationNote) -> None:
        """An operation has hidden a fault, or made NaN of it."""


class Follower:
    """Faults by the storages that carry them.

    An operation that computes wrong numbers of a tensor with a fault passes the fault on, of several the oldest; one
    that computes right numbers hides all of them.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.clear()

    def __bool__(self) -> bool:
        """Whether a tensor carries a fault."""
        return bool(self._carried)

    def clear(self) -> None:
        """A step ends."""
        self._carried: dict[int, Fault] = {}
        self._known: list[Fault] = []  # the oldest first

    def carry(self, key: int, fault: Fault) -> None:
        """A storage carries a fault."""
        self._carried[key] = fault
        if not any(fault is known for known in self._known):
            self._known.append(fault)

    def carries(self, key: int) -> bool:
        return key in self._carried

    def carried(self) -> Iterable[tuple[int, Fault]]:
        """Storages, and the fault that each carries."""
        return self._carried.items()

    def release(self, result: torch.Tensor) -> None:
        """Numbers that were in all of the result's storage are gone."""
        if covers_storage(result):
            self._carried.pop(storage_key(result), None)

    def of(self, operands: Iterable[torch.Tensor]) -> list[Fault]:
        """The faults that operands carry, the oldest first."""
        carried = {id(self._carried.get(storage_key(operand))) for operand in operands}
        return [fault for fault in self._known if id(fault) in carried]

    def ran(self, ran: Ran, made: OperationNote, new: Fault | None = None) -> None:
        """made: the operation, as its fault would name it; new: a fault of a cast inside of it."""
        faults, bad = self.of(float_tensors((ran.args, ran.kwargs))), self._judge.bad(ran)
        faults += [] if new is None else [new]
        self.release(first_tensor(ran.result))
        if bad is None:
            for fault in faults:
                self._hide(fault, ran, made)
            return
        oldest = faults[0] if faults else self._again(ran, made) or self._judge.born(ran, made, bad)
        if oldest is not None:
            self._pass_on(oldest, ran, made, bad)

    def _again(self, ran: Ran, made: OperationNote) -> Fault | None:
        """The fault of the operation that a backward pass computes once more."""
        if not ran.is_recomputed:
            return None
        return next((known for known in self._known if known.region == "forward" and known.made.is_at(made)), None)

    def _hide(self, fault: Fault, ran: Ran, made: OperationNote) -> None:
        if fault.hidden_by is None and not fault.reaches_loss:
            fault.hidden_by, fault.damage = made, self._judge.damage(ran, fault)
            self._judge.ended(fault, made)

    def _pass_on(self, fault: Fault, ran: Ran, made: OperationNote, bad: torch.Tensor) -> None:
        self.carry(storage_key(first_tensor(ran.result)), fault)
        if made is not fault.made:
            fault.passes.append(made)
        if fault.nan_at is None and bool((first_tensor(ran.judged).isnan() & bad).any()):
            fault.nan_at = made
            self._judge.ended(fault, made)
        fault.reaches_loss = fault.reaches_loss or (made.is_outside and not ran.is_backward)

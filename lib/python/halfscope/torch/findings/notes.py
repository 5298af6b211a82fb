"""Notes on the operations of a watched step: names, storages and constants, of which a fault's trail is made later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.findings.fault import OperationNote
from halfscope.torch.findings.magnitudes import OWN_MINIMUM
from halfscope.torch.findings.operands import Constant
from halfscope.torch.findings.trail import Trail
from halfscope.torch.private import storage_key

_TENSORS = (torch.Tensor, torch.nn.Parameter)


class Note:
    """An operation; a step makes many notes, and a fault reads a few."""

    __slots__ = ("inputs", "is_square", "made", "numbers", "operation")

    def __init__(self, operation: str, inputs: list[int], numbers: list[float]) -> None:
        """inputs: storages of operands; numbers: constants among the arguments."""
        self.operation, self.inputs, self.numbers = operation, inputs, numbers
        self.is_square = False
        self.made: OperationNote | None = None


class NotedTrail(Trail):
    """Trail of a watched step: an operation of it is made of its note where it is asked for."""

    def __init__(self, format: Format, owner_of: Callable[[torch.Tensor], Any]) -> None:
        super().__init__(format, owner_of)
        self.notes: dict[int, Note] = {}  # by storage of the result

    def made_at(self, key: int) -> OperationNote | None:
        note = self.notes.get(key)
        return None if note is None else self.made_of(note)

    def made_of(self, note: Note) -> OperationNote:
        """The operation that a note is on, one for each note."""
        if note.made is None:
            constants = [Constant(value, self.format.round(value)) for value in note.numbers]
            note.made = OperationNote(
                note.operation, note.operation, None, None, constants, note.inputs, note.is_square
            )
        return note.made

    def take(self, operation: str, args: tuple, result: torch.Tensor) -> Note:
        """Notes an operation under its result's storage."""
        note = Note(operation, [], [])
        for value in args:
            self._add(value, note)
        if operation == "mul" and len(note.inputs) == 2 and note.inputs[0] == note.inputs[1]:
            note.is_square = all(factor.dim() for factor in args[:2])
        self.notes[storage_key(result)] = note
        return note

    def _add(self, value: Any, note: Note) -> None:
        """An argument; constants as large as FP32's own minimum are left out: a model would have the format's."""
        kind = type(value)
        if kind in _TENSORS:
            if not value.is_floating_point():
                return
            note.inputs.append(storage_key(value))
            if value.dim() or note.inputs[-1] in self.notes or self._owner_of(value) is not None:
                return
            if value.is_meta:
                return
            value = float(value.detach())
        elif kind is list or kind is tuple:
            for part in value:
                self._add(part, note)
            return
        elif kind is not float:
            return
        if -OWN_MINIMUM < value < OWN_MINIMUM:
            note.numbers.append(value)

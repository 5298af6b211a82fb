"""An operation of a step: as it is about to run, as it has run, and the casts inside of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.place import Place, Region
from halfscope.torch.operations.table import Operation


@dataclass(slots=True, eq=False)
class Call:
    """An operation about to run; its run fills in what is behind `forward`."""

    func: Any
    line: Operation
    args: tuple
    kwargs: dict[str, Any]
    place: Place | None  # None outside of the model
    is_backward: bool
    forward: Forward | None = None  # the operation of a forward pass itself; in a backward pass that of the gradient
    keeps_operands: bool = False  # whether an observer wants the three of them at the end
    is_recomputed: bool = False  # a forward operation that a backward pass computes once more
    exact: Any = None  # FP32's result, where a twin has computed it
    has_exact: bool = False
    operands: tuple | None = None  # arguments in the formats of their roles
    images: tuple | None = None  # operands of a product in formats of their own
    unrounded: tuple[tuple[torch.Tensor, torch.Tensor], ...] = ()  # results of 16 bits, and in FP32

    @property
    def operation(self) -> str:
        return self.line.name

    @property
    def is_fan_in(self) -> bool:
        """Whether the engine adds up gradients of one tensor."""
        return self.place is not None and self.place.region is Region.FAN_IN

    def note_forward(self, forward: Forward) -> None:
        """The operation, as its backward pass needs to know it."""
        self.forward = forward

    def note_exact(self, exact: Any) -> None:
        self.exact, self.has_exact = exact, True

    def note_operands(self, operands: tuple) -> None:
        if self.keeps_operands:
            self.operands = operands

    def note_images(self, images: tuple) -> None:
        if self.keeps_operands:
            self.images = images

    def note_unrounded(self, result: torch.Tensor, exact: torch.Tensor) -> None:
        if self.keeps_operands:
            self.unrounded = (*self.unrounded, (result, exact))


@dataclass(slots=True, eq=False)
class Ran(Call):
    """An operation that has run."""

    result: Any = None

    @classmethod
    def of(cls, call: Call, result: Any) -> Ran:
        return cls(
            call.func, call.line, call.args, call.kwargs, call.place, call.is_backward, call.forward,
            call.keeps_operands, call.is_recomputed, call.exact, call.has_exact, call.operands, call.images,
            call.unrounded, result,
        )  # fmt: skip

    @property
    def judged(self) -> Any:
        """The result whose faults are followed: the run's own."""
        return self.result


@dataclass(frozen=True, slots=True)
class Cast:
    """Rounding of a tensor, which has happened in place."""

    role: str
    name: str  # "" where it is known later, as of gradients that the engine adds up
    quantizer: str
    counts: Any  # counters of the cast
    tensor: torch.Tensor | None = None  # the rounded one; None of a cast that is entered late
    original: torch.Tensor | None = None  # whose copy `tensor` is
    before: torch.Tensor | None = None  # numbers before the rounding, of casts with a name, where they are wanted

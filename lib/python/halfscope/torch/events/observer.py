"""Observers of a step, who are told what ran, and twins, which compute each operation once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from functools import cached_property
from typing import Any

import torch

from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.ran import Call, Cast, Ran


class Wants(Flag):
    """Events and facts that cost something, so that a step has them only where an observer wants them."""

    NOTHING = 0
    SITES = auto()  # lines of the source, in `Forward.site`
    CASTS = auto()  # `cast`
    NUMBERS_BEFORE = auto()  # `Cast.before`
    OPERANDS = auto()  # `Call.operands`, `images` and `unrounded`
    ARRIVALS = auto()  # `arrives` and `arrived`
    NODES = auto()  # `left_node`


class Observer:
    """Told of a step as it happens; it changes nothing. Each method may be left out."""

    wants = Wants.NOTHING

    def begin_step(self, plan: StepPlan) -> None:
        """The step that is watched from now on."""

    def cast(self, call: Call | None, cast: Cast) -> None:
        """A tensor was rounded, inside of an operation or, with None, between two.

        An operation in place changes its operands after their casts: sizes are read here.
        """

    def overflowed(self, call: Call | None, cast: Cast, first: Any) -> None:
        """The cast is the first of its kind with a number that is not finite, `FirstOverflow` of the book."""

    def ran(self, ran: Ran) -> None:
        """An operation has run: forward, backward, recomputed, or outside of the model."""

    def entered_backward(self, roots: list[torch.Tensor]) -> None:
        """A backward pass begins at these: the loss."""

    def arrived(self, owned: Any, gradient: torch.Tensor, rounded: torch.Tensor) -> None:
        """The gradient of a parameter: as the backward pass made it, and in its format, which may be one tensor."""

    def left_node(self, gradients: tuple) -> None:
        """A node of the graph has made these."""

    def end_step(self, stepped: bool) -> None:
        """stepped: whether the weights were updated; not where a scaler skipped the step, or it was abandoned."""


class Twin(Observer):
    """Computes operations of a step once more, on numbers of its own: it writes to nothing of the user's."""

    def before(self, call: Call) -> None:
        """The operation runs next, and may write to its arguments."""

    def arrives(self, owned: Any, gradient: torch.Tensor) -> None:
        """The gradient of a parameter, before it is rounded."""


def _nobody(_: torch.Tensor) -> None:
    return None


@dataclass(frozen=True)
class StepPlan:
    """A step's observers, and what they may ask: made when the step begins, and not changed in it."""

    number: int = 0
    twins: tuple[Twin, ...] = ()  # in the order in which they are asked
    observers: tuple[Observer, ...] = ()  # told after the twins
    owner_of: Callable[[torch.Tensor], Any] = _nobody  # the parameter or buffer whose storage a tensor shares
    counterpart: Callable[[torch.Tensor], torch.Tensor | None] = _nobody  # FP32's numbers of a tensor, if it has others
    note: Callable[[Forward], None] = _nobody  # an operation outside of the model, for its backward pass

    @cached_property
    def all(self) -> tuple[Observer, ...]:
        return (*self.twins, *self.observers)

    def wanting(self, wanted: Wants) -> tuple[Observer, ...]:
        return tuple(each for each in self.all if wanted in each.wants)

    @cached_property
    def of_casts(self) -> tuple[Observer, ...]:
        return self.wanting(Wants.CASTS)

    @cached_property
    def of_arrivals(self) -> tuple[Observer, ...]:
        return self.wanting(Wants.ARRIVALS)

    @cached_property
    def of_nodes(self) -> tuple[Observer, ...]:
        return self.wanting(Wants.NODES)

    @cached_property
    def has_operands(self) -> bool:
        return bool(self.wanting(Wants.OPERANDS))

    @cached_property
    def has_sites(self) -> bool:
        return bool(self.wanting(Wants.SITES))

    @cached_property
    def has_numbers_before(self) -> bool:
        return bool(self.wanting(Wants.NUMBERS_BEFORE))

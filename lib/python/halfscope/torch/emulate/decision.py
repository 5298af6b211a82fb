"""Decision on an operation: in the format of its place or in FP32."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from halfscope.torch.emulate.places import Places
from halfscope.torch.emulate.widths import Widths
from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.place import Place
from halfscope.torch.operations.table import Kind, Operation, autocast_list
from halfscope.torch.policy import Policy


class UnknownOperation(RuntimeError):
    """Raised in strict emulation for an operation without a rule, and for one that a policy refuses."""


class Precision(Enum):
    """Precision of an operation's result."""

    FORMAT = "rounded to the format of its place"
    FP32 = "FP32, and the next operation casts it"
    FP32_KEPT = "FP32, and it stays so until the model casts it, as after its own float()"


@dataclass(frozen=True)
class Decision:
    precision: Precision

    @property
    def is_wide(self) -> bool:
        return self.precision is not Precision.FORMAT


class Decisions:
    """The one place for lists of autocast, rules for operations, promotion, and trials of FP32.

    It asks for formats, marks and types, never for numbers.
    """

    def __init__(self, policy: Policy, places: Places, widths: Widths, in_fp32: frozenset[str]) -> None:
        """in_fp32: operations that a trial computes so, by row, as `Places.row` names results."""
        self._policy, self._places, self._widths, self._in_fp32 = policy, places, widths, in_fp32

    def check(self, line: Operation, place: Place) -> None:
        """Raises UnknownOperation for an operation that the policy refuses."""
        if autocast_list(line, self._policy) == "refuse":
            raise UnknownOperation(f"emulate: policy {self._policy.name} refuses {line.listed} ('{place.module}')")

    def of_forward(self, line: Operation, place: Place, args: tuple, number: int, in_place: bool) -> Decision:
        """number: of the operation among those of its name in the module's call."""
        if self._in_fp32 and self._places.row(place, line.name, number) in self._in_fp32:
            return Decision(Precision.FP32_KEPT)
        chosen = autocast_list(line, self._policy)
        if self._policy.fp32_parameters and self._places.autocast_is_off and self._widths.has_wide(args, place):
            chosen = "deny"
        is_cast_up = not (self._policy.fp32_parameters and chosen == "allow") and self._widths.is_cast_up(
            line, args, in_place
        )
        if is_cast_up:
            return Decision(Precision.FP32_KEPT)
        is_wide = self._is_listed(line, place, args, chosen) or (
            line.kind is not Kind.EXACT and self._policy.operations.keep(place.module, line, number)
        )
        return Decision(Precision.FP32 if is_wide else Precision.FORMAT)

    def of_backward(self, line: Operation, place: Place, args: tuple, forward: Forward | None) -> Decision:
        """Computes a gradient in the precision of its forward operation, if that is known."""
        if forward is None:
            is_wide = self._is_listed(line, place, args, autocast_list(line, self._policy))
            return Decision(Precision.FP32 if is_wide else Precision.FORMAT)
        if not forward.is_wide:
            return Decision(Precision.FORMAT)
        is_cast = forward.narrows or line.kind is Kind.LOSS
        return Decision(Precision.FP32 if is_cast else Precision.FP32_KEPT)

    def keeps(self, row: str) -> bool:
        """Whether a trial leaves out a cast that the model makes itself."""
        return row in self._in_fp32

    def _is_listed(self, line: Operation, place: Place, args: tuple, chosen: str) -> bool:
        """Whether a list of autocast has it in FP32."""
        infers = chosen == "infer" and self._widths.has_wide(args, place)
        return line.kind is Kind.LOSS or chosen == "deny" or infers

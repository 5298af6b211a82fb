"""Faults of watched steps: the judge of their follower, by the format's numbers, and what a report says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.findings.fault import Fault, OperationNote
from halfscope.torch.findings.finding import Finding, called, digits
from halfscope.torch.findings.follower import Follower
from halfscope.torch.findings.kinds import PRODUCTS, kind_of, terms_of
from halfscope.torch.findings.magnitudes import OWN_MINIMUM, largest_of, relative_error
from halfscope.torch.findings.notes import NotedTrail
from halfscope.torch.findings.operands import Operand
from halfscope.torch.findings.sentences import seen_finding
from halfscope.torch.findings.trail import first_tensor, float_tensors
from halfscope.torch.operations.operators import target_of
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.elements import floating
from halfscope.torch.watch.format_path import Beside, FormatPath

_SEEN = "seen in step {}, in the run's own format, in which it is finite"


class WatchedFaults:
    """Results that a format makes infinite or NaN, and what becomes of them in the forward pass."""

    def __init__(
        self, format: Format, owner_of: Callable[[torch.Tensor], Any], is_wide: Callable[[torch.Tensor], bool]
    ) -> None:
        """owner_of: as `Trail` has it; is_wide: as `FormatPath` has it."""
        self._format, self._owner_of = format, owner_of
        self.path, self.trail = FormatPath(format, is_wide), NotedTrail(format, owner_of)
        self._flushed = format.smallest / 2
        self.limit = format.largest + format.step_at(format.largest) / 2  # the smallest magnitude that becomes infinite
        self.follower = Follower(self)
        self.by_place: dict[tuple[str, str], tuple[int, Fault]] = {}  # by operation and line, with their first step
        self._born: list[Fault] = []  # in this step
        self._lost: set[int] = set()  # faults, by identity, that went into an operation which the format has no run of

    def begin(self) -> None:
        """A forward pass begins."""
        self.follower.clear()
        self.path.clear()
        self.trail.notes, self._born, self._lost = {}, [], set()

    def end(self, step: int, output: Any) -> None:
        """Keeps the faults of a forward pass that are in its output, became NaN, or do another harm."""
        for fault in self.follower.of(floating(output)):
            fault.reaches_loss = True
        living = {id(fault) for key, fault in self.follower.carried() if self.path.has_living(key)} | self._lost
        for fault in self._born:
            fault.is_unused = id(fault) not in living and not fault.is_damaging
            if not fault.is_harmless:
                self.by_place.setdefault((fault.made.operation, str(fault.made.site)), (step, fault))
        self.begin()

    def lose(self, operands: list[torch.Tensor]) -> None:
        """An operation leaves the fate of its operands' faults open, or decides otherwise than in the run."""
        self._lost |= set(map(id, self.follower.of(operands)))

    def enter(self, ran: Beside, made: OperationNote) -> None:
        """An operation has run; its numbers in the format are kept where they carry a fault, or are not the run's."""
        self.follower.ran(ran, made)
        result = first_tensor(ran.result)
        if self.follower.carries(storage_key(result)) or self.is_beyond(largest_of(result)):
            self.path.keep_results(ran)
        else:
            self.path.release(result)

    def is_beyond(self, largest: float) -> bool:
        """Whether a magnitude of the run is infinite in the format; FP32's own minimum is not."""
        return self.limit <= largest < OWN_MINIMUM

    def overwritten(self, result: torch.Tensor) -> None:
        """Numbers from elsewhere take the place of a storage's."""
        self.follower.release(result)
        self.path.forget(result)

    def bad(self, ran: Beside) -> torch.Tensor | None:
        """Elements that are finite in the run alone."""
        result, numbers = first_tensor(ran.result), first_tensor(ran.judged)
        bad: torch.Tensor = ~numbers.isfinite() & result.isfinite()
        return bad if bool(bad.any()) else None

    def damage(self, ran: Beside, fault: Fault) -> float | None:
        return relative_error(first_tensor(ran.judged), first_tensor(ran.result))

    def ended(self, fault: Fault, made: OperationNote) -> None:
        """Harmless faults are dropped at the end of the step."""

    def born(self, ran: Beside, made: OperationNote, bad: torch.Tensor) -> Fault:
        """A fault of an operation whose operands carry none."""
        tensors = float_tensors((ran.args, ran.kwargs))
        owned = [owner.name for owner in map(self._owner_of, tensors) if owner is not None]
        if owned and made.operation in PRODUCTS:
            made.module = owned[0].rpartition(".")[0]
        target = None if ran.func is None else target_of(ran.func, ran.args, ran.kwargs)
        operands = [self._operand(tensor, tensor is not target) for tensor in tensors if tensor.dim()]
        result, kind = first_tensor(ran.result), kind_of(made, operands, first_tensor(ran.judged))
        value, terms = largest_of(result), terms_of(made.operation, ran.args, result)
        if value >= OWN_MINIMUM:
            value = ran.in_format.largest
        if kind == "cast":
            value, terms = max(operand.largest for operand in operands if operand.infinite), 0
        fault = Fault(
            made, self._format, "forward", kind, value, int(bad.sum()), result.numel(), terms, operands,
            self.trail.sources_of(made),
        )  # fmt: skip
        self._born.append(fault)
        return fault

    def is_flushed(self, args: tuple, is_quotient: bool) -> bool:
        """Whether the format makes the divisor of a quotient, or the argument of another operation, zero."""
        tensors = [value for value in args[:3] if isinstance(value, torch.Tensor)]
        if not tensors or (is_quotient and len(tensors) < 2):
            return False
        magnitudes = tensors[-1].detach().abs()
        return bool(((magnitudes > 0) & (magnitudes <= self._flushed)).any())

    def _operand(self, tensor: torch.Tensor, may_overflow: bool) -> Operand:
        """may_overflow: whether it still has the numbers that the operation read."""
        magnitudes = tensor.detach().abs().float()
        positive = magnitudes[magnitudes > 0]
        largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
        if largest >= OWN_MINIMUM:  # a mask's: the format's own in a model of the format
            largest = self._format.largest
        is_infinite = (magnitudes >= self.limit) & (magnitudes < OWN_MINIMUM)
        return Operand(
            self.trail.name_of(tensor), largest, float(positive.min()) if positive.numel() else 0.0,
            int((positive <= self._flushed).sum()), int(is_infinite.sum()) if may_overflow else 0,
        )  # fmt: skip

    @property
    def finding(self) -> Finding | None:
        """Finding on the first operation that the format would make infinite or NaN."""
        if not self.by_place:
            return None
        step, fault = next(iter(self.by_place.values()))
        return seen_finding(fault, _SEEN.format(step))

    def words(self) -> list[str]:
        """A sentence on the faults between layers."""
        between = [fault for _, fault in self.by_place.values() if fault.made.module is None]
        if not between:
            return []
        places = [
            f"{called(fault.made.operation)}{f' ({fault.made.site})' if fault.made.site is not None else ''}"
            f"{f', up to {digits(fault.value)}' if fault.value > self.limit else ''}"
            for fault in between
        ]
        listed = "; ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        number = f"{len(places)} operation{'s' * (len(places) != 1)}"
        return [
            f"{self._format.label} is infinite or NaN in {number} between layers, which no loss scale helps: {listed}."
        ]

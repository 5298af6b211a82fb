"""Trail of an emulated training: describes its first overflow as it comes, from the counts of casts alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import halfscope
from halfscope.formats import Format
from halfscope.torch.events.observer import Observer, StepPlan, Wants
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Call, Cast, Ran
from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.kinds import kind_of, terms_of
from halfscope.torch.findings.operands import Operand
from halfscope.torch.findings.trail import Trail, first_tensor, float_tensors
from halfscope.torch.operations.table import Trait, named
from halfscope.torch.private import storage_key


class LiveTrail(Trail, Observer):
    """Follows the steps of a training that come before its first fault."""

    wants = Wants.SITES | Wants.CASTS

    def __init__(self, format: Format, excuse: Callable[[Any], None]) -> None:
        """excuse: is told of an overflow that did no harm."""
        super().__init__(format, lambda tensor: self._plan.owner_of(tensor))
        self._excuse = excuse
        self._found: list[tuple[Any, Fault]] = []  # overflows, as the book has them
        self._clear()

    def _clear(self) -> None:
        self.made: dict[int, Made] = {}
        self._plan = StepPlan()
        self._rounded: torch.Tensor | None = None  # the latest tensor of a cast
        self._overflowed: dict[int, tuple] = {}  # by the identity of their counts: the operation that made a tensor
        self._flushed: dict[int, int] = {}  # elements of a storage that became zero when it was rounded
        self._bad: dict[int, Fault] = {}
        self._negative: set[int] = set()  # faults, by identity, whose infinities are all negative

    def begin_step(self, plan: StepPlan) -> None:
        self._plan = plan

    def end_step(self, stepped: bool) -> None:
        self._clear()

    def ran(self, ran: Ran) -> None:
        """Notes an operation."""
        first = first_tensor(ran.result)
        if first is None or not first.is_floating_point():
            return
        is_fan_in = ran.place is not None and ran.place.region is Region.FAN_IN
        made = self._made_of_largest(ran.args) if is_fan_in else self._made_by(ran)
        if made is None:
            return
        if self._bad:
            self._follow(made, first, ran.args)
        self.made[storage_key(first)] = made

    def _made_by(self, call: Call) -> Made:
        return self.note(call, None if call.forward is None else call.forward.site)

    def _made_of_largest(self, args: tuple) -> Made | None:
        """The operation that made the largest of the gradients which the engine adds up."""
        tensors = [tensor for tensor in float_tensors(args) if tensor.numel() and storage_key(tensor) in self.made]
        largest = max(tensors, key=lambda tensor: float(tensor.detach().abs().max()), default=None)
        return None if largest is None else self.made[storage_key(largest)]

    def cast(self, call: Call | None, cast: Cast) -> None:
        """The book notes its overflow next, or when the tensor's name is known."""
        tensor, counts = cast.tensor, cast.counts
        if tensor is None:
            return
        self._rounded = tensor
        if counts.overflow:
            self._overflowed[id(counts)] = (counts, self.maker_of(tensor), storage_key(tensor))
        if counts.flushed:
            self._flushed[storage_key(tensor)] = counts.flushed

    def overflowed(self, call: Call | None, cast: Cast, first: Any) -> None:
        rounded, counts = self._rounded, cast.counts
        if rounded is None or first.role in ("master_weight", "optimizer_state"):
            return
        _, maker, key = self._overflowed.get(id(counts), (counts, self.maker_of(rounded), storage_key(rounded)))
        made = maker if maker is not None and first.role.endswith("gradient") else None
        if made is None and call is None:
            return
        made = made or self._made_by(call)
        fault = self._fault(first, made, (Format.of(cast.quantizer), counts, rounded), call)
        self._found.append((first, fault))
        self._bad[key] = fault
        if not bool((rounded == float("inf")).any()):
            self._negative.add(id(fault))

    def fault_of(self, found: Any) -> Fault | None:
        """The fault behind an overflow of the book."""
        return next((fault for known, fault in self._found if known is found), None)

    def _forget(self, fault: Fault) -> None:
        for overflow in [overflow for overflow, known in self._found if known is fault]:
            self._excuse(overflow)
        self._found = [(overflow, known) for overflow, known in self._found if known is not fault]

    def _fault(self, found: Any, made: Made, about: tuple[Format, Any, torch.Tensor], call: Call | None) -> Fault:
        """about: the format, counts of the cast, and the tensor that it rounded."""
        format, counts, rounded = about
        region = "backward" if found.role.endswith("gradient") else "forward"
        fault = Fault(
            made, format, region, "gradient", counts.max_abs, counts.overflow or counts.nonfinite, counts.elements,
            sources=self.sources_of(made), scale=found.scale,
        )  # fmt: skip
        if region == "backward" or call is None:
            return fault
        tensors = [tensor for tensor in float_tensors((call.args, call.kwargs)) if tensor.dim()]
        fault.operands = list(map(self._operand, tensors))
        fault.has_weight = any(self._owner_of(tensor) is not None for tensor in tensors)
        if found.role == "weight" or found.tensor.endswith(".input"):
            fault.kind = "cast"
        else:
            fault.kind = kind_of(made, fault.operands, rounded)
            fault.terms = terms_of(call.operation, call.args, rounded)
            fault.nan_at = made if bool(rounded.isnan().any()) else None
        return fault

    def _operand(self, tensor: torch.Tensor) -> Operand:
        key = storage_key(tensor)
        magnitudes = tensor.detach()[tensor.isfinite()].abs().float()
        positive = magnitudes[magnitudes > 0]
        flushed = self._flushed.get(key, 0)
        if key not in self.made and tensor.dtype is torch.float32 and positive.numel():
            flushed = int((halfscope.round(positive.contiguous(), self.format.name) == 0).sum())
        return Operand(
            self.name_of(tensor), float(magnitudes.max()) if magnitudes.numel() else 0.0,
            float(positive.min()) if positive.numel() else 0.0, flushed, 0,
        )  # fmt: skip

    def _follow(self, made: Made, result: torch.Tensor, args: tuple) -> None:
        """Passes an infinity on, or sees it hidden."""
        keys = [storage_key(tensor) for tensor in float_tensors(args)]
        faults = [self._bad[key] for key in keys if key in self._bad]
        if not faults:
            return
        fault = faults[0]
        if bool(result.isfinite().all()):
            if fault.hidden_by is None and not fault.reaches_loss:
                fault.hidden_by = made
                is_masked = made.operation in named(Trait.DROPS_MASK) and id(fault) in self._negative
                fault.damage = 0.0 if is_masked else None
                if fault.is_harmless:
                    self._forget(fault)
            return
        self._bad[storage_key(result)] = fault
        if made.row != fault.made.row:
            fault.passes.append(made)
        if fault.nan_at is None and bool(result.isnan().any()):
            fault.nan_at = made
        fault.reaches_loss = fault.reaches_loss or (made.is_outside and fault.region == Region.FORWARD.value)

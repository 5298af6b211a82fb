"""Trail of an emulated training: describes its first overflow as it comes, from the counts of casts alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import halfscope
from halfscope.formats import Format
from halfscope.torch.events.place import Region
from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.kinds import kind_of, terms_of
from halfscope.torch.findings.operands import Operand
from halfscope.torch.findings.trail import Ran, Trail, first_tensor, float_tensors
from halfscope.torch.operations.table import NO_ARITHMETIC, Operation, Trait, named
from halfscope.torch.private import storage_key


class LiveTrail(Trail):
    """Follows each step until a fault is found; arithmetic: the emulation's, which runs the operations."""

    def __init__(self, format: Format, arithmetic: Any, excuse: Callable[[Any], None]) -> None:
        """excuse: is told of an overflow that did no harm."""
        super().__init__(format, arithmetic.owner_of)
        self._arithmetic, self._excuse = arithmetic, excuse
        self.found: list[tuple[Any, Fault]] = []  # overflows, as the book has them
        self.is_open = True
        self._now: tuple[Operation, tuple, dict] | None = None
        self._rounded: torch.Tensor | None = None
        self._overflowed: dict[int, tuple] = {}  # by the identity of their counts: the operation that made a tensor
        self._flushed: dict[int, int] = {}  # elements of a storage that became zero when it was rounded
        self._bad: dict[int, Fault] = {}
        self._negative: set[int] = set()  # faults, by identity, whose infinities are all negative

    def begin_step(self, is_open: bool) -> None:
        """is_open: whether no fault is known yet."""
        self.is_open = is_open
        self.made, self._flushed, self._bad, self._overflowed, self._rounded = {}, {}, {}, {}, None

    def around(self, run: Callable, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """Runs an operation, and notes it."""
        if line.kind in NO_ARITHMETIC:
            return run(func, line, args, kwargs)
        outer, self._now = self._now, (line, args, kwargs)
        try:
            result = run(func, line, args, kwargs)
            first = first_tensor(result)
            if first is not None and first.is_floating_point():
                made = self._made_of_largest(args) if self._is_fan_in() else self._made_now()
                if self._bad and made is not None:
                    self._follow(made, first, args)
                if made is not None:
                    self.made[storage_key(first)] = made
            return result
        finally:
            self._now = outer

    def _is_fan_in(self) -> bool:
        place = self._arithmetic.place()
        return place is not None and place.region is Region.FAN_IN

    def _made_of_largest(self, args: tuple) -> Made | None:
        """The operation that made the largest of the gradients which the engine adds up."""
        tensors = [tensor for tensor in float_tensors(args) if tensor.numel() and storage_key(tensor) in self.made]
        largest = max(tensors, key=lambda tensor: float(tensor.detach().abs().max()), default=None)
        return None if largest is None else self.made[storage_key(largest)]

    def see_cast(self, tensor: torch.Tensor, counts: Any) -> None:
        """A tensor has been rounded in place; the book is told of it next, or when its name is known."""
        self._rounded = tensor
        if counts.overflow:
            self._overflowed[id(counts)] = (counts, self.maker_of(tensor), storage_key(tensor))
        if counts.flushed:
            self._flushed[storage_key(tensor)] = counts.flushed

    def describe(self, found: Any, quantizer: str, counts: Any) -> None:
        """An overflow that the book has noted."""
        rounded = self._rounded
        if not self.is_open or rounded is None:
            return
        _, maker, key = self._overflowed.get(id(counts), (counts, self.maker_of(rounded), storage_key(rounded)))
        made = (maker if found.role.endswith("gradient") else None) or self._made_now()
        if made is None or found.role in ("master_weight", "optimizer_state"):
            return
        fault = self._fault(found, made, (Format.of(quantizer), counts), rounded)
        self.found.append((found, fault))
        self._bad[key] = fault
        if not bool((rounded == float("inf")).any()):
            self._negative.add(id(fault))

    def fault_of(self, found: Any) -> Fault | None:
        """The fault behind an overflow of the book."""
        return next((fault for known, fault in self.found if known is found), None)

    def _forget(self, fault: Fault) -> None:
        for overflow in [overflow for overflow, known in self.found if known is fault]:
            self._excuse(overflow)
        self.found = [(overflow, known) for overflow, known in self.found if known is not fault]

    def _made_now(self) -> Made | None:
        if self._now is None:
            return None
        (line, args, kwargs), arithmetic = self._now, self._arithmetic
        place = arithmetic.place()
        is_backward = arithmetic.in_backward
        forward = arithmetic.forward() if is_backward else arithmetic.latest
        ran = Ran(line.name, place, args, kwargs, None, None, forward, is_backward)
        return self.note(ran, None if forward is None else forward.site)

    def _fault(self, found: Any, made: Made, about: tuple[Format, Any], rounded: torch.Tensor) -> Fault:
        format, counts = about
        region = "backward" if found.role.endswith("gradient") else "forward"
        fault = Fault(
            made, format, region, "gradient", counts.max_abs, counts.overflow or counts.nonfinite, counts.elements,
            sources=self.sources_of(made), scale=found.scale,
        )  # fmt: skip
        if region == "backward" or self._now is None:
            return fault
        line, args, kwargs = self._now
        tensors = [tensor for tensor in float_tensors((args, kwargs)) if tensor.dim()]
        fault.operands = list(map(self._operand, tensors))
        fault.has_weight = any(self._owner_of(tensor) is not None for tensor in tensors)
        if found.role == "weight" or found.tensor.endswith(".input"):
            fault.kind = "cast"
        else:
            ran = Ran(line.name, None, args, kwargs, None, None, None)
            fault.kind, fault.terms = kind_of(made, fault.operands, rounded), terms_of(ran, rounded)
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

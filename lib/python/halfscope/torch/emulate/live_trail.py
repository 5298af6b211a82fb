"""Trail of an emulated training: describes its first overflow as it comes, from the counts of casts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.events.observer import Observer, StepPlan, Wants
from halfscope.torch.events.ran import Call, Cast, Ran
from halfscope.torch.findings.fault import Fault, OperationNote
from halfscope.torch.findings.follower import Follower
from halfscope.torch.findings.kinds import kind_of, terms_of
from halfscope.torch.findings.magnitudes import NEAR, relative_error
from halfscope.torch.findings.operands import Operand
from halfscope.torch.findings.trail import Trail, first_tensor, float_tensors, row_of
from halfscope.torch.operations.table import Trait, named
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.distance import distance_sums


class LiveTrail(Trail, Observer):
    """Follows the steps of a training that come before its first fault."""

    def __init__(self, format: Format, excuse: Callable[[Any, str], None]) -> None:
        """excuse: is told of an overflow that did no harm, and of the operation that hid it."""
        super().__init__(format, lambda tensor: self._plan.owner_of(tensor))
        self._excuse = excuse
        self._found: list[tuple[Any, Fault]] = []  # overflows, as the book has them
        self._harmless: set[tuple[str, str]] = set()  # rows of operations, and of what hides their infinities
        self._unused: set[str] = set()  # rows of operations whose infinities are compared at most
        self._follower = Follower(self)
        self._clear()

    def _clear(self) -> None:
        self.made: dict[int, OperationNote] = {}
        self._plan = StepPlan()
        self._noted: tuple[dict, OperationNote] | None = None  # the latest operation, by its arguments
        self._rounded: torch.Tensor | None = None  # the latest tensor of a cast
        self._overflowed: dict[int, tuple] = {}  # by the identity of their counts: the operation that made a tensor
        self._hidden: list[Fault] = []  # harmless ones of this step
        self._flushed: dict[int, int] = {}  # elements of a storage that became zero when it was rounded
        self._follower.clear()
        self._new: Fault | None = None  # from a cast inside of the operation that runs
        self._negative: set[int] = set()  # faults, by identity, whose infinities are all negative
        self._errors: list[tuple[float, float]] = []  # norms of the difference of each weight's gradient, and of FP32's

    @property
    def wants(self) -> Wants:  # type: ignore[override]
        return Wants.SITES | Wants.CASTS | (Wants.ARRIVALS if self._plan.twins else Wants.NOTHING)

    def begin_step(self, plan: StepPlan) -> None:
        self._plan = plan

    def entered_backward(self, roots: list[torch.Tensor]) -> None:
        for fault in self._follower.of(roots):
            fault.reaches_loss = True

    def arrived(self, owned: Any, gradient: torch.Tensor, rounded: torch.Tensor) -> None:
        exact = self._plan.counterpart(gradient)
        if exact is not None:
            sums = distance_sums(rounded, exact)
            self._errors.append((math.sqrt(sums.squared_error), math.sqrt(sums.squared_size)))

    def end_step(self, stepped: bool) -> None:
        """Infinities that nothing hid are excused where all gradients of the step are FP32's."""
        errors, norms = (math.hypot(*column) for column in zip(*self._errors, (0.0, 0.0)))
        is_as_exact = stepped and bool(self._errors) and errors <= NEAR * norms
        for fault in [fault for _, fault in self._found]:
            if is_as_exact or fault.made.row in self._unused:
                fault.end_unused()
            if fault.is_unused:
                self._unused.add(fault.made.row)
                self._forget(fault)
        self._clear()

    def ran(self, ran: Ran) -> None:
        """Notes an operation."""
        first = first_tensor(ran.result)
        if first is None or not first.is_floating_point():
            return
        made = self.made_of_largest(ran.args) if ran.is_fan_in else self._made_by(ran)
        if made is None:
            return
        new, self._new = self._new, None
        if self._follower or new is not None:
            self._follower.ran(ran, made, new)
        self.made[storage_key(first)] = made

    def _made_by(self, call: Call) -> OperationNote:
        """The operation, one for a call and its run: they share the dictionary of arguments."""
        if self._noted is None or self._noted[0] is not call.kwargs:
            self._noted = call.kwargs, self.note(call, None if call.forward is None else call.forward.site)
        return self._noted[1]

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
        if made is None and call is not None:
            made = self._made_by(call)
        if made is None:
            return
        fault = self._fault(first, made, (Format.of(cast.quantizer), counts, rounded), call)
        self._found.append((first, fault))
        if fault.region == "backward":
            self._follower.carry(key, fault)
        else:  # carried by the result: an operand is a copy
            self._new = fault
        if not bool((rounded == float("inf")).any()):
            self._negative.add(id(fault))

    def fault_of(self, found: Any) -> Fault | None:
        """The fault behind an overflow of the book."""
        return next((fault for known, fault in self._found if known is found), None)

    def _forget(self, fault: Fault) -> None:
        self._hidden.append(fault)
        for overflow in [overflow for overflow, known in self._found if known is fault]:
            self._excuse(overflow, "" if fault.hidden_by is None else fault.hidden_by.operation)
        self._found = [(overflow, known) for overflow, known in self._found if known is not fault]

    def _fault(
        self, found: Any, made: OperationNote, about: tuple[Format, Any, torch.Tensor], call: Call | None
    ) -> Fault:
        """about: the format, counts of the cast, and the tensor that it rounded."""
        format, counts, rounded = about
        region = "backward" if found.role.endswith("gradient") else "forward"
        fault = Fault(
            made, format, region, "gradient", counts.max_abs, counts.overflow or counts.nonfinite, counts.elements,
            sources=self.sources_of(made), scale=found.scale,
            forward=next((fault for fault in self._hidden if fault.made.row == made.row), None),
        )  # fmt: skip
        if region == "backward" or call is None:
            return fault
        tensors = [tensor for tensor in float_tensors((call.args, call.kwargs)) if tensor.dim()]
        fault.operands = list(map(self._operand, tensors))
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
            flushed = int((device_of(positive).round(positive, self.format.name) == 0).sum())
        return Operand(
            self.name_of(tensor), float(magnitudes.max()) if magnitudes.numel() else 0.0,
            float(positive.min()) if positive.numel() else 0.0, flushed, 0,
        )  # fmt: skip

    def bad(self, ran: Ran) -> torch.Tensor | None:
        """Elements that are not finite: the cast that made the first of them has told of it."""
        result = first_tensor(ran.result)
        return None if bool(result.isfinite().all()) else ~result.isfinite()

    def born(self, ran: Ran, made: OperationNote, bad: torch.Tensor) -> None:
        """Faults come from casts: see `overflowed`."""

    def damage(self, ran: Ran, fault: Fault) -> float | None:
        """None of a softmax that drops a mask; that of others is known in a step that is compared with FP32."""
        if ran.operation in named(Trait.DROPS_MASK) and id(fault) in self._negative:
            return 0.0
        if ran.has_exact:
            return relative_error(first_tensor(ran.result), first_tensor(ran.exact))
        return 0.0 if (fault.made.row, row_of(ran)) in self._harmless else None

    def ended(self, fault: Fault, made: OperationNote) -> None:
        if fault.is_harmless:
            self._harmless.add((fault.made.row, made.row))
            self._forget(fault)

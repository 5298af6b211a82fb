"""Observer of faults: where a step in a format and its FP32 twin part in what is finite."""

from __future__ import annotations

import torch

from halfscope.formats import Format
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.observer import Observer, StepPlan, Wants
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Ran
from halfscope.torch.events.source import Site, current_site
from halfscope.torch.findings.fault import Fault, OperationNote
from halfscope.torch.findings.follower import Follower
from halfscope.torch.findings.kinds import PRODUCTS, kind_of, terms_of
from halfscope.torch.findings.magnitudes import relative_error
from halfscope.torch.findings.operands import Operand, operand_of
from halfscope.torch.findings.trail import Trail, first_tensor, float_tensors
from halfscope.torch.private import storage_key


class Faults(Trail, Observer):
    """Trail of the step, and the judge of its faults; `found` in the order in which they came.

    Observers that stand before it in the plan ask it what an operation made, and who made its operands before.
    """

    wants = Wants.SITES

    def __init__(self, format: Format, scale: float) -> None:
        """scale: the loss scale."""
        super().__init__(format, lambda tensor: self._plan.owner_of(tensor))
        self._scale = scale
        self.found: list[Fault] = []
        self._follower = Follower(self)
        self._plan = StepPlan()
        self._noted: tuple[Ran, OperationNote | None] | None = None  # the operation that is looked at

    def begin_step(self, plan: StepPlan) -> None:
        self._plan = plan
        self._follower.clear()
        self.made.clear()

    def made_by(self, ran: Ran) -> OperationNote | None:
        """The operation as later ones need to know it; None of one that FP32 has no numbers beside."""
        if self._noted is None or self._noted[0] is not ran:
            self._noted = ran, self._note_of(ran)
        return self._noted[1]

    def _note_of(self, ran: Ran) -> OperationNote | None:
        result, exact = first_tensor(ran.result), first_tensor(ran.exact)
        if result is None or exact is None or not result.is_floating_point() or result.shape != exact.shape:
            return None
        made = self.made_of_largest(ran.args) if ran.is_fan_in else self.note(ran, self._site_of(ran))
        if made is None or ran.is_fan_in:
            return made
        if ran.operation in (*PRODUCTS, "sin", "cos"):
            made.largest = largest_of(float_tensors(ran.args)[0] if ran.operation in ("sin", "cos") else exact)
        return made

    def ran(self, ran: Ran) -> None:
        made = self.made_by(ran)
        self._noted = None
        if made is None:
            return
        if region_of(ran) == Region.BACKWARD.value:
            self._look_at_gradients(float_tensors((ran.args, ran.kwargs)))
        self._follower.ran(ran, made)
        self.made[storage_key(first_tensor(ran.result))] = made

    def _site_of(self, ran: Ran) -> Site | None:
        """The line that calls it; an operation outside of the model is noted for its backward pass too."""
        if ran.forward is not None or ran.is_backward or ran.place is not None:
            return None if ran.forward is None else ran.forward.site
        site = current_site()
        self._plan.note(Forward(ran.operation, ran.operation, ran.operation, site=site))
        return site

    def bad(self, ran: Ran) -> torch.Tensor | None:
        """Elements that are not finite, and are in FP32."""
        result, exact = first_tensor(ran.result), first_tensor(ran.exact)
        if bool(result.isfinite().all()):
            return None
        bad: torch.Tensor = ~result.isfinite() & exact.isfinite()
        return bad if bool(bad.any()) else None

    def damage(self, ran: Ran, fault: Fault) -> float | None:
        return relative_error(first_tensor(ran.result), first_tensor(ran.exact))

    def ended(self, fault: Fault, made: OperationNote) -> None:
        """Faults that are harmless stay in the list."""

    def born(self, ran: Ran, made: OperationNote, bad: torch.Tensor) -> Fault:
        """A fault of the operation; that of a cast in a backward pass may be another's."""
        exact, operands, region = first_tensor(ran.exact), float_tensors((ran.args, ran.kwargs)), region_of(ran)
        described = [self._operand(tensor) for tensor in operands if tensor.dim()]
        sources = self.sources_of(made)
        kind = kind_of(made, described, first_tensor(ran.result))
        if kind == "cast" and region != "forward":
            known = self._fault_of_cast(operands, described)
            if known is not None:
                return known
        value = float(exact[exact.isfinite()].abs().max()) if exact.isfinite().any() else 0.0
        if kind == "cast":
            value = max(operand.largest for operand in described if operand.infinite)
        terms = 0 if kind == "cast" else terms_of(ran.operation, ran.args, exact)
        fault = Fault(
            made, self.format, region, kind, value, int(bad.sum()), exact.numel(), terms, described, sources,
            self._scale,
        )  # fmt: skip
        self.found.append(fault)
        return fault

    def _fault_of_cast(self, operands: list[torch.Tensor], described: list[Operand]) -> Fault | None:
        """The fault of a cast in a backward pass: a gradient's, or that of the same tensor in the forward pass."""
        whole = [tensor for tensor in operands if tensor.dim()]
        infinite = [tensor for tensor, each in zip(whole, described) if each.infinite]
        if any(self._plan.counterpart(tensor) is not None for tensor in infinite):
            return self._gradient_fault(infinite)
        keys = set(map(storage_key, infinite))
        return next((fault for fault in self.found if fault.kind == "cast" and keys & set(fault.made.inputs)), None)

    def _operand(self, tensor: torch.Tensor) -> Operand:
        exact = self._plan.counterpart(tensor)
        seen = tensor
        if exact is None:
            exact = tensor.detach().clone()
            if tensor.dtype is torch.float32:
                seen = device_of(exact).round(exact, self.format.name)
        return operand_of(self.name_of(tensor), tensor, exact, seen)

    def _look_at_gradients(self, operands: list[torch.Tensor]) -> None:
        """Gradients are rounded by the operation that uses them: an overflow is that of the one which made them."""
        for tensor in operands:
            exact, key = self._plan.counterpart(tensor), storage_key(tensor)
            if exact is None or self._follower.carries(key) or key not in self.made or bool(tensor.isfinite().all()):
                continue
            bad = ~tensor.isfinite() & exact.isfinite()
            if not bool(bad.any()):
                continue
            self._follower.carry(key, self._gradient_fault([tensor]))

    def _gradient_fault(self, operands: list[torch.Tensor]) -> Fault:
        """An overflow of the largest of these gradients, which the operation that made it is blamed for."""
        found = [(tensor, self._plan.counterpart(tensor)) for tensor in operands]
        sizes = [(largest_of(exact), tensor) for tensor, exact in found if exact is not None]
        largest, tensor = max(sizes, key=lambda size: size[0])
        made = self.made.get(storage_key(tensor)) or OperationNote("gradient", "", "", None)
        count = int(device_of(tensor).round(tensor, self.format.name).isinf().sum())
        fault = Fault(
            made, self.format, "backward", "gradient", largest, count, tensor.numel(), sources=self.sources_of(made),
            scale=self._scale, forward=self._fault_forward(made),
        )  # fmt: skip
        self.found.append(fault)
        return fault

    def _fault_forward(self, made: OperationNote) -> Fault | None:
        """Fault of the operation in the forward pass."""
        return next((each for each in self.found if each.region == "forward" and each.made.row == made.row), None)


def region_of(ran: Ran) -> str:
    if ran.place is None:
        return "backward" if ran.is_backward else "forward"
    return ran.place.region.value


def largest_of(exact: torch.Tensor) -> float:
    """The largest finite magnitude."""
    finite = exact[exact.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0

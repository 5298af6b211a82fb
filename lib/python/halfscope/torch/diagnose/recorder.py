"""Recorder of a step that is computed in a format and in FP32 side by side: where the two part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import halfscope
from halfscope.formats import Format
from halfscope.torch.diagnose.losses import Losses, relative_error
from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.place import Region
from halfscope.torch.events.source import Site
from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.kinds import PRODUCTS, kind_of, terms_of
from halfscope.torch.findings.operands import Constant, Operand, operand_of
from halfscope.torch.findings.trail import Ran, Trail, first_tensor, float_tensors
from halfscope.torch.private import storage_key


@dataclass
class InputChange:
    """The effect of a cast on a tensor that the model was given, or has made of integers."""

    name: str
    site: Site | None
    elements: int
    changed: int
    largest_change: float
    distinct: int
    distinct_before: int
    flushed: int
    is_whole: bool  # integers before the cast
    is_buffer: bool
    exact: list[float]  # the first of those that changed, and what became of them
    stored: list[float]


class Recorder(Trail):
    """Observes every operation of a step; `faults` in the order in which they came."""

    def __init__(self, format: Format, scale: float = 1.0) -> None:
        super().__init__(format, lambda tensor: self._arithmetic.owner_of(tensor))
        self.scale = scale
        self.faults: list[Fault] = []
        self.phases: list[tuple[Made, float, list[Made]]] = []  # absolute errors of angles
        self.inputs: dict[str, InputChange] = {}
        self.operations = 0
        self._bad: dict[int, Fault] = {}
        self.log_softmax_error: tuple[float, list[Made]] | None = None
        self._output: tuple[torch.Tensor, torch.Tensor] | None = None  # the model's last result, and FP32's
        self.losses = Losses(self)

    def attach(self, shadows: Any, arithmetic: Any) -> None:
        """To a step that begins."""
        self.shadows, self._arithmetic = shadows, arithmetic
        self.made, self._bad = {}, {}

    @property
    def output_error(self) -> float:
        """Relative error of the model's last result."""
        return 0.0 if self._output is None else relative_error(*self._output)

    def see(self, ran: Ran) -> None:
        result, exact = first_tensor(ran.result), first_tensor(ran.exact)
        if result is None or exact is None or not result.is_floating_point() or result.shape != exact.shape:
            return
        self.operations += 1
        operands = float_tensors((ran.args, ran.kwargs))
        ran.is_backward = self._arithmetic.in_backward
        made = self.note(ran, self._site_of(ran))
        if ran.operation in (*PRODUCTS, "sin", "cos"):
            made.largest = _largest(operands[0] if ran.operation in ("sin", "cos") else exact)
        region = "forward" if ran.place is None else ran.place.region.value
        if region == Region.BACKWARD.value:
            self._look_at_gradients(ran, operands)
        self._follow(ran, made, operands, region)
        self._look_at_angles(ran, made, operands)
        self.losses.see(ran, made, operands)
        if ran.place is not None and region == Region.FORWARD.value:
            self._output = result, exact
        self.made[storage_key(result)] = made

    def _site_of(self, ran: Ran) -> Site | None:
        """The line that calls it; an operation outside of the model is noted for its backward pass too."""
        if ran.forward is not None or ran.is_backward or ran.place is not None:
            return None if ran.forward is None else ran.forward.site
        site: Site | None = self._arithmetic.find_site()
        self._arithmetic.note(Forward(ran.operation, ran.operation, ran.operation, site=site))
        return site

    def _follow(self, ran: Ran, made: Made, operands: list[torch.Tensor], region: str) -> None:
        """Finds a fault, passes one on, or sees it hidden."""
        result, exact = first_tensor(ran.result), first_tensor(ran.exact)
        count = 0 if bool(result.isfinite().all()) else int((~result.isfinite() & exact.isfinite()).sum())
        above = [self._bad[key] for key in map(storage_key, operands) if key in self._bad]
        if not count:
            for parent in above:
                if parent.hidden_by is None and not parent.reaches_loss:
                    parent.hidden_by, parent.damage = made, relative_error(result, exact)
            return
        if not above:
            above = [self._fault(ran, made, operands, (region, count, exact))]
        for parent in above[:1]:
            self._bad[storage_key(result)] = parent
            if made is not parent.made:
                parent.passes.append(made)
            if parent.nan_at is None and bool((result.isnan() & exact.isfinite()).any()):
                parent.nan_at = made
            if ran.place is None and region == "forward":
                parent.reaches_loss = True

    def _fault(self, ran: Ran, made: Made, operands: list[torch.Tensor], found: tuple[str, int, torch.Tensor]) -> Fault:
        region, count, exact = found
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
        terms = 0 if kind == "cast" else terms_of(ran, exact)
        fault = Fault(
            made, self.format, region, kind, value, count, exact.numel(), terms, described, sources,
            self.scale, has_weight=any(self._arithmetic.owner_of(tensor) is not None for tensor in operands),
        )  # fmt: skip
        self.faults.append(fault)
        return fault

    def _fault_of_cast(self, operands: list[torch.Tensor], described: list[Operand]) -> Fault | None:
        """The fault of a cast in a backward pass: a gradient's, or that of the same tensor in the forward pass."""
        whole = [tensor for tensor in operands if tensor.dim()]
        infinite = [tensor for tensor, each in zip(whole, described) if each.infinite]
        if any(self.shadows.counterpart(tensor) is not None for tensor in infinite):
            return self._gradient_fault(infinite)
        keys = set(map(storage_key, infinite))
        return next((fault for fault in self.faults if fault.kind == "cast" and keys & set(fault.made.inputs)), None)

    def _operand(self, tensor: torch.Tensor) -> Operand:
        exact = self.shadows.counterpart(tensor)
        seen = tensor
        if exact is None:
            exact = tensor.detach().clone()
            if tensor.dtype is torch.float32:
                seen = halfscope.round(exact.contiguous(), self.format.name)
        return operand_of(self.name_of(tensor), tensor, exact, seen)

    def _look_at_gradients(self, ran: Ran, operands: list[torch.Tensor]) -> None:
        """Gradients are rounded by the operation that uses them: an overflow is that of the one which made them."""
        for tensor in operands:
            exact, key = self.shadows.counterpart(tensor), storage_key(tensor)
            if exact is None or key in self._bad or key not in self.made or bool(tensor.isfinite().all()):
                continue
            bad = ~tensor.isfinite() & exact.isfinite()
            if not bool(bad.any()):
                continue
            self._bad[key] = self._gradient_fault([tensor])

    def _gradient_fault(self, operands: list[torch.Tensor]) -> Fault:
        """An overflow of the largest of these gradients, which the operation that made it is blamed for."""
        found = [(tensor, self.shadows.counterpart(tensor)) for tensor in operands]
        sizes = [(_largest(exact), tensor) for tensor, exact in found if exact is not None]
        largest, tensor = max(sizes, key=lambda size: size[0])
        made = self.made.get(storage_key(tensor)) or Made("gradient", "", "", None)
        count = int((halfscope.round(tensor.detach().float().contiguous(), self.format.name).isinf()).sum())
        fault = Fault(
            made, self.format, "backward", "gradient", largest, count, tensor.numel(), sources=self.sources_of(made),
            scale=self.scale, forward=self._fault_forward(made),
        )  # fmt: skip
        self.faults.append(fault)
        return fault

    def _fault_forward(self, made: Made) -> Fault | None:
        """That of the operation in the forward pass."""
        return next((each for each in self.faults if each.region == "forward" and each.made.row == made.row), None)

    def _look_at_angles(self, ran: Ran, made: Made, operands: list[torch.Tensor]) -> None:
        if ran.operation in ("sin", "cos") and ran.place is not None and operands:
            exact = self.shadows.counterpart(operands[0])
            if exact is not None and ran.place.region is Region.FORWARD:
                error = float((operands[0].double() - exact.double()).abs().nan_to_num(0, 0, 0).max())
                self.phases.append((made, error, self.sources_of(made)))
        if ran.operation == "_log_softmax":
            difference = (first_tensor(ran.result).double() - first_tensor(ran.exact).double()).abs()
            self.log_softmax_error = float(difference.nan_to_num(0, 0, 0).max()), self.sources_of(made)

    def see_cast(self, tensor: torch.Tensor, rounded: torch.Tensor, name: str) -> None:
        """A tensor that no operation in the format has made is cast."""
        exact = self.shadows.counterpart(tensor)
        if not tensor.numel() or (exact is not None and not torch.equal(exact, tensor)):
            return  # an array that an operation has changed already is no input
        owned = self._arithmetic.owner_of(tensor)
        before, after = tensor.detach().flatten(), rounded.detach().flatten()
        if owned is not None:  # all of it, whichever part is used
            before, name = owned.tensor.detach().float().flatten(), owned.name
            after = halfscope.round(before.contiguous(), self.format.name)
        change = (before.double() - after.double()).abs()
        where = (change > 0).nonzero().flatten()
        known = self.inputs.get(name)
        if not where.numel() or (known is not None and known.changed >= where.numel()):
            return
        most = (change / before.double().abs().clamp(min=1e-300)).argsort(descending=True)[:3]
        worst = most.sort().values[: where.numel()]
        self.inputs[name] = InputChange(
            name, self._arithmetic.find_site(), before.numel(), where.numel(),
            float(change.nan_to_num(0, 0, 0).max()), after.unique().numel(), before.unique().numel(),
            int(((after == 0) & (before != 0)).sum()), bool((before == before.round()).all()), owned is not None,
            before[worst].tolist(), after[worst].tolist(),
        )  # fmt: skip


def _largest(exact: torch.Tensor) -> float:
    finite = exact[exact.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


__all__ = ["Constant", "InputChange", "Ran", "Recorder"]

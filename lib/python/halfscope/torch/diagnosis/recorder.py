"""Recorder of a step that is computed in a format and in FP32 side by side: where the two part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

import halfscope
from halfscope.torch.diagnosis.fault import Fault, Made
from halfscope.torch.diagnosis.finding import called
from halfscope.torch.diagnosis.kinds import PRODUCTS, kind_of, terms_of
from halfscope.torch.diagnosis.operands import Constant, Format, Operand, constants_of, operand_of
from halfscope.torch.emulation.marks import storage_key
from halfscope.torch.emulation.places import Region
from halfscope.torch.source import Site

_DEPTH = 6  # operations that are followed back from a fault


@dataclass
class Ran:
    """An operation that was run in the format and in FP32."""

    operation: str
    place: Any  # None outside of the model
    args: tuple
    kwargs: dict
    exact: Any
    result: Any
    forward: Any  # the forward operation, or that whose gradient is computed


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


@dataclass
class Recorder:
    """Observes every operation of a step; `faults` in the order in which they came."""

    format: Format
    scale: float = 1.0
    faults: list[Fault] = field(default_factory=list)
    phases: list[tuple[Made, float, list[Made]]] = field(default_factory=list)  # absolute errors of angles
    inputs: dict[str, InputChange] = field(default_factory=dict)
    operations: int = 0

    def __post_init__(self) -> None:
        self.made: dict[int, Made] = {}
        self._bad: dict[int, Fault] = {}
        self.log_softmax_error: tuple[float, list[Made]] | None = None

    def attach(self, shadows: Any, arithmetic: Any) -> None:
        """To a step that begins."""
        self._shadows, self._arithmetic = shadows, arithmetic
        self.made, self._bad = {}, {}

    def see(self, ran: Ran) -> None:
        result, exact = _first(ran.result), _first(ran.exact)
        if result is None or exact is None or not result.is_floating_point() or result.shape != exact.shape:
            return
        self.operations += 1
        operands = [value for value in _tensors((ran.args, ran.kwargs)) if value.is_floating_point()]
        made = self._note(ran, operands, exact)
        region = "forward" if ran.place is None else ran.place.region.value
        if region == Region.BACKWARD.value:
            self._look_at_gradients(ran, operands)
        self._follow(ran, made, operands, region)
        self._look_at_angles(ran, made, operands)
        self.made[storage_key(result)] = made

    def _note(self, ran: Ran, operands: list[torch.Tensor], exact: torch.Tensor) -> Made:
        forward = ran.forward
        is_backward = ran.place is not None and ran.place.region is Region.BACKWARD
        given = [value for value in ran.args if isinstance(value, (int, float)) and not isinstance(value, bool)]
        factors = [tensor for tensor in operands if tensor.dim()]
        return Made(
            operation=forward.operation if is_backward and forward is not None else ran.operation,
            row=ran.operation if forward is None else forward.row or forward.tensor,
            module="" if ran.place is None else ran.place.module,
            site=None if forward is None else forward.site,
            constants=constants_of((ran.args, ran.kwargs), self.format, self._is_known),
            inputs=[storage_key(tensor) for tensor in operands],
            exponent=float(given[-1]) if ran.operation == "pow" and given and not is_backward else None,
            is_square=ran.operation == "mul"
            and len(factors) == 2
            and storage_key(factors[0]) == storage_key(factors[1]),
            largest=_largest(exact) if ran.operation in PRODUCTS else 0.0,
        )

    def _is_known(self, tensor: torch.Tensor) -> bool:
        return storage_key(tensor) in self.made or self._arithmetic.owner_of(tensor) is not None

    def _follow(self, ran: Ran, made: Made, operands: list[torch.Tensor], region: str) -> None:
        """Finds a fault, passes one on, or sees it hidden."""
        result, exact = _first(ran.result), _first(ran.exact)
        count = 0 if bool(result.isfinite().all()) else int((~result.isfinite() & exact.isfinite()).sum())
        above = [self._bad[key] for key in map(storage_key, operands) if key in self._bad]
        if not count:
            for parent in above:
                if parent.hidden_by is None and not parent.reaches_loss:
                    parent.hidden_by, parent.damage = made, _relative_error(result, exact)
            return
        if not above:
            above = [self._fault(ran, made, operands, (region, count, exact))]
        for parent in above[:1]:
            self._bad[storage_key(result)] = parent
            if parent.nan_at is None and bool((result.isnan() & exact.isfinite()).any()):
                parent.nan_at = made
            if ran.place is None and region == "forward":
                parent.reaches_loss = True

    def _fault(self, ran: Ran, made: Made, operands: list[torch.Tensor], found: tuple[str, int, torch.Tensor]) -> Fault:
        region, count, exact = found
        described = [self._operand(tensor) for tensor in operands if tensor.dim()]
        sources = self._sources(made)
        kind = kind_of(made, described, _first(ran.result))
        if kind == "cast" and region != "forward":
            return self._gradient_fault(operands)
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

    def _operand(self, tensor: torch.Tensor) -> Operand:
        exact = self._shadows.counterpart(tensor)
        seen = tensor
        if exact is None:
            exact = tensor.detach().clone()
            if tensor.dtype is torch.float32:
                seen = halfscope.round(exact.contiguous(), self.format.name)
        return operand_of(self.name_of(tensor), tensor, exact, seen)

    def name_of(self, tensor: torch.Tensor) -> str:
        owned = self._arithmetic.owner_of(tensor)
        if owned is not None:
            return str(owned.name)
        made = self.made.get(storage_key(tensor))
        return "the input" if made is None else called(made.row)

    def _sources(self, made: Made) -> list[Made]:
        """The operations before it, the nearest first."""
        found: list[Made] = []
        level = list(made.inputs)
        for _ in range(_DEPTH):
            nearer = [self.made[key] for key in level if key in self.made]
            nearer = [each for each in nearer if each not in found and each is not made]
            found += nearer
            level = [key for each in nearer for key in each.inputs]
        return found

    def _look_at_gradients(self, ran: Ran, operands: list[torch.Tensor]) -> None:
        """Gradients are rounded by the operation that uses them: an overflow is that of the one which made them."""
        for tensor in operands:
            exact, key = self._shadows.counterpart(tensor), storage_key(tensor)
            if exact is None or key in self._bad or key not in self.made or bool(tensor.isfinite().all()):
                continue
            bad = ~tensor.isfinite() & exact.isfinite()
            if not bool(bad.any()):
                continue
            self._bad[key] = self._gradient_fault([tensor])

    def _gradient_fault(self, operands: list[torch.Tensor]) -> Fault:
        """An overflow of the largest of these gradients, which the operation that made it is blamed for."""
        found = [(tensor, self._shadows.counterpart(tensor)) for tensor in operands]
        sizes = [(float(exact[exact.isfinite()].abs().max()), tensor) for tensor, exact in found if exact is not None]
        largest, tensor = max(sizes, key=lambda size: size[0])
        made = self.made.get(storage_key(tensor)) or Made("gradient", "", "", None)
        count = int((halfscope.round(tensor.detach().float().contiguous(), self.format.name).isinf()).sum())
        fault = Fault(
            made, self.format, "backward", "gradient", largest, count, tensor.numel(), sources=self._sources(made),
            scale=self.scale,
        )  # fmt: skip
        self.faults.append(fault)
        return fault

    def _look_at_angles(self, ran: Ran, made: Made, operands: list[torch.Tensor]) -> None:
        if ran.operation in ("sin", "cos") and ran.place is not None and operands:
            exact = self._shadows.counterpart(operands[0])
            if exact is not None and ran.place.region is Region.FORWARD:
                error = float((operands[0].double() - exact.double()).abs().nan_to_num(0, 0, 0).max())
                self.phases.append((made, error, self._sources(made)))
        if ran.operation == "_log_softmax":
            difference = (_first(ran.result).double() - _first(ran.exact).double()).abs()
            self.log_softmax_error = float(difference.nan_to_num(0, 0, 0).max()), self._sources(made)

    def see_cast(self, tensor: torch.Tensor, rounded: torch.Tensor, name: str) -> None:
        """A tensor that no operation in the format has made is cast."""
        exact = self._shadows.counterpart(tensor)
        if not tensor.numel() or (exact is not None and not torch.equal(exact, tensor)):
            return  # what an operation has changed already is not an input
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


def _first(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        value = value[0] if value else None
    return value if isinstance(value, torch.Tensor) else None


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _tensors(part)]
    return []


def _largest(exact: torch.Tensor) -> float:
    finite = exact[exact.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _relative_error(result: torch.Tensor, exact: torch.Tensor) -> float:
    a, b = result.double(), exact.double()
    both = a.isfinite() & b.isfinite()
    norm = float((b[both] ** 2).sum()) ** 0.5
    return float(((a[both] - b[both]) ** 2).sum()) ** 0.5 / norm if norm else 0.0


__all__ = ["Constant", "InputChange", "Ran", "Recorder"]

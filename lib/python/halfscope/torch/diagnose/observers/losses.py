"""Digits that an operation loses: differences that cancel, products that vanish, sums that stop growing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from halfscope.torch.events.observer import Observer, StepPlan
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Ran
from halfscope.torch.findings.fault import OperationNote
from halfscope.torch.findings.magnitudes import relative_error
from halfscope.torch.findings.trail import first_tensor, float_tensors
from halfscope.torch.operations.table import TABLE, Kind, Trait, named

_BEFORE, _AFTER = 0.05, 0.3  # relative errors of all operands, and of the result
_NOISE = {True: 2.0**-22, False: 1e-4}  # for differences and for others: a smaller result may be FP32's own error
_MANY = 16  # additions to one total
_STALLED = 0.02


@dataclass
class Loss:
    """A forward operation whose result is far from FP32's although its operands are not."""

    made: OperationNote
    before: float  # relative errors
    after: float
    largest_operand: float
    largest: float  # largest of FP32's results
    zeros: int  # results that are 0, and are not in FP32
    elements: int
    maker: OperationNote | None  # maker of its first operand
    sources: list[OperationNote]  # operations before it


@dataclass
class Total:
    """A total to which the same line adds again and again."""

    made: OperationNote
    error: float = 0.0  # relative, after the last one
    largest: float = 0.0  # the total in the format, and in FP32
    exact: float = 0.0
    term: float = 0.0  # the largest term
    rows: list[str] = field(default_factory=list)  # rows on its results


class Losses(Observer):
    """Losses of a step; trail: knows the operations."""

    def __init__(self, trail: Any) -> None:
        self._trail = trail
        self._plan = StepPlan()
        self.found: list[Loss] = []
        self.totals: dict[Any, Total] = {}

    def begin_step(self, plan: StepPlan) -> None:
        self._plan = plan

    def ran(self, ran: Ran) -> None:
        made, result, exact = self._trail.made_by(ran), first_tensor(ran.result), first_tensor(ran.exact)
        if made is None or not bool(result.isfinite().all()):
            return
        operands = float_tensors((ran.args, ran.kwargs))
        is_forward = ran.place is not None and ran.place.region is Region.FORWARD
        if ran.operation in named(Trait.RUNNING_TOTAL) and not (ran.is_backward and ran.place is not None):
            self._add(ran, made, operands, (result, exact))
        if is_forward and not self.found:
            self._compare(ran, made, operands, (result, exact))

    def _compare(self, ran: Ran, made: OperationNote, operands: list[torch.Tensor], both: tuple) -> None:
        result, exact = both
        line = TABLE.get(ran.operation)
        if line is None or line.kind in (Kind.EXACT, Kind.LOSS) or ran.operation in named(Trait.ANGLE) or not operands:
            return
        after = relative_error(result, exact)
        if after < _AFTER:
            return
        counterparts = [(tensor, self._plan.counterpart(tensor)) for tensor in operands if tensor.dim()]
        pairs = [(tensor, other) for tensor, other in counterparts if other is not None]
        before = max((relative_error(tensor, other) for tensor, other in pairs), default=0.0)
        sizes = [float(tensor.abs().max()) for tensor in operands if tensor.numel()]
        largest, size = float(exact.abs().max()), max(sizes, default=0.0)
        if before > _BEFORE or largest <= _NOISE[ran.operation in named(Trait.DIFFERENCE)] * size:
            return
        zeros = int(((result == 0) & (exact != 0)).sum())
        maker = self._trail.maker_of(operands[0])
        self.found.append(
            Loss(made, before, after, size, largest, zeros, exact.numel(), maker, self._trail.sources_of(made))
        )

    def _add(self, ran: Ran, made: OperationNote, operands: list[torch.Tensor], both: tuple) -> None:
        result, exact = both
        terms = [value for value in ran.args[1:2] if isinstance(value, (int, float, torch.Tensor))]
        if not terms or not operands or not exact.numel():
            return
        engine = ran.is_backward or made.site is None  # adds up gradients
        key = (operands[0].data_ptr(), "") if engine else (str(made.site), made.operation)
        total = self.totals.setdefault(key, Total(replace(made, site=None) if engine else made))
        total.rows.append(made.row)
        total.error = relative_error(result, exact)
        total.largest, total.exact = float(result.abs().max()), float(exact.abs().max())
        term = terms[0].abs().max() if isinstance(terms[0], torch.Tensor) else abs(terms[0])
        total.term = max(total.term, float(term))

    @property
    def stalled(self) -> list[Total]:
        """Totals of many terms that are off by more than the terms' own rounding explains."""
        return [total for total in self.totals.values() if len(total.rows) >= _MANY and total.error > _STALLED]

"""Observer of inputs: what the casts of a model's inputs and constants change."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from halfscope.formats import Format
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.events.observer import Observer, StepPlan, Wants
from halfscope.torch.events.ran import Call, Cast
from halfscope.torch.events.source import Site, current_site


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


class Inputs(Observer):
    """Changes by the name of the tensor: of its casts the one that changes most elements."""

    wants = Wants.CASTS

    def __init__(self, format: Format) -> None:
        self._format = format
        self._plan = StepPlan()
        self.found: dict[str, InputChange] = {}

    def begin_step(self, plan: StepPlan) -> None:
        self._plan = plan

    def cast(self, call: Call | None, cast: Cast) -> None:
        """A tensor that no operation in the format has made is cast."""
        tensor, rounded, name = cast.original, cast.tensor, cast.name
        if tensor is None or rounded is None or cast.role != "activation":
            return
        exact = self._plan.counterpart(tensor)
        if not tensor.numel() or (exact is not None and not torch.equal(exact, tensor)):
            return  # an array that an operation has changed already is no input
        owned = self._plan.owner_of(tensor)
        before, after = tensor.detach().flatten(), rounded.detach().flatten()
        if owned is not None:  # all of it, whichever part is used
            before, name = owned.tensor.detach().float().flatten(), owned.name
            after = device_of(before).round(before, self._format.name)
        change = (before.double() - after.double()).abs()
        where = (change > 0).nonzero().flatten()
        known = self.found.get(name)
        if not where.numel() or (known is not None and known.changed >= where.numel()):
            return
        most = (change / before.double().abs().clamp(min=1e-300)).argsort(descending=True)[:3]
        worst = most.sort().values[: where.numel()]
        self.found[name] = InputChange(
            name, current_site(), before.numel(), where.numel(),
            float(change.nan_to_num(0, 0, 0).max()), after.unique().numel(), before.unique().numel(),
            int(((after == 0) & (before != 0)).sum()), bool((before == before.round()).all()), owned is not None,
            before[worst].tolist(), after[worst].tolist(),
        )  # fmt: skip

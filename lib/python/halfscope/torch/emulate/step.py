"""The step under way: tells its plan's observers and twins what happens in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.events.observer import StepPlan, Twin
from halfscope.torch.events.ran import Call, Cast, Ran
from halfscope.torch.private import without_modes

_NONE = StepPlan()


class Step:
    """Between `begin` and `end` the plan of a step, and the operation that runs."""

    def __init__(self) -> None:
        self.plan = _NONE
        self._call: Call | None = None

    def begin(self, plan: StepPlan) -> None:
        self.plan = plan
        for each in plan.all:
            each.begin_step(plan)

    def end(self, stepped: bool) -> None:
        """Nobody is told of anything until the next step begins."""
        plan, self.plan = self.plan, _NONE
        for each in plan.all:
            each.end_step(stepped)

    def run(self, run: Callable[[Call], Any], call: Call) -> Any:
        """Runs an operation beside its twins, and tells of it."""
        plan, outer = self.plan, self._call
        for twin in plan.twins:
            twin.before(call)
        self._call = call
        try:
            result = run(call)
            ran = Ran.of(call, result)
            for each in plan.all:
                each.ran(ran)
        finally:
            self._call = outer
        return result

    def cast(self, cast: Cast) -> None:
        for each in self.plan.of_casts:
            each.cast(self._call, cast)

    def overflowed(self, cast: Cast, first: Any) -> None:
        for each in self.plan.of_casts:
            each.overflowed(self._call, cast, first)

    def round_arrival(
        self, owned: Any, gradient: torch.Tensor, round: Callable[[Any, torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """Rounds the gradient of a parameter, beside twins: what these compute passes no mode."""
        told = self.plan.of_arrivals
        if not told:
            return round(owned, gradient)
        with without_modes():
            for each in told:
                if isinstance(each, Twin):
                    each.arrives(owned, gradient)
        rounded = round(owned, gradient)
        with without_modes():
            for each in told:
                each.arrived(owned, gradient, rounded)
        return rounded

    def enter_backward(self, roots: list[torch.Tensor]) -> None:
        for each in self.plan.all:
            each.entered_backward(roots)

    def left_node(self, gradients: tuple) -> None:
        told = self.plan.of_nodes
        if told:
            with without_modes():
                for each in told:
                    each.left_node(gradients)

"""Observer of angles and logits: their absolute errors, which sines and losses see."""

from __future__ import annotations

from halfscope.torch.diagnose.observers.faults import Faults
from halfscope.torch.events.observer import Observer, StepPlan
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Ran
from halfscope.torch.findings.fault import OperationNote
from halfscope.torch.findings.trail import first_tensor, float_tensors


class Angles(Observer):
    """Absolute errors, each with the operations that lead there."""

    def __init__(self, trail: Faults) -> None:
        self._trail = trail
        self._plan = StepPlan()
        self.phases: list[tuple[OperationNote, float, list[OperationNote]]] = []
        self.log_softmax_error: tuple[float, list[OperationNote]] | None = None  # the last one's

    def begin_step(self, plan: StepPlan) -> None:
        self._plan = plan

    def ran(self, ran: Ran) -> None:
        if ran.operation in ("sin", "cos"):
            self._look_at_angle(ran)
        elif ran.operation == "_log_softmax":
            self._look_at_logits(ran)

    def _look_at_angle(self, ran: Ran) -> None:
        made, operands = self._trail.made_by(ran), float_tensors((ran.args, ran.kwargs))
        if made is None or not operands or ran.place is None or ran.place.region is not Region.FORWARD:
            return
        exact = self._plan.counterpart(operands[0])
        if exact is not None:
            error = float((operands[0].double() - exact.double()).abs().nan_to_num(0, 0, 0).max())
            self.phases.append((made, error, self._trail.sources_of(made)))

    def _look_at_logits(self, ran: Ran) -> None:
        made = self._trail.made_by(ran)
        if made is not None:
            difference = (first_tensor(ran.result).double() - first_tensor(ran.exact).double()).abs()
            self.log_softmax_error = float(difference.nan_to_num(0, 0, 0).max()), self._trail.sources_of(made)

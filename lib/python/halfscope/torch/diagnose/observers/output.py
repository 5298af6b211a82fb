"""Observer of the model's result: how far it is from FP32's."""

from __future__ import annotations

import torch

from halfscope.torch.diagnose.observers.faults import Faults
from halfscope.torch.events.observer import Observer
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Ran
from halfscope.torch.findings.magnitudes import relative_error
from halfscope.torch.findings.trail import first_tensor


class Output(Observer):
    """The last result of the model, and how many operations there were."""

    def __init__(self, trail: Faults) -> None:
        self._trail = trail
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None  # in the format, and in FP32
        self.operations = 0

    def ran(self, ran: Ran) -> None:
        if self._trail.made_by(ran) is None:
            return
        self.operations += 1
        if ran.place is not None and ran.place.region is Region.FORWARD:
            self._last = first_tensor(ran.result), first_tensor(ran.exact)

    @property
    def error(self) -> float:
        """Relative."""
        return 0.0 if self._last is None else relative_error(*self._last)

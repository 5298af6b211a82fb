"""Record of a step that is computed in a format and in FP32 side by side: where the two part."""

from __future__ import annotations

from halfscope.formats import Format
from halfscope.torch.diagnose.observers.angles import Angles
from halfscope.torch.diagnose.observers.faults import Faults
from halfscope.torch.diagnose.observers.inputs import InputChange, Inputs
from halfscope.torch.diagnose.observers.losses import Losses
from halfscope.torch.diagnose.observers.output import Output
from halfscope.torch.events.observer import Observer
from halfscope.torch.findings.fault import Fault, OperationNote


class Recorder:
    """Observers of a step, and what they have found."""

    def __init__(self, format: Format, scale: float = 1.0) -> None:
        self._faults = Faults(format, scale)
        self._inputs = Inputs(format)
        self._angles = Angles(self._faults)
        self._output = Output(self._faults)
        self.losses = Losses(self._faults)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Observers in the order in which they are told; all ask the trail of faults, which is the last."""
        return self._inputs, self._angles, self.losses, self._output, self._faults

    @property
    def faults(self) -> list[Fault]:
        """Faults in the order in which they came."""
        return self._faults.found

    @property
    def inputs(self) -> dict[str, InputChange]:
        """Changes by the name of a tensor that the model was given or keeps."""
        return self._inputs.found

    @property
    def phases(self) -> list[tuple[OperationNote, float, list[OperationNote]]]:
        """Absolute errors of angles, with the operations before them."""
        return self._angles.phases

    @property
    def log_softmax_error(self) -> tuple[float, list[OperationNote]] | None:
        return self._angles.log_softmax_error

    @property
    def output_error(self) -> float:
        """Relative error of the model's last result."""
        return self._output.error

    @property
    def operations(self) -> int:
        """Operations that were looked at."""
        return self._output.operations


__all__ = ["InputChange", "Recorder"]

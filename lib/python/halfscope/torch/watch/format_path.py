"""Numbers of a format beside those of a watched run, for the tensors that a fault has reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import torch

from halfscope.formats import Format
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.events.ran import Call, Ran
from halfscope.torch.findings.magnitudes import OWN_MINIMUM
from halfscope.torch.findings.trail import first_tensor
from halfscope.torch.operations.counterparts import Counterparts
from halfscope.torch.operations.operators import is_random, target_of, writes
from halfscope.torch.operations.table import Kind
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.elements import HALF
from halfscope.torch.tensors.storages import storage_of
from halfscope.torch.tensors.trees import map_tensors, tensors

_UNROUNDED = (Kind.VIEW, Kind.EXACT, Kind.SOURCE, Kind.LOSS)  # kinds whose results are in the format already, or FP32


class Numbers(NamedTuple):
    """An operation computed in the format."""

    result: Any
    largest: float  # finite magnitude of the result before its rounding


_NONE = Numbers(None, 0.0)


@dataclass(slots=True, eq=False)
class Beside(Ran):
    """An operation that has run, beside its numbers in the format."""

    in_format: Numbers = _NONE

    @property
    def judged(self) -> Any:
        """Result in the format, which is judged."""
        return self.in_format.result

    @classmethod
    def both(cls, call: Call, result: Any, in_format: Numbers) -> Beside:
        return cls(
            call.func, call.line, call.args, call.kwargs, call.place, call.is_backward, result=result,
            in_format=in_format,
        )  # fmt: skip


class FormatPath(Counterparts):
    """Computes operations in a format: operands without a counterpart are rounded, the result is rounded once."""

    def __init__(self, format: Format, is_wide: Callable[[torch.Tensor], bool]) -> None:
        """is_wide: whether a tensor is FP32 in the format's model too."""
        super().__init__()
        self._format, self._is_wide = format, is_wide

    def __bool__(self) -> bool:
        """Whether a tensor has numbers of the format."""
        return bool(self._flats)

    def compute(self, call: Call) -> Numbers | None:
        """An operation in the format, before it runs; None where it draws random numbers, or has no such run."""
        if is_random(call.func):
            return None
        try:
            self._begin_written(call)
            return self._computed(call)
        except Exception:  # the run itself goes on, and tells of its own errors
            return None

    def of_layer(self, layer: torch.nn.Module, given: torch.Tensor) -> Numbers:
        """A layer on its input in the format; its weights are the run's."""
        return self.rounding(layer.forward(self.rounded(given)))

    def rounding(self, result: torch.Tensor) -> Numbers:
        """An operation whose result alone is rounded."""
        return Numbers(self.rounded(result), _largest_finite(result))

    def keep_results(self, ran: Beside) -> None:
        """Numbers of the format become the counterparts of the results."""
        for result, numbers in zip(tensors(ran.result), tensors(ran.in_format.result)):
            if result.is_floating_point():
                self.begin(result)
                known = self.counterpart(result)
                if known is not None and known.data_ptr() != numbers.data_ptr():
                    known.copy_(numbers)

    def has_living(self, key: int) -> bool:
        """Whether a storage that has numbers of the format is in use."""
        return key in self._flats and not self._flats[key][0].expired()

    def clear(self) -> None:
        self._flats = {}

    def release(self, result: torch.Tensor) -> None:
        """Lets a storage go whose numbers in the format are all finite."""
        known = self._flats.get(storage_key(result))
        if known is not None and bool(known[1].isfinite().all()):
            del self._flats[storage_key(result)]

    def _begin_written(self, call: Call) -> None:
        """Storages that the operation writes to have numbers of the format from here on."""
        for key in writes(call.func):
            value = call.args[key] if isinstance(key, int) and key < len(call.args) else call.kwargs.get(str(key))
            map_tensors(value, self.begin)

    def begin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Rounds the whole storage of a tensor, which may be a part of it."""
        if tensor.is_floating_point() and not self.has_any(tensor):
            count = storage_of(tensor).nbytes() // tensor.element_size()
            whole = tensor.detach().as_strided((count,), (1,), 0)
            self.set(whole, self.rounded(whole), is_new=True)
        return tensor

    def _computed(self, call: Call) -> Numbers:
        kept, written = call.line.kept, writes(call.func)
        args = tuple(
            self.own(value) if place in written else self._operand(value, place in kept)
            for place, value in enumerate(call.args)
        )
        named = {key: self.own(value) if key in written else self._operand(value) for key, value in call.kwargs.items()}
        result = call.func(*args, **named)
        largest = _largest_finite(first_tensor(result))
        return Numbers(result if call.line.kind in _UNROUNDED else self._round_results(result, call), largest)

    def _operand(self, value: Any, is_statistic: bool = False) -> Any:
        """An argument that is read: in the format, its minimum in place of FP32's; a statistic in FP32."""
        if isinstance(value, torch.Tensor):
            known = self.counterpart(value)
            if known is not None or not value.is_floating_point():
                return value if known is None else known
            return value.float() if is_statistic or self._is_wide(value) else self.rounded(value)
        if type(value) in (tuple, list):
            return type(value)(map(self._operand, value))
        if isinstance(value, float) and OWN_MINIMUM <= abs(value) < inf:
            return self._format.largest if value > 0 else -self._format.largest
        return torch.float32 if isinstance(value, torch.dtype) and value in HALF else value

    def _round_results(self, results: Any, call: Call) -> Any:
        """Rounds results, in place where they were written to an argument; statistics stay."""
        if target_of(call.func, call.args, call.kwargs) is not None:
            return map_tensors(results, lambda tensor: tensor.copy_(self.rounded(tensor)))
        if not isinstance(results, (tuple, list)):
            return map_tensors(results, self.rounded)
        kept = call.line.statistics
        return [part if place in kept else map_tensors(part, self.rounded) for place, part in enumerate(results)]

    def rounded(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy in the format; FP32's own minimum and maximum are the format's, as a model in it would have them."""
        if not tensor.is_floating_point():
            return tensor
        numbers = tensor.detach().float()
        result = device_of(numbers).round(numbers, self._format.name)
        is_own = (numbers.abs() >= OWN_MINIMUM) & numbers.isfinite()
        limit = self._format.largest
        return torch.where(is_own, numbers.clamp(-limit, limit), result) if bool(is_own.any()) else result


def _largest_finite(result: Any) -> float:
    if result is None or not result.is_floating_point():
        return 0.0
    finite = result.detach()[result.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0

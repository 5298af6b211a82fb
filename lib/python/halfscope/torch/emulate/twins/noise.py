"""A step with roundings at random in place of those of the format: the difference to FP32 that round-off explains."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.formats import element_of
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.emulate.marks import Mark
from halfscope.torch.events.observer import Twin
from halfscope.torch.events.place import Place, Region
from halfscope.torch.events.ran import Call, Ran
from halfscope.torch.operations.counterparts import Counterparts, map_arguments
from halfscope.torch.operations.operators import target_of
from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.policy import FP32
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.elements import HALF
from halfscope.torch.tensors.trees import results


class Noise(Counterparts, Twin):
    """Counterparts that are computed in FP32 and rounded stochastically, wherever the emulation casts.

    A number that the format holds is left alone by both. Sums of products are FP32 in PyTorch's own order.
    """

    def __init__(self, step: int, arithmetic: Any) -> None:
        super().__init__()
        self._step, self._arithmetic = step, arithmetic
        self._drawn = 0
        self._seeds: dict[int, int] = {}  # by storage, in the order of the step, so that each run has the same

    def before(self, call: Call) -> None:
        if call.has_exact:
            self.register_written(call.func, call.args, call.kwargs)

    def ran(self, ran: Ran) -> None:
        """The operation once more, where FP32 has it too; keeps the counterpart of its result."""
        if not ran.has_exact:
            return
        func, line, place, args, kwargs = ran.func, ran.line, ran.place, ran.args, ran.kwargs
        is_wide = ran.forward is not None and ran.forward.is_wide
        rounds = place is not None and place.formats.rounds and not is_wide and line.kind is not Kind.EXACT
        bring = (lambda value: self._operands(value, line, place)) if rounds else self._marked
        own_args, own_kwargs = map_arguments(func, (args, kwargs), self.own, bring)
        noisy = func(*own_args, **own_kwargs)
        kept = rounds and place is not None and place.region is Region.FORWARD
        for position, (part, own) in enumerate(zip(results(ran.result), results(noisy))):
            if isinstance(own, torch.Tensor) and own.dtype is torch.float32 and position not in line.statistics:
                quantizer = HALF.get(part.dtype, place.formats.activation if kept and place else FP32)
                if own.numel() and quantizer != FP32:
                    own.copy_(self._rounded(own, quantizer, storage_key(part)))
        if target_of(func, args, kwargs) is None:
            self.keep(ran.result, noisy, (args, tuple(kwargs.values()), own_args, tuple(own_kwargs.values())))

    def of(self, tensor: torch.Tensor, mark: Mark | None) -> torch.Tensor | None:
        """The counterpart of a tensor, in the format that the emulation has brought it to since."""
        found = self.counterpart(tensor)
        if found is None or mark is None or mark.quantizer in (None, FP32):
            return found
        return self._rounded(found, str(mark.quantizer), storage_key(tensor))

    def set(self, tensor: torch.Tensor, beside: torch.Tensor, is_new: bool = False) -> None:
        super().set(tensor, beside, is_new)
        self._seeds.pop(storage_key(tensor), None)  # from another tensor that has had this storage's address

    def _seed_of(self, key: int) -> int:
        if key not in self._seeds:
            self._drawn += 1
            self._seeds[key] = self._drawn
        return self._seeds[key]

    def _marked(self, value: Any) -> Any:
        """Operands that are not cast now, in the formats that they have been brought to."""
        if isinstance(value, torch.Tensor):
            found = self.of(value, self._arithmetic.marks.get(value)) if value.dtype is torch.float32 else None
            return self.beside(value) if found is None else found
        if isinstance(value, dict):
            return {key: self._marked(part) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self._marked, value))
        return self.beside(value)

    def _operands(self, value: Any, line: Operation, place: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._operand(value, line, place)
        if isinstance(value, dict):
            return {key: self._operands(part, line, place) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(self._operands(part, line, place) for part in value)
        return self.beside(value)

    def _operand(self, tensor: torch.Tensor, line: Operation, place: Place) -> torch.Tensor:
        noisy: torch.Tensor = self.beside(tensor)
        if tensor.dtype is not torch.float32 or not tensor.numel():
            return noisy
        owned, mark = self._arithmetic.owner_of(tensor), self._arithmetic.marks.get(tensor)
        if owned is not None and owned.is_parameter:
            is_cast = self._arithmetic.operands.weight(owned, tensor, line) is not tensor
            return self._rounded(noisy, owned.formats.weight, storage_key(tensor)) if is_cast else noisy
        is_gradient = mark is not None and mark.is_gradient and place.region is not Region.FORWARD
        if (mark is not None and mark.is_wide) or (tensor.dim() == 0 and not is_gradient):
            return noisy
        wanted = place.formats.activation_gradient if is_gradient else place.formats.activation
        return noisy if wanted == FP32 else self._rounded(noisy, wanted, storage_key(tensor))

    def _rounded(self, tensor: torch.Tensor, quantizer: str, key: int) -> torch.Tensor:
        """The same tensor gets the same random numbers."""
        format, seed = element_of(quantizer), self._seed_of(key)
        exact = tensor.detach().float().contiguous()
        rounded = device_of(exact).round(exact, f"{format}/stochastic/saturate", seed=seed, step=self._step)
        return torch.where(exact.isfinite(), rounded, exact)  # infinities of a mask stay

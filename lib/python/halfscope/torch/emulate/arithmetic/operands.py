"""Operands of an emulated operation in the formats of their roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.parameters import ModelTensor, Parameters
from halfscope.torch.emulate.places import Places
from halfscope.torch.events.place import Place, Region
from halfscope.torch.events.ran import Call
from halfscope.torch.operations.table import Operation, autocast_list
from halfscope.torch.policy import FP32, Policy
from halfscope.torch.private import version_of
from halfscope.torch.tensors.storages import covers_storage


class Operands:
    """Casts what is not in its format yet: gradients where they lie, parameters and all else into copies."""

    def __init__(self, policy: Policy, places: Places, caster: Caster, parameters: Parameters, marks: Marks) -> None:
        self._policy, self._places, self._caster = policy, places, caster
        self._parameters, self._marks = parameters, marks
        self.begin_step()

    def begin_step(self) -> None:
        self._copies: dict[tuple, torch.Tensor] = {}  # casts of tensors that stay as they are, in this step
        self._sources: list[torch.Tensor] = []

    def of(self, call: Call, place: Place, args: tuple, in_place: bool) -> tuple:
        """Arguments in their formats; statistics and what an operation writes to are themselves."""
        line = call.line
        cast = tuple(
            value if position in line.kept or (in_place and position == 0) else self.one(value, line, place)
            for position, value in enumerate(args)
        )
        call.note_operands(cast)
        return cast

    def options(self, line: Operation, place: Place, options: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name; what an operation writes to is itself."""
        return {key: value if key == "out" else self.one(value, line, place) for key, value in options.items()}

    def one(self, value: Any, line: Operation, place: Place) -> Any:
        """An argument in its format."""
        if isinstance(value, torch.Tensor):
            return self._cast(value, line, place) if value.dtype is torch.float32 else value
        if isinstance(value, (list, tuple)) and any(isinstance(part, torch.Tensor) for part in value):
            return type(value)(self.one(part, line, place) for part in value)
        return value

    def settled(self, call: Call, place: Place) -> tuple:
        """Arguments of an FP32 operation: gradients that were made in a narrower format are rounded to it."""

        def settle(value: Any) -> Any:
            mark = self._marks.get(value) if isinstance(value, torch.Tensor) else None
            owes = mark is not None and mark.awaits_rounding and mark.quantizer is None
            return self.one(value, call.line, place) if owes else value

        cast = tuple(map(settle, call.args))
        call.note_operands(cast)
        return cast

    def _cast(self, tensor: torch.Tensor, line: Operation, place: Place) -> torch.Tensor:
        owned = self._parameters.owner(tensor)
        if owned is not None and owned.is_parameter:
            return self.weight(owned, tensor, line)
        mark = self._marks.get(tensor)
        is_gradient = mark is not None and mark.is_gradient and place.region is Region.BACKWARD
        wanted = place.formats.activation_gradient if is_gradient else place.formats.activation
        is_number = tensor.dim() == 0 and owned is None and not is_gradient
        if wanted == FP32 or (mark is not None and mark.quantizer == wanted) or is_number:
            return tensor
        role = "activation_gradient" if is_gradient else "activation"
        name = self._gradient_name(line, place) if is_gradient else f"{place.tensor(line.name)}.input"
        if mark is not None and is_gradient:
            self._settle(mark, wanted, name)
            if mark.quantizer is None and not mark.is_wide and covers_storage(tensor):
                self._caster.round(tensor, wanted, role, name)
                mark.round_to(wanted)
                return tensor
        return self._copy(tensor, wanted, role, name)

    def _gradient_name(self, line: Operation, place: Place) -> str:
        """Name of the tensor whose gradient it is."""
        forward = self._places.forward()
        return place.tensor(line.name.removesuffix("_backward")) if forward is None else forward.tensor

    def _settle(self, mark: Any, quantizer: str, name: str) -> None:
        """Enters the casts of a gradient's parts, now that its tensor is known."""
        for counted in mark.take_owed():
            self._caster.owe("activation_gradient", name, quantizer, counted)

    def _copy(self, tensor: torch.Tensor, quantizer: str, role: str, name: str) -> torch.Tensor:
        """A rounded copy, one for all operations of the step: the tensor itself is somebody else's."""
        key = (
            tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), version_of(tensor), quantizer, role
        )  # fmt: skip
        copy = self._copies.get(key)
        if copy is None:
            copy = torch.empty_like(tensor, memory_format=torch.preserve_format).copy_(tensor)
            if not covers_storage(copy):
                copy = tensor.contiguous().clone()
            self._caster.round_copy(tensor, copy, quantizer, role, name)
            self._marks.set(copy, quantizer, role == "activation_gradient")
            if torch.is_grad_enabled() or self._places.in_backward:  # an evaluation keeps nothing
                self._copies[key] = copy
                self._sources.append(tensor)  # so that no other tensor gets its address
        return copy

    def weight(self, owned: ModelTensor, tensor: torch.Tensor, line: Operation) -> torch.Tensor:
        """A parameter, or a view of it, as the operation sees it."""
        quantizer = owned.formats.weight
        if quantizer == FP32 or tensor.dtype is not torch.float32:
            return tensor
        if owned.in_batch_norm and self._policy.keeps_batch_norm:
            return tensor
        if self._policy.fp32_parameters and autocast_list(line, self._policy) != "allow":
            return tensor
        return self._parameters.rounded(owned, tensor, quantizer)

    def weights_of(self, line: Operation) -> Callable[[torch.Tensor], torch.Tensor]:
        """A function that gives parameters their format and leaves other tensors."""

        def weight(tensor: torch.Tensor) -> torch.Tensor:
            owned = self._parameters.owner(tensor)
            return self.weight(owned, tensor, line) if owned is not None and owned.is_parameter else tensor

        return weight

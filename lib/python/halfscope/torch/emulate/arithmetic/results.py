"""Results of emulated operations in the formats of their place: computed in FP32, rounded, and marked as such."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.emulate.arithmetic.computation import Computation
from halfscope.torch.emulate.arithmetic.operands import Operands
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.parameters import ModelTensor, Parameters
from halfscope.torch.events.place import Place, Region
from halfscope.torch.events.ran import Call
from halfscope.torch.operations.operators import is_in_place
from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.policy import FP32
from halfscope.torch.private import with_values
from halfscope.torch.tensors.storages import covers_storage, stored
from halfscope.torch.tensors.trees import floats, map_complex, map_floats, results


class Results:
    """Computes operations of the forward and the backward pass, from operands that it brings to their formats."""

    def __init__(
        self, caster: Caster, parameters: Parameters, marks: Marks, operands: Operands, computation: Computation
    ) -> None:
        self._caster, self._parameters, self._marks = caster, parameters, marks
        self._operands, self._computation = operands, computation

    def outside(self, call: Call, args: tuple, kwargs: dict) -> Any:
        """Not in the model: unchanged. In a backward pass it makes a gradient for the model to round."""
        result = call.func(*args, **kwargs)
        if call.is_backward:
            self._mark_gradients(result)
        elif is_in_place(call.func):
            self.forget(result)
        return result

    def forget(self, result: Any) -> None:
        """Takes the marks of what was written to by an operation of another place."""
        for tensor in floats(result):
            self._marks.forget(tensor)

    def _mark_gradients(self, result: Any, quantizer: str | None = None) -> None:
        for tensor in floats(result):
            self._marks.set(tensor, quantizer, is_gradient=True)

    def mark_wide(self, result: Any, is_gradient: bool) -> None:
        """Results that are FP32 in a model of a narrower format."""
        for tensor in floats(result):
            self._marks.set_wide(tensor, is_gradient)

    def parts(self, tensor: torch.Tensor, line: Operation, place: Place, suffix: str) -> torch.Tensor:
        """Complex numbers whose real and imaginary parts are rounded."""
        role = "activation" if place.region is Region.FORWARD else "activation_gradient"
        quantizer = getattr(place.formats, role)
        mark = self._marks.get(tensor)
        if quantizer == FP32 or (mark is not None and mark.quantizer == quantizer):
            return tensor
        parts = torch.view_as_real(tensor.resolve_conj()).contiguous().clone()
        self._caster.round(parts, quantizer, role, place.tensor(line.name) + suffix)
        self._marks.set(parts, quantizer, place.region is Region.BACKWARD)
        return torch.view_as_complex(parts)

    def round_real(self, tensor: torch.Tensor, line: Operation, place: Place) -> None:
        """A real result of complex operands: a gradient is rounded by the operation that uses it."""
        if place.region is Region.BACKWARD:
            self._mark_gradients(tensor)
        else:
            self.round_result(tensor, place.formats.activation, (place.tensor(line.name), ()))

    def forward(self, call: Call, place: Place, args: tuple, kwargs: dict) -> Any:
        """Computes an operation of the forward pass, rounded; args and kwargs: as a trial may have changed them."""
        func, line, quantizer = call.func, call.line, place.formats.activation
        written = is_in_place(func)
        if written and self._parameters.has(args[0]):  # running averages stay FP32
            return func(*args, **kwargs)
        if line.kind is Kind.EXACT:
            return self._move(call, args, kwargs, quantizer)
        cast = self._operands.of(call, place, args, written)
        result = self._computation.run(call, place, (args, cast), self._operands.options(line, place, kwargs))
        name = place.tensor(line.name)
        for position, tensor in enumerate(results(result)):
            if isinstance(tensor, torch.Tensor) and tensor.dtype is torch.float32 and position not in line.statistics:
                self.round_result(tensor, quantizer, (name, args[1:] if written else args))
        return map_complex(result, lambda tensor: self.parts(tensor, line, place, ""))  # such as polar's

    def _move(self, call: Call, args: tuple, kwargs: dict, quantizer: str) -> Any:
        """An exact operation: what it makes of numbers of a format has that format."""
        func, line = call.func, call.line
        written = is_in_place(func)
        args = (
            (args[0], *map_floats(args[1:], self._operands.weights_of(line)))
            if written
            else map_floats(args, self._operands.weights_of(line))
        )
        sources = args[1:] if written and line.name == "copy" else args
        marks = [self._marks.get(tensor) for tensor in floats((sources, kwargs)) if tensor.dim()]
        result = func(*args, **kwargs)
        if marks and all(mark is not None and mark.quantizer == quantizer for mark in marks):
            if not written or all(map(covers_storage, floats(result))):
                self._mark(result, quantizer)
        elif written:
            self.forget(result)
        return result

    def round_result(self, tensor: torch.Tensor, quantizer: str, about: tuple[str, tuple]) -> None:
        """Rounds in place; about: the tensor's name, and the operands of the operation."""
        if quantizer == FP32:
            return
        name, operands = about
        if covers_storage(tensor):
            self._caster.round(tensor, quantizer, "activation", name, operands)
            self._marks.set(tensor, quantizer, is_gradient=False)
            return
        rounded = tensor.contiguous().clone()  # a part of a storage: of an operation in place on a view
        self._caster.round(rounded, quantizer, "activation", name, operands)
        tensor.copy_(rounded)

    def _mark(self, result: Any, quantizer: str) -> None:
        for tensor in floats(result):
            self._marks.set(tensor, quantizer, is_gradient=False)

    def backward(self, call: Call, place: Place) -> Any:
        """Computes an operation of the backward pass; the operation that uses the result rounds it."""
        cast = self._operands.of(call, place, call.args, is_in_place(call.func))
        options = self._operands.options(call.line, place, call.kwargs)
        if call.line.kind is not Kind.EXACT:
            result = self._computation.run(call, place, (call.args, cast), options)
            for tensor in floats(result):
                self._marks.set(tensor, None, is_gradient=True).await_rounding()
            return result
        result = call.func(*cast, **options)
        self._mark_gradients(result, place.formats.activation_gradient)
        return result

    def fan_in(self, call: Call, place: Place) -> Any:
        """The engine adds another gradient of a tensor: the first is rounded, as memory holds it, the sum when used."""
        owed: list[Any] = []
        args = call.args
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        mark = None if first is None else self._marks.get(first)
        quantizer = place.formats.activation_gradient
        if first is not None and mark is not None and mark.is_gradient:
            owed = mark.owed
            if mark.quantizer is None and quantizer != FP32 and not mark.is_wide and covers_storage(first):
                owed = [*owed, self._caster.round_unnamed(first, quantizer, "activation_gradient")]
                mark.round_to(quantizer)
                mark.take_owed()
        is_wide = any(self._marks.is_wide(tensor) for tensor in floats(args))
        result = call.func(*args, **call.kwargs)
        for tensor in floats(result):
            self._marks.set_sum(tensor, owed, is_wide)
        return result

    def weight_gradient(self, owned: ModelTensor, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient as it arrives at a parameter, in the format of its role."""
        quantizer = owned.formats.weight_gradient
        if gradient.is_sparse:
            return with_values(gradient, self.weight_gradient(owned, stored(gradient)))
        if quantizer == FP32 or gradient.dtype is not torch.float32 or gradient.layout is not torch.strided:
            return gradient
        if self._marks.is_wide(gradient):  # a parameter's that an FP32 operation used
            return gradient
        if not covers_storage(gradient):
            gradient = gradient.contiguous().clone()
        self._caster.round(gradient, quantizer, "weight_gradient", owned.name)
        self._marks.set(gradient, quantizer, is_gradient=True)
        return gradient

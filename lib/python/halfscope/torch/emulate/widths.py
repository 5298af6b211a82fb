"""Widths of operands: which float32 tensors are FP32 in a model of a narrower format too."""

from __future__ import annotations

import torch

from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.parameters import Parameters
from halfscope.torch.events.place import Place
from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.policy import Policy
from halfscope.torch.tensors.trees import floats


class Widths:
    """Judges operands by their marks, and by the policy."""

    def __init__(self, policy: Policy, parameters: Parameters, marks: Marks) -> None:
        self._policy, self._parameters, self._marks = policy, parameters, marks

    def has_wide(self, args: tuple, place: Place) -> bool:
        """Whether an operand is FP32, but for parameters: the widest decides under automatic mixed precision."""
        wanted = (place.formats.activation, place.formats.activation_gradient)
        operands = [tensor for tensor in floats(args) if self._parameters.owner(tensor) is None and tensor.dim()]
        marks = [self._marks.get(tensor) for tensor in operands]
        if not operands:
            return self._policy.fp32_parameters
        return any(mark is None or mark.quantizer not in wanted for mark in marks if not (mark and mark.is_gradient))

    def is_cast_up(self, line: Operation, args: tuple, in_place: bool) -> bool:
        """Whether the model has cast an operand to FP32 itself, which PyTorch's promotion then keeps.

        A product has operands of one type; what is written in place keeps its own.
        """
        if in_place:
            return isinstance(args[0], torch.Tensor) and self._marks.is_wide(args[0])
        operands = [tensor for tensor in floats(args) if tensor.dim()]
        wide = [self._marks.is_wide(tensor) for tensor in operands]
        return (all if line.kind is Kind.PRODUCT else any)(wide) if wide else False

    def is_narrow(self, tensor: torch.Tensor, place: Place) -> bool:
        """Whether a float32 tensor would have the format of its place, were the model converted to that."""
        if self._policy.fp32_parameters:
            mark = self._marks.get(tensor)
            return mark is not None and mark.quantizer == place.formats.activation
        return not self._marks.is_wide(tensor)

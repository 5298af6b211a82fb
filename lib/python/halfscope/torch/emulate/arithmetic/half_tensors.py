"""Operations on tensors of 16 bits: FP16 and BF16 as PyTorch's own types, computed in FP32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from halfscope.torch.emulate.arithmetic import products, sums
from halfscope.torch.emulate.arithmetic.attention import TiledAttention
from halfscope.torch.emulate.arithmetic.half_rules import rule_of
from halfscope.torch.emulate.arithmetic.product_operands import ProductOperands
from halfscope.torch.emulate.arithmetic.updates import is_decay
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.parameters import ModelTensor
from halfscope.torch.events.place import Place, Region
from halfscope.torch.events.ran import Call
from halfscope.torch.operations.operators import target_of, writes
from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.policy import WIDE_SUMS
from halfscope.torch.tensors.elements import HALF

_ROLES = {
    Region.FORWARD: "activation", Region.BACKWARD: "activation_gradient", Region.FAN_IN: "activation_gradient",
    Region.UPDATE: "optimizer_state",
}  # fmt: skip
_PRODUCTS = {torch.float16: "tensor_core(hopper)", torch.bfloat16: "bf16_tensor_core(hopper)"}


def has_half(types: set[torch.dtype]) -> bool:
    """Whether tensors of these types have 16 bits."""
    return not HALF.keys().isdisjoint(types)


class HalfTensors:
    """Runs an operation in FP32 and rounds its results to the types that PyTorch gives them."""

    def __init__(
        self,
        caster: Caster,
        owner: Callable[[torch.Tensor], ModelTensor | None],
        attention_scale: float,
        product_operands: ProductOperands,
    ) -> None:
        """owner: of a tensor; the scale is of probabilities."""
        self._caster, self._owner = caster, owner
        self._product_operands = product_operands
        self._attention_scale = attention_scale

    def run(self, call: Call) -> Any:
        func, line, args, kwargs = call.func, call.line, call.args, call.kwargs
        if line.kind in (Kind.EXACT, Kind.SOURCE):
            try:
                return func(*args, **kwargs)  # no arithmetic; some PyTorch lacks the loop for a type
            except RuntimeError as error:
                if "not implemented for" not in str(error) and "Unsupported input type" not in str(error):
                    raise
        if line.kind is Kind.PRODUCT:
            _check_one_type(line, args)
        target = target_of(func, args, kwargs)
        operands = Operands(_written_tensors(func, args, kwargs), is_decay(line, args))
        wide = tuple(map(operands.widened, args)), {key: operands.widened(value) for key, value in kwargs.items()}
        kinds = _result_types(line, args, kwargs)
        own = self._own(call, kinds[0] if target is None else target.dtype, *wide)
        if own is None:
            own = func(*wide[0], **wide[1])
        elif target is not None:
            own = operands.widened(target).resize_(own.shape).copy_(own)
        result = self._rounded(own, kinds, operands, call)
        operands.write_back()
        return result

    def _own(self, call: Call, kind: torch.dtype, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result where the operation is not PyTorch's in FP32; None where it is. args, kwargs: in FP32."""
        line, place = call.line, call.place
        options = {key: value for key, value in kwargs.items() if key != "out"}
        if line.kind is Kind.PRODUCT:
            args = tuple(value for value in args if not isinstance(value, torch.dtype))  # the result's
            model = (place.formats.products if place is not None else None) or _PRODUCTS.get(kind)
            args, see = (args, None) if place is None else self._product_operands.of(call, place, call.args, args)
            return None if model is None else products.compute(line.name, (model, see), args, options)
        if line.kind is Kind.ATTENTION:
            attention = self._attention(kind, place)
            is_backward = line.name.endswith("_backward")
            return (attention.backward if is_backward else attention.forward)(*args, **options)
        if line.kind is Kind.REDUCTION:
            order = place.formats.sum_order if place is not None else None
            return sums.compute(line.name, order or WIDE_SUMS, args, options)
        rule = rule_of(line.name) if kind in HALF else None
        return None if rule is None else rule(kind, *args, **options)

    def _attention(self, kind: torch.dtype, place: Place | None) -> TiledAttention:
        """Attention with probabilities and the gradients of scores rounded to the tensors' own type."""

        def rounding(role: str) -> Callable[[torch.Tensor, str], torch.Tensor]:
            def narrow(tensor: torch.Tensor, name: str) -> torch.Tensor:
                if place is not None:
                    self._caster.count(tensor.contiguous(), HALF[kind], role, place.tensor(name))
                return tensor.to(kind).float()

            return narrow

        model = (place.formats.products if place is not None else None) or _PRODUCTS[kind]
        return TiledAttention(model, rounding("activation"), rounding("activation_gradient"), self._attention_scale)

    def _rounded(self, result: Any, kinds: list[torch.dtype], operands: Operands, call: Call) -> Any:
        line, place = call.line, call.place
        if isinstance(result, (tuple, list)):
            parts = [
                part if position in line.statistics
                else self._rounded(part, kinds[min(position, len(kinds) - 1) :], operands, call)
                for position, part in enumerate(result)
            ]  # fmt: skip
            return type(result)(parts) if type(result) in (tuple, list) else tuple(parts)
        if not isinstance(result, torch.Tensor):
            return result
        original = operands.original(result)
        kind = kinds[0] if original is None else original.dtype
        if kind in HALF and result.dtype is torch.float32 and line.kind is not Kind.SOURCE:
            owned = None if original is None else self._owner(original)
            if place is not None and place.region is Region.UPDATE and owned is not None:
                self._caster.count(result, HALF[kind], "master_weight", owned.name)
                if operands.decays and original is not None:
                    self._caster.count_decay(original.detach().float(), result, HALF[kind])
            else:
                self._count(result, HALF[kind], call)
        if original is not None:
            return original
        if result.dtype is not torch.float32:
            return result
        rounded = result.to(kind)
        call.note_unrounded(rounded, result)
        return rounded

    def _count(self, exact: torch.Tensor, quantizer: str, call: Call) -> None:
        place = call.place
        if place is None:  # outside of the model
            return
        forward = call.forward if place.region is Region.BACKWARD else None
        name = place.tensor(call.operation if forward is None else forward.operation)
        self._caster.count(exact, quantizer, _ROLES[place.region], name)


class Operands:
    """Arguments widened to FP32; a tensor that the operation writes to has one FP32 copy, which is written back."""

    def __init__(self, written: Iterable[torch.Tensor], decays: bool = False) -> None:
        """decays: whether the operation is the decay of a weight."""
        self.decays = decays
        self._copies = [(tensor, tensor.float() if tensor.dtype in HALF else tensor) for tensor in written]

    def widened(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            for original, copy in self._copies:
                if value is original:
                    return copy
            return value.float() if value.dtype in HALF else value
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.widened, value)) if type(value) in (list, tuple) else value
        return torch.float32 if isinstance(value, torch.dtype) and value in HALF else value

    def original(self, result: torch.Tensor) -> torch.Tensor | None:
        """The argument that a result is, where the operation has written to one."""
        return next((original for original, copy in self._copies if copy is result), None)

    def write_back(self) -> None:
        for original, copy in self._copies:
            if original is not copy:
                if original.shape != copy.shape:
                    original.resize_(copy.shape)
                original.copy_(copy)


def _result_types(line: Operation, args: tuple, kwargs: dict[str, Any]) -> list[torch.dtype]:
    """Type of each result; the last holds for all further ones."""
    if not line.typed:
        return [_promoted(args, kwargs)]
    leading = next(value for value in args if isinstance(value, torch.Tensor))
    tensors = [args[position] if position < len(args) else None for position in line.typed]
    return [leading.dtype if tensor is None else tensor.dtype for tensor in tensors]


def _promoted(args: tuple, kwargs: dict[str, Any]) -> torch.dtype:
    """Type to which PyTorch promotes: an explicit one, else the tensors' widest, those without axes counting less."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.dtype):
            return value
    tensors = [value for value in _tensors((*args, *kwargs.values())) if value.is_floating_point()]
    leading = [tensor for tensor in tensors if tensor.dim()] or tensors
    kind = leading[0].dtype
    for tensor in leading[1:]:
        kind = torch.promote_types(kind, tensor.dtype)
    return kind


def _check_one_type(line: Operation, args: tuple) -> None:
    """Refuses operands of two types, as PyTorch does; widened operands would not show it."""
    kinds = sorted({str(tensor.dtype) for tensor in _tensors(args)})
    if len(kinds) > 1:
        raise RuntimeError(f"emulate: {line.name} of {' and '.join(kinds)}; the operands of a product have one type")


def _tensors(values: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _written_tensors(func: Any, args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that an operator writes to: results where it works in place or has `out`, and running averages."""
    changed = writes(func)
    found = [args[place] for place in changed if isinstance(place, int) and place < len(args)]
    found += [kwargs[name] for name in changed if name in kwargs]
    return [value for value in found if isinstance(value, torch.Tensor)]

"""Operations on tensors of 16 bits: FP16 and BF16 as PyTorch's own types, computed in FP32 and rounded once."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.emulation import products, sums
from halfscope.torch.emulation.casts import Caster
from halfscope.torch.emulation.operations import Kind, Operation
from halfscope.torch.emulation.places import Place, Region
from halfscope.torch.emulation.policies import REDUCTIONS, Policy

HALF = {torch.float16: "fp16", torch.bfloat16: "bf16"}
_PRODUCTS = {torch.float16: "tensor_core(hopper)", torch.bfloat16: "bf16_tensor_core(hopper)"}


def has_half(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether an argument has 16 bits."""
    return any(map(_is_half, args)) or any(map(_is_half, kwargs.values()))


def _is_half(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype in HALF
    return isinstance(value, (list, tuple)) and any(map(_is_half, value))


class HalfTensors:
    """Runs an operation in FP32 and rounds its results to the types that PyTorch gives them."""

    def __init__(self, policy: Policy, caster: Caster) -> None:
        self._policy, self._caster = policy, caster

    def run(self, func: Any, line: Operation, given: tuple[tuple, dict[str, Any]], place: Place | None) -> Any:
        args, kwargs = given
        if line.kind is Kind.EXACT:
            try:
                return func(*args, **kwargs)  # no arithmetic; some PyTorch lacks the loop for a type
            except RuntimeError as error:
                if "not implemented for" not in str(error):
                    raise
        kind = _result_type(args, kwargs)
        target = kwargs.get("out")
        if target is None and str(func.overloadpacket.__name__).endswith("_"):
            target = args[0]
        wide = tuple(_widened(value) for value in args)
        options = {key: _widened(value) for key, value in kwargs.items() if key != "out"}
        result = self._compute(func, line, (wide, options), (kind, place))
        return self._rounded(result, line, kind, target, place)

    def _compute(self, func: Any, line: Operation, given: tuple[tuple, dict], about: tuple) -> Any:
        (args, kwargs), (kind, place) = given, about
        if line.kind is Kind.PRODUCT:
            model = (place.formats.products if place is not None else None) or _PRODUCTS.get(kind)
            if model is not None:
                return products.compute(line.name, model, args, kwargs)
        if line.kind is Kind.REDUCTION:
            result = sums.compute(line.name, REDUCTIONS, args, kwargs)
            if result is not None:
                return result
        return func(*args, **kwargs)

    def _rounded(
        self, result: Any, line: Operation, kind: torch.dtype, target: torch.Tensor | None, place: Place | None
    ) -> Any:
        if isinstance(result, (tuple, list)):
            parts = [
                part if position in line.statistics else self._rounded(part, line, kind, None, place)
                for position, part in enumerate(result)
            ]
            return type(result)(parts) if type(result) in (tuple, list) else tuple(parts)
        if not isinstance(result, torch.Tensor) or result.dtype is not torch.float32:
            return result
        if target is not None:
            kind = target.dtype
        if kind in HALF:
            self._count(result, HALF[kind], line, place)
        narrowed = result if kind is torch.float32 else result.to(kind)
        return narrowed if target is None else target.copy_(narrowed)

    def _count(self, exact: torch.Tensor, quantizer: str, line: Operation, place: Place | None) -> None:
        region = None if place is None else place.region
        role = {Region.BACKWARD: "activation_gradient", Region.FAN_IN: "activation_gradient",
                Region.UPDATE: "optimizer_state"}.get(region, "activation")  # fmt: skip
        self._caster.count(exact, quantizer, role, line.name if place is None else place.tensor(line.name))


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in HALF else value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_widened, value)) if type(value) in (list, tuple) else value
    return torch.float32 if value in HALF else value


def _result_type(args: tuple, kwargs: dict[str, Any]) -> torch.dtype:
    """As PyTorch promotes: an explicit dtype, else the widest of the tensors, those without axes counting less."""
    explicit = kwargs.get("dtype")
    if isinstance(explicit, torch.dtype):
        return explicit
    tensors = [value for value in _tensors((*args, *kwargs.values())) if value.is_floating_point()]
    leading = [tensor for tensor in tensors if tensor.dim()] or tensors
    kind = leading[0].dtype
    for tensor in leading[1:]:
        kind = torch.promote_types(kind, tensor.dtype)
    return kind


def _tensors(values: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found

"""Results of emulated operations in FP32, before they are rounded: sums in the orders of the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.emulate.arithmetic import backends, products, sums
from halfscope.torch.emulate.arithmetic.attention import TiledAttention
from halfscope.torch.emulate.arithmetic.product_operands import ProductOperands
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.events.place import Place, Region
from halfscope.torch.events.ran import Call
from halfscope.torch.operations.operators import target_of
from halfscope.torch.operations.table import Kind
from halfscope.torch.policy import FP32


class Computation:
    """Computes an operation by its line of the table; attention_scale: of tiled attention's probabilities."""

    def __init__(self, caster: Caster, attention_scale: float, operands: ProductOperands) -> None:
        self._caster, self._attention_scale, self._operands = caster, attention_scale, operands

    def run(self, call: Call, place: Place, arguments: tuple[tuple, tuple], kwargs: dict) -> Any:
        """arguments: as they were given, and in the formats of their roles already."""
        func, line, model, (given, cast) = call.func, call.line, place.formats.products, arguments
        args, see = self._operands.of(call, place, given, cast)
        if line.kind is Kind.PRODUCT and (model is not None or see is not None):
            options = {key: value for key, value in kwargs.items() if key != "out"}
            result = products.compute(line.name, (model or "fp32_fused", see), args, options)
            return _write(result, func, args, kwargs)
        if line.kind is Kind.PRODUCT:
            with backends.own_products():
                return func(*args, **kwargs)
        if line.kind is Kind.ATTENTION:
            attention = self._attention(call, place)
            backward = place.region is Region.BACKWARD
            return (attention.backward if backward else attention.forward)(*args, **kwargs)
        if line.kind is Kind.REDUCTION and place.formats.sum_order is not None:
            result = sums.compute(line.name, place.formats.sum_order, args, kwargs)
            if result is not None:
                return result
        return func(*args, **kwargs)

    def _attention(self, call: Call, place: Place) -> TiledAttention:
        formats = place.formats
        if formats.operands and self._operands.images("matmul", call, place) is not None:
            raise ValueError("emulate: tiled attention with formats of matmul's operands; give attention='math'")

        def rounding(quantizer: str, role: str) -> Callable[[torch.Tensor, str], torch.Tensor]:
            def round(tensor: torch.Tensor, name: str) -> torch.Tensor:
                if quantizer != FP32:
                    tensor = tensor.contiguous()
                    self._caster.round(tensor, quantizer, role, place.tensor(name))
                return tensor

            return round

        return TiledAttention(
            formats.products or "fp32_fused",
            rounding(formats.activation, "activation"),
            rounding(formats.activation_gradient, "activation_gradient"),
            self._attention_scale,
        )


def _write(result: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """A product's result where the operator puts it: an argument that it writes to, or a new tensor."""
    target = target_of(func, args, kwargs)
    return result if target is None else target.copy_(result)

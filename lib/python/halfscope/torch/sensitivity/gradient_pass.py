"""Backward passes that meet each product's error: one format at a time, from the operands that the pass keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from halfscope.torch.private import version_of
from halfscope.torch.sensitivity.attention_calls import AttentionCall
from halfscope.torch.sensitivity.calibration import Calibration
from halfscope.torch.sensitivity.multiplied_weights import MultipliedWeights
from halfscope.torch.sensitivity.operand_images import LEFT, RIGHT, OperandFormat
from halfscope.torch.sensitivity.product_calls import Exact, Images, ProductCall
from halfscope.torch.sensitivity.samples import Samples
from halfscope.torch.sensitivity.units import Layout, Unit, Units
from halfscope.torch.sensitivity.watched_products import Run, WatchedProducts
from halfscope.torch.words import called

Mixture = Mapping[str, OperandFormat]
"""Formats of units by name; the others are FP32."""
Look = Callable[[Unit, int, ProductCall, torch.Tensor], None]
"""Is given a unit, the number of its call in the pass, the call, and the gradient of its result, rows first."""


def mixed(call: ProductCall, format: Images) -> torch.Tensor:
    """The result of a product in a format; its gradient is that of the exact product."""
    product = call.as_result(call.product(format))
    if not torch.is_grad_enabled():
        return product
    plain = call.plain()
    with torch.no_grad():
        return plain.copy_(product)


class GradientPass:
    """Forward passes in a mixture whose products' gradients are looked at in the backward pass."""

    def __init__(self, calibration: Calibration, units: Units, mixture: Mixture, look: Look) -> None:
        self._units, self._mixture, self._look = units, mixture, look
        self._calls: Counter[str] = Counter()
        self._calibration = calibration
        self._products = WatchedProducts(calibration.model, self._handle, calibration.caches)

    def output(self, batch: Any) -> torch.Tensor:
        """The model's output, from which a backward pass can begin."""
        self._calls.clear()
        with self._products.watching(), torch.enable_grad():
            output = self._calibration.output(batch)
        if not output.requires_grad:
            raise ValueError("sensitivity: the output does not depend on a product with a weight; is it detached?")
        return output

    def _handle(self, module: str, call: ProductCall, run: Run) -> torch.Tensor:
        unit = self._units.of(module, call)
        format = self._mixture.get(unit.name)
        result = run() if format is None else mixed(call, format.of(unit.name))
        if not torch.is_grad_enabled():
            self._units.without_gradient.add(unit.name)
            return result
        if not result.requires_grad:
            result = result.add_(result.new_full((), -0.0).requires_grad_())  # the same bits, and a gradient
        self._calls[unit.name] += 1
        self._units.note_input(unit, call)
        result.register_hook(partial(self._arrived, (unit, self._calls[unit.name], call, version_of(call.input))))
        return result

    def _arrived(self, about: tuple[Unit, int, ProductCall, int], gradient: torch.Tensor) -> None:
        unit, number, call, version = about
        if version_of(call.input) != version:
            raise RuntimeError(
                f"sensitivity: the input of '{called(unit.name)}' was changed in place after its product; write "
                "x = x + y for x += y, or inplace=False"
            )
        with torch.no_grad():
            self._look(unit, number, call, call.rows_first(gradient))


def find_units(calibration: Calibration) -> Units:
    """The units of a model, and how their rows follow the sequences, by one pass of the first batch.

    The gradient of the last sequence alone shows which rows are that sequence's.
    """
    units, sequences = Units(calibration.model), 0
    seen: dict[str, set[Layout]] = {}  # layouts that all calls of a unit may have

    def look(unit: Unit, number: int, call: ProductCall, gradient: torch.Tensor) -> None:
        del number, call
        rows = gradient.flatten(0, -2).ne(0).any(-1).nonzero().flatten()
        known = seen.setdefault(unit.name, set(Layout))
        known &= _layouts(rows, gradient.shape[:-1].numel(), sequences)

    passing = GradientPass(calibration, units, {}, look)
    with calibration.evaluating():
        with MultipliedWeights(calibration.model) as multiplied:
            output = passing.output(calibration.batches[0])
        units.multiplied |= multiplied.storages
        sequences, last = len(output), torch.zeros_like(output)
        last[-1] = torch.randn(last[-1].shape, generator=torch.Generator().manual_seed(0)).to(last.device)
        output.backward(last)
    units.layouts.update({name: next(kind for kind in Layout if kind in kinds) for name, kinds in seen.items()})
    units.without_gradient |= units.by_name.keys() - seen.keys()
    return units


def _layouts(rows: torch.Tensor, count: int, sequences: int) -> set[Layout]:
    """rows: those of the last sequence that have a gradient, of `count`."""
    found = {Layout.MIXED}
    if count % sequences == 0:
        found |= {Layout.OUTER} if bool((rows >= count - count // sequences).all()) else set()
        found |= {Layout.INNER} if bool((rows % sequences == sequences - 1).all()) else set()
    return found


@dataclass
class Errors:
    """Errors of products beside a mixture's, for a look: their rows are entered, and tensors that are not finite."""

    formats: Mapping[str, OperandFormat]
    samples: Samples
    mixture: Mixture = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)  # by unit and format: the tensor

    def look(self, unit: Unit, number: int, call: ProductCall, gradient: torch.Tensor) -> None:
        own = self.mixture.get(unit.name)
        exact = call.product(Exact() if own is None else own.of(unit.name))
        if not gradient.isfinite().all():
            raise ValueError(f"sensitivity: the gradient of '{called(unit.name)}' is not finite in FP32")
        for name, format in self.formats.items():
            seen = format.of(unit.name)
            rows = exact.new_zeros(exact.shape[:-1]) if format is own else self._rows(call, exact, gradient, seen, own)
            if not rows.isfinite().all():
                self.failures.setdefault((unit.name, name), _failure(call, seen, exact))
                rows = torch.zeros_like(rows)
            self.samples.add(unit.name, number, name, rows.flatten())

    @staticmethod
    def _rows(
        call: ProductCall, exact: torch.Tensor, gradient: torch.Tensor, format: Images, own: OperandFormat | None
    ) -> torch.Tensor:
        """Inner products of a gradient and an error, row by row."""
        noted = _Noted(format)
        product = call.product(noted)
        if own is None and noted.is_exact:  # its sums may be in another order
            return exact.new_zeros(exact.shape[:-1])
        return (product.sub_(exact).mul_(gradient)).sum(-1)


class _Noted:
    """Images of a format, and whether all of them are the operands themselves."""

    def __init__(self, format: Images) -> None:
        self._format, self.has_blocks, self.is_exact = format, format.has_blocks, True

    def image(self, matrix: torch.Tensor, side: str) -> torch.Tensor:
        image = self._format.image(matrix, side)
        self.is_exact = self.is_exact and bool(torch.equal(image, matrix))
        return image


def _failure(call: ProductCall, format: Images, exact: torch.Tensor) -> str:
    """The tensor that is not finite, in words."""
    if not exact.isfinite().all():
        return "its product in FP32"
    names = ("its keys", "its values") if isinstance(call, AttentionCall) else ("its input", "its weight")
    for matrix, side, words in ((call.input, LEFT, names[0]), (call.weight, RIGHT, names[1])):
        if matrix.is_floating_point() and not format.image(matrix.reshape(-1, matrix.shape[-1]), side).isfinite().all():
            return f"{words}, whose largest number is {float(matrix.abs().max()):.5g}"
    return "the product"

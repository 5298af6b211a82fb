"""Scales of inputs that are calibrated once: the largest number of each unit's input over all batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from halfscope.torch.sensitivity.calibration import Calibration
from halfscope.torch.sensitivity.operand_images import OperandFormat
from halfscope.torch.sensitivity.product_calls import ProductCall
from halfscope.torch.sensitivity.units import Units
from halfscope.torch.sensitivity.watched_products import Run, WatchedProducts


def keep_maxima(calibration: Calibration, units: Units, formats: Iterable[OperandFormat]) -> None:
    """Enters the maxima into the formats whose scales are static, by one forward pass of each batch if there are any.

    Raises ValueError for an input that is zero in all batches, which gives no scale.
    """
    static = [format for format in formats if format.is_static]
    if not static:
        return
    maxima: dict[str, float] = {}

    def note(module: str, call: ProductCall, run: Run) -> torch.Tensor:
        if call.input.is_floating_point() and call.input.numel():
            name = units.of(module, call).name
            maxima[name] = max(maxima.get(name, 0.0), float(call.input.detach().abs().max()))
        return run()

    products = WatchedProducts(calibration.model, note)
    with calibration.evaluating(), torch.no_grad():
        for batch in calibration.batches:
            with products.watching():
                calibration.output(batch)
    zero = next((name for name, maximum in maxima.items() if not maximum), None)
    if zero is not None:
        raise ValueError(f"sensitivity: the input of '{zero}' is zero in all batches, which gives no static scale")
    for format in static:
        format.maxima.update(maxima)

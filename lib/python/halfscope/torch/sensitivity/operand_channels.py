"""Channels of operands over calibration batches: their largest magnitudes, and a format's error in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from halfscope import _core
from halfscope.torch.private import storage_key, version_of
from halfscope.torch.sensitivity.measurement import Subject
from halfscope.torch.sensitivity.operand_images import LEFT, OperandFormat
from halfscope.torch.sensitivity.product_calls import LinearCall, Operand, ProductCall
from halfscope.torch.sensitivity.units import group_name
from halfscope.torch.sensitivity.watched_products import Run, WatchedProducts
from halfscope.torch.words import called

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

OUTLIER = 4.0  # times the median channel's maximum, from which on a channel is an outlier
ROW, BLOCK, TENSOR = "row", "block", "tensor"
WITH, WITHOUT = "with", "without"
BLOCK_SIZE = 32
_LONGEST = 4096  # elements that one scale of a block may have: of a longer row each such part has its own


@dataclass(frozen=True)
class Key:
    """An operand of a unit: its side, the parameter on its right, and its channels."""

    unit: str
    side: str
    parameter: str  # empty where the weight is computed
    channels: int


@dataclass
class ChannelSums:
    """The largest magnitude of each channel, its sum of squares, and those of errors by kind of image."""

    maxima: Floats
    squares: Floats
    errors: dict[str, Floats] = field(default_factory=dict)
    readers: dict[str, None] = field(default_factory=dict)  # units that multiply it

    @property
    def median(self) -> float:
        """The median channel's maximum, of channels that are not zero."""
        used = self.maxima[self.maxima > 0]
        return float(np.median(used)) if len(used) else 0.0

    @property
    def outliers(self) -> Bools:
        """The channel with the largest maximum, and all from OUTLIER times the median on."""
        found: Bools = self.maxima >= OUTLIER * self.median
        found[self.maxima.argmax()] = True
        return found


def scaled_formats(name: str, sides: tuple[str, ...]) -> dict[str, OperandFormat]:
    """The format's elements with one FP32 scale per row, block and tensor; empty where they take none."""
    element = _core.element_format(name.partition("+")[0])
    names = {
        ROW: f"block({element}, 1x{_LONGEST}, fp32/te)",
        BLOCK: f"block({element}, 1x{BLOCK_SIZE}, fp32/te)",
        TENSOR: f"{element}+current",
    }
    try:
        return {kind: OperandFormat(each, sides) for kind, each in names.items()}
    except ValueError:
        return {}


class OperandChannels:
    """Sums of all operands of a model in a format, by two forward passes for each batch."""

    def __init__(self, subject: Subject, format: OperandFormat) -> None:
        self._calibration, self._units = subject.calibration, subject.units
        self._format, self._scaled = format, scaled_formats(format.name, format.sides)
        named = subject.calibration.model.named_parameters()
        self._parameters = {storage_key(weight): name for name, weight in named}
        self._seen: set[tuple] = set()  # weights of the model are the same in all batches
        self._last: tuple[torch.Tensor, int, Key] | None = None
        self.found: dict[Key, ChannelSums] = {}

    def measure(self) -> dict[Key, ChannelSums]:
        """Raises ValueError for an operand that is not finite in FP32."""
        for look in (self._note_sizes, self._note_errors):
            self._seen.clear()
            with self._calibration.evaluating(), torch.no_grad():
                for batch in self._calibration.batches:
                    self._last = None
                    self._pass(batch, look)
        self._last = None
        return self.found

    def _pass(self, batch: object, look: Callable[[Key, list[Operand]], None]) -> None:
        def handle(module: str, call: ProductCall, run: Run) -> torch.Tensor:
            for key, operands in self._operands(module, call):
                look(key, operands)
            return run()

        with WatchedProducts(self._calibration.model, handle).watching():
            self._calibration.output(batch)

    def _operands(self, module: str, call: ProductCall) -> Iterator[tuple[Key, list[Operand]]]:
        """Operands that are to be looked at: a weight once, and so an input that successive units multiply."""
        unit = self._units.of(module, call).name
        parameter = self._parameters.get(storage_key(call.weight), "")
        sides: dict[str, list[Operand]] = defaultdict(list)
        for operand in call.operands():
            if operand.side in self._format.sides and operand.matrix.numel():
                sides[operand.side].append(operand)
        for side, operands in sides.items():
            key = Key(unit, side, parameter, operands[-1].channels.stop)
            if not (self._is_known_input(key, call) if side == LEFT else self._is_known_weight(key, call)):
                yield key, operands

    def _is_known_input(self, key: Key, call: ProductCall) -> bool:
        if not isinstance(call, LinearCall):
            return False
        version = version_of(call.input)
        if self._last is not None and self._last[0] is call.input and self._last[1] == version:
            self.found[self._last[2]].readers[key.unit] = None
            return True
        self._last = (call.input, version, key)
        return False

    def _is_known_weight(self, key: Key, call: ProductCall) -> bool:
        if not key.parameter:
            return False
        weight = (key, call.weight.storage_offset(), tuple(call.weight.shape))
        is_known = weight in self._seen
        self._seen.add(weight)
        return is_known

    def _note_sizes(self, key: Key, operands: list[Operand]) -> None:
        known = self.found.setdefault(key, ChannelSums(np.zeros(key.channels), np.zeros(key.channels)))
        known.readers[key.unit] = None
        for operand in operands:
            rows, at = operand.matrix.flatten(0, -2), operand.channels
            largest = rows.abs().amax(0).double().cpu().reshape(operand.taps, -1).amax(0).numpy()
            if not np.isfinite(largest).all():
                raise ValueError(f"outlier_channels: the {operand_name(key, known)} is not finite in FP32")
            known.maxima[at] = np.maximum(known.maxima[at], largest)
            known.squares[at] += _by_channel(operand, rows)

    def _note_errors(self, key: Key, operands: list[Operand]) -> None:
        known = self.found[key]
        kept = torch.from_numpy(~known.outliers)
        for operand in operands:
            matrix, side = operand.matrix, operand.side
            columns = kept[operand.channels].repeat(operand.taps).to(matrix.device)
            images = {WITH: (self._format, matrix), WITHOUT: (self._format, matrix * columns)}
            images |= {kind: (format, matrix) for kind, format in self._scaled.items()}
            for kind, (format, seen) in images.items():
                sums = known.errors.setdefault(kind, np.zeros(key.channels))
                error = format.image(seen, side).double() - seen.double()
                sums[operand.channels] += _by_channel(operand, error.flatten(0, -2))


def _by_channel(operand: Operand, rows: torch.Tensor) -> Floats:
    """Sums of squares; of numbers that are not finite, infinity."""
    sums = rows.double().square().sum(0).reshape(operand.taps, -1).sum(0)
    found: Floats = sums.nan_to_num(nan=float("inf"), posinf=float("inf")).cpu().numpy()
    return found


def operand_name(key: Key, sums: ChannelSums) -> str:
    """input of 0.q + k + v; weight of 0.q; of several parameters in a unit their own names."""
    module, inside = key.parameter.removesuffix(".weight"), f"{key.unit}." if key.unit else ""
    name = module if key.parameter != "weight" and module.startswith(inside) else key.unit
    name = group_name(tuple(sums.readers)) if len(sums.readers) > 1 else name
    return f"{'input' if key.side == LEFT else 'weight'} of {called(name)}"

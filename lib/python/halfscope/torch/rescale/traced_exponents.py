"""Exponents of all tensors of a forward pass, from the operations that make them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from halfscope.torch.events.running_modules import RunningModules
from halfscope.torch.events.source import current_site
from halfscope.torch.operations.operators import operation_of, target_of
from halfscope.torch.operations.rules import label_of
from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.private import TorchDispatchMode, storage_key
from halfscope.torch.rescale.equations import equation_of
from halfscope.torch.rescale.exponents import UNMOVED, Exponent, Range, System
from halfscope.torch.rescale.ranges import LARGEST, highest, lowest
from halfscope.torch.tensors.elements import floating
from halfscope.torch.tensors.storages import StorageMap, covers_storage
from halfscope.torch.tensors.trees import tensors

ATTRIBUTE_COST = 2.0**-10  # a binade's, beside 1 of a tensor's
SMALLEST = "{}, half of whose numbers are or would be below FP16's normal ones"
_MASKED = {"add", "sub", "mul", "div", "where", "masked_fill", "maximum", "minimum"}  # keep a mask's numbers
_SCALARS = {"_local_scalar_dense", "item"}


@dataclass(frozen=True)
class Known:
    """exponent: None if every power of two leaves the tensor as it is. mask: least magnitude of a mask's numbers."""

    exponent: Exponent | None
    is_constant: bool = False
    is_wide: bool = False  # squares and what comes of them alone: FP32, as autocast and libraries have it
    mask: float = math.inf


class Stored:
    """Unknowns of a model's parameters, persistent buffers and attributes, each from its first use on."""

    def __init__(self, model: torch.nn.Module, system: System) -> None:
        self._system = system
        self.names: dict[int, list[str]] = {}  # names of tensors, by storage
        self._tensors: dict[int, torch.Tensor] = {}
        for name, tensor in model.state_dict(keep_vars=True).items():
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self.names.setdefault(storage_key(tensor), []).append(name)
                self._tensors.setdefault(storage_key(tensor), tensor)
        self.unknowns: dict[int, Exponent] = {}
        self.attributes: dict[tuple[str, str], tuple[Exponent, float]] = {}  # with their numbers
        self._factors: set[int] = set()

    def exponent(self, tensor: torch.Tensor) -> Exponent | None:
        """None of a tensor that the model does not store."""
        key = storage_key(tensor)
        if key in self.names and key not in self.unknowns:
            name = self.names[key][0]
            self.unknowns[key] = self._system.new(name, 1.0)
            largest = float(self._tensors[key].abs().max()) if self._tensors[key].numel() else 0.0
            if not math.isfinite(largest):
                raise ValueError(f"rescale: '{name}' is not finite in FP32")
            words = f"'{name}', whose largest number is {largest:.4g}"
            self._system.keep(self.unknowns[key], Range(highest(largest), largest=words))
        return self.unknowns.get(key)

    def is_factor(self, tensor: torch.Tensor) -> None:
        """The tensor multiplies, so that its small numbers count."""
        key = storage_key(tensor)
        if key in self.names and key not in self._factors:
            self._factors.add(key)
            ends = lowest(self._tensors[key])
            range = Range(lowest=ends, wanted=ends[1], smallest=SMALLEST.format(f"'{self.names[key][0]}'"))
            self._system.keep(self.exponent(tensor), range)

    def attribute(self, running: RunningModules, number: float) -> Exponent | None:
        """The exponent of the innermost module's one attribute that has this number; None without one."""
        if not running:
            return None
        default = torch.finfo(torch.float32).eps
        own = vars(running.innermost).items()
        every = {key: default if (key, value) == ("eps", None) else value for key, value in own}
        floats = {key: value for key, value in every.items() if type(value) is float}
        found = {key: value for key, value in floats.items() if _as_fp32(value) == _as_fp32(number)}
        if len(found) != 1:
            return None
        ((name, value),) = found.items()
        key = (running.name, name)
        if key not in self.attributes:
            self.attributes[key] = self._system.new(".".join(filter(None, key)), ATTRIBUTE_COST), value
        return self.attributes[key][0]


class TracedExponents(TorchDispatchMode):
    """Enters the equations and ranges of the operations that run in it. headroom: binades left above activations."""

    def __init__(self, running: RunningModules, stored: Stored, system: System, headroom: int) -> None:
        super().__init__()
        self.running, self.stored, self.system, self._headroom = running, stored, system, headroom
        self._known = StorageMap[Known]()

    def enter_inputs(self, batch: Any) -> None:
        """Numbers of a batch stay as they are."""
        for tensor in floating(tuple(batch) if isinstance(batch, list) else batch):
            self._known.set(tensor, Known(UNMOVED))
            self._measure(tensor, Known(UNMOVED), "the model's input")

    def enter_output(self, output: Iterable[torch.Tensor]) -> None:
        """So does the model's output."""
        for tensor in output:
            self.system.set_zero(self.known(tensor).exponent, "the model's output")

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        self.system.operations += 1
        step = TracedStep(self, func, args, kwargs or {})
        result = func(*args, **step.kwargs)
        step.enter(result)
        return result

    def known(self, tensor: torch.Tensor) -> Known:
        if not tensor.is_floating_point():
            return Known(UNMOVED if tensor.is_complex() else None, is_constant=not tensor.is_complex())
        stored = self.stored.exponent(tensor)
        if stored is not None:
            return Known(stored)
        found = self._known.get(tensor)
        if found is None:
            found = _constant(tensor)
            self._known.set(tensor, found)
        return found

    def set(self, tensor: torch.Tensor, known: Known, is_partly: bool, words: str) -> None:
        """is_partly: the rest of the storage has the exponent that it had."""
        before = self.stored.exponent(tensor)
        if before is not None:
            self.system.set_zero(before, words)
            self.system.set_zero(known.exponent, words)
            return
        if is_partly:
            old = self.known(tensor)
            exponent = self.system.set_equal((old.exponent, known.exponent), words)
            known = replace(known, exponent=exponent, is_constant=known.is_constant and old.is_constant,
                            mask=min(known.mask, old.mask))  # fmt: skip
        self._known.set(tensor, known)

    def _measure(self, tensor: torch.Tensor, known: Known, words: str) -> None:
        magnitudes = tensor.detach().abs().flatten()
        if known.mask < math.inf:
            magnitudes = magnitudes[magnitudes < known.mask / 2]
        largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
        if not math.isfinite(largest):
            raise ValueError(f"rescale: {words} is not finite in FP32")
        kept = Range(
            highest(largest) - self._headroom, wanted=lowest(magnitudes)[1],
            largest=f"{words}, whose largest number is {largest:.4g}", smallest=SMALLEST.format(words),
        )  # fmt: skip
        self.system.keep(known.exponent, kept)

    def measure(self, tensor: torch.Tensor, known: Known, words: str) -> None:
        """Enters the range of a tensor that FP16 is to hold."""
        if not known.is_constant and known.exponent is not None:
            self._measure(tensor, known, words)


class TracedStep:
    """An operation under way, as equations ask for it."""

    def __init__(self, trace: TracedExponents, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self._trace, self._func, self.args, self.kwargs = trace, func, args, kwargs
        self.row: Operation | None = operation_of(func)
        name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else str(func)
        self.name = self.row.name if self.row is not None else name.removesuffix("_")
        every = list(tensors((args, tuple(kwargs.values()))))
        self._words = ""
        self._target = target_of(func, args, kwargs)
        self._operands = [(each, trace.known(each)) for each in every if each.is_floating_point() or each.is_complex()]

    @property
    def kind(self) -> Kind:
        return Kind.UNKNOWN if self.row is None else self.row.kind

    @property
    def words(self) -> str:
        """The operation with its module and line; of a layer its name."""
        self._words = self._words or self._described()
        return self._words

    def _described(self) -> str:
        running, label = self._trace.running, label_of(self.name)
        site = current_site()
        if running and running.name:
            is_layer = self.kind is Kind.PRODUCT and not any(running.innermost.children())
            label = f"'{running.name}'" if is_layer else f"{label} in '{running.name}'"
        return label if site is None else f"{label} ({site})"

    def exponent(self, value: Any) -> Exponent | None:
        return self._trace.known(value).exponent if isinstance(value, torch.Tensor) else UNMOVED

    def factor(self, value: Any) -> Exponent | None:
        if isinstance(value, torch.Tensor):
            self._trace.stored.is_factor(value)
        return self.exponent(value)

    def equal(self, *values: Any) -> Exponent | None:
        free = (value for value in values if isinstance(value, torch.Tensor) or (value and math.isfinite(value)))
        return self.equal_exponents(*map(self.exponent, free))

    def equal_exponents(self, *exponents: Exponent | None) -> Exponent | None:
        return self._trace.system.set_equal(exponents, self.words)

    def fixed(self, *values: Any) -> Exponent:
        for tensor in tensors(values):
            self._trace.system.set_zero(self.exponent(tensor), self.words)
        return UNMOVED

    def half(self, exponent: Exponent | None) -> Exponent | None:
        return self._trace.system.half(exponent, self.words)

    def constant(self, number: float, exponent: Exponent | None) -> None:
        if not number or not exponent:
            return
        attribute = self._trace.stored.attribute(self._trace.running, number)
        self.equal_exponents(exponent, UNMOVED if attribute is None else attribute)

    def enter(self, result: Any) -> None:
        """Enters the operation, which has run."""
        made = [each for each in tensors(result) if each.is_floating_point() or each.is_complex()]
        is_in_place = isinstance(self._target, torch.Tensor)
        if self.name in _SCALARS:
            self.fixed(*(tensor for tensor, known in self._operands if not known.is_constant))
            return
        if not is_in_place and (self.kind is Kind.SOURCE or self._is_view(made)):
            return
        if all(known.is_constant for _, known in self._operands):
            self._enter_constants(made, is_in_place)
            return
        self._enter_wide_operands()
        found = equation_of(self.name, self.row)(self)
        exponents = found if isinstance(found, list) else [found] * max(len(made), 1)
        statistics = () if self.row is None else self.row.statistics
        for place, tensor in enumerate(made):
            exponent = exponents[min(place, len(exponents) - 1)]
            known = Known(exponent, is_wide=self._is_wide(), mask=self._mask())
            self._trace.set(tensor, known, is_in_place and not covers_storage(tensor), self.words)
            if self.kind not in (Kind.VIEW, Kind.EXACT) and place not in statistics and not known.is_wide:
                self._trace.measure(tensor, known, self.words)

    def _is_view(self, made: list[torch.Tensor]) -> bool:
        """Whether all results lie in the memory of operands."""
        known = {storage_key(tensor) for tensor, _ in self._operands}
        return bool(made) and all(storage_key(tensor) in known for tensor in made)

    def _enter_constants(self, made: list[torch.Tensor], is_in_place: bool) -> None:
        """Numbers that come of none of the model's."""
        is_moved = self.kind in (Kind.VIEW, Kind.EXACT, Kind.SOURCE) and bool(self._operands)
        for tensor in made:
            seen = _constant(tensor)
            known = seen if is_moved else replace(seen, exponent=UNMOVED)
            self._trace.set(tensor, known, is_in_place and not covers_storage(tensor), self.words)

    def _enter_wide_operands(self) -> None:
        """A product takes FP16, squares too."""
        if self.kind in (Kind.PRODUCT, Kind.ATTENTION):
            for tensor, known in self._operands:
                if known.is_wide:
                    self._trace.measure(tensor, known, f"an operand of {self.words}")

    def _is_wide(self) -> bool:
        if self.name in ("square", "var") or (self.name == "pow" and _is_above_one(self.args[1])):
            return True
        if self.name == "mul" and _is_one_tensor(*self.args[:2]):
            return True
        given = [known for _, known in self._operands if not known.is_constant]
        return self.kind not in (Kind.PRODUCT, Kind.ATTENTION) and all(known.is_wide for known in given)

    def _mask(self) -> float:
        if self.name not in _MASKED and self.kind not in (Kind.VIEW, Kind.EXACT):
            return math.inf
        numbers = [abs(value) for value in self.args if isinstance(value, (int, float))]
        far = [number for number in numbers if number > LARGEST]
        return min([*far, *(known.mask for _, known in self._operands)], default=math.inf)


def _is_above_one(power: Any) -> bool:
    return isinstance(power, (int, float)) and abs(power) > 1


def _as_fp32(number: float) -> float:
    return float(np.float32(number))


def _is_one_tensor(left: Any, right: Any) -> bool:
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
        return False
    return left.data_ptr() == right.data_ptr() and left.shape == right.shape and left.stride() == right.stride()


def _constant(tensor: torch.Tensor) -> Known:
    """A tensor that comes of none of the model's numbers: zeros and infinities have every exponent."""
    magnitudes = tensor.detach().abs()
    far = magnitudes[magnitudes > LARGEST]
    mask = float(far.min()) if far.numel() else math.inf
    is_free = bool(((magnitudes == 0) | magnitudes.isinf()).all())
    return Known(None if is_free else UNMOVED, is_constant=True, mask=mask)

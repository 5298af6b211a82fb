"""Look at the operations of a watched model's forward pass: results that a format would make infinite or NaN."""

from __future__ import annotations

from math import inf
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.events.source import current_site
from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.finding import Finding, called, digits
from halfscope.torch.findings.kinds import PRODUCTS, kind_of, terms_of
from halfscope.torch.findings.magnitudes import OWN_MINIMUM, below_minimum, largest_of
from halfscope.torch.findings.notes import Note, NotedTrail
from halfscope.torch.findings.operands import Operand
from halfscope.torch.findings.sentences import untried_finding
from halfscope.torch.findings.trail import first_tensor, float_tensors
from halfscope.torch.operations.operators import operation_of
from halfscope.torch.operations.table import Kind, Operation, Trait, named
from halfscope.torch.private import TorchDispatchMode, storage_key
from halfscope.torch.watch.layer_operations import LayerOperations, arguments_of_layer, operation_of_layer

_COMPUTED = (Kind.ROUNDED, Kind.PRODUCT, Kind.REDUCTION, Kind.ATTENTION, Kind.UNKNOWN)
_DIVIDES = named(Trait.DIVIDES, Trait.LOGARITHM)
_SEEN = "seen in step {}, in the run's own format, in which it is finite"


class OperationWatch(TorchDispatchMode):
    """While it is entered every operation is run as it is, and its result looked at.

    format: what the results would be cast to.
    """

    def __init__(self, format: str) -> None:
        super().__init__()
        self._format = Format.of(format)
        self._limit = self._format.largest + self._format.step_at(self._format.largest) / 2
        self._flushed = self._format.smallest / 2
        self._model: torch.nn.Module | None = None  # the step's
        self._owned: dict[int, Any] | None = None
        self._trail = NotedTrail(self._format, lambda tensor: self._owners.get(storage_key(tensor)))
        self._lines: dict[Any, Operation | None] = {}
        self._bad: dict[int, Fault] = {}  # by storage
        self._positive: set[int] = set()  # faults, by identity, that are not masks
        self._infinite: dict[int, torch.Tensor] = {}  # by identity of a fault: elements, where these are not its size's
        self.layers = LayerOperations(self._look_at_layer)
        self.looked = 0  # operations of the step
        self.faults: dict[tuple[str, str], tuple[int, Fault]] = {}  # by operation and line, with their first step

    def begin(self, model: torch.nn.Module, step: int) -> None:
        """A forward pass of a step begins."""
        self._step, self.looked = step, 0
        self._trail.notes, self._bad, self._positive, self._infinite = {}, {}, set(), {}
        self._model, self._owned = model, None

    @property
    def _owners(self) -> dict[int, Any]:
        """Parameters and buffers by storage; found where they are asked for, which few steps do."""
        if self._owned is None and self._model is not None:
            named = (*self._model.named_parameters(), *self._model.named_buffers())
            self._owned = {storage_key(tensor): _Named(name) for name, tensor in named if _is_plain(tensor)}
        return self._owned or {}

    def end(self) -> None:
        """Lets go of what belongs to the step."""
        self._trail.notes, self._bad, self._model, self._owned = {}, {}, None, None
        harmless = [key for key, (_, fault) in self.faults.items() if fault.is_harmless]
        for key in harmless:
            del self.faults[key]

    @property
    def finding(self) -> Finding | None:
        """On the first operation that the format would make infinite or NaN."""
        if not self.faults:
            return None
        step, fault = next(iter(self.faults.values()))
        return untried_finding(fault, _SEEN.format(step))

    def words(self) -> list[str]:
        """A sentence on those between layers."""
        between = [fault for _, fault in self.faults.values() if fault.made.module is None]
        if not between:
            return []
        places = [
            f"{called(fault.made.operation)}{f' ({fault.made.site})' if fault.made.site is not None else ''}"
            f"{f', up to {digits(fault.value)}' if fault.value > self._limit else ''}"
            for fault in between
        ]
        listed = "; ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        number = f"{len(places)} operation{'s' * (len(places) != 1)}"
        return [
            f"{self._format.label} is infinite or NaN in {number} between layers, which no loss scale helps: {listed}."
        ]

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        try:
            line = self._lines[func]
        except KeyError:
            line = self._lines[func] = _looked_at(func)
        if line is None:
            return result
        first = result if type(result) is torch.Tensor else first_tensor(result)
        if first is None or not first.is_floating_point() or not _is_plain(first):
            return result
        if line.kind is Kind.EXACT:
            self._pass_on(first, args)
        else:
            self._look(line.name, (*args, *kwargs.values()) if kwargs else args, first)
        return result

    def _look_at_layer(self, layer: torch.nn.Module, given: torch.Tensor, result: torch.Tensor) -> None:
        """A layer has run outside of this mode."""
        operation = operation_of_layer(layer)
        if self._bad or not _is_plain(result) or not result.is_floating_point():
            self._look_closely(operation, arguments_of_layer(operation, layer, given), result)
        elif not operation:
            known = self._trail.notes.get(storage_key(given))
            if known is not None:
                self._trail.notes[storage_key(result)] = known
        elif self._limit <= largest_of(result) < OWN_MINIMUM:
            self._look_closely(operation, arguments_of_layer(operation, layer, given), result)
        else:
            self.looked += 1
            inputs = [storage_key(given), storage_key(layer.weight)]
            self._trail.notes[storage_key(result)] = Note(operation, inputs, [])

    def _look_closely(self, operation: str, args: tuple, result: torch.Tensor) -> None:
        if not result.is_floating_point() or not _is_plain(result):
            return
        if operation:
            self._look(operation, args, result)
        else:
            self._pass_on(result, args)

    def _pass_on(self, result: torch.Tensor, args: tuple) -> None:
        """Selected or moved numbers are still those of the operation before."""
        keys = [storage_key(tensor) for tensor in float_tensors(args)]
        for found in (self._trail.notes, self._bad) if self._bad else (self._trail.notes,):
            known = next((found[key] for key in keys if key in found), None)
            if known is not None:
                found[storage_key(result)] = known  # type: ignore[assignment]

    def _look(self, operation: str, args: tuple, result: torch.Tensor) -> None:
        """args: those that have names too."""
        self.looked += 1
        note = self._trail.take(operation, args, result)
        if not result.numel():
            return
        if self._bad:
            above = [self._bad[key] for key in note.inputs if key in self._bad]
            if above:
                self._follow(above[0], note, args, result)
                return
        largest = largest_of(result)
        is_beyond = self._limit <= largest < OWN_MINIMUM
        if is_beyond or (operation in _DIVIDES and self._is_flushed(operation, args)):
            self._fault(note, args, result, largest)
        elif operation == "add" and OWN_MINIMUM <= largest < inf:
            self._look_below_minimum(note, args, result)

    def _look_below_minimum(self, note: Note, args: tuple, result: torch.Tensor) -> None:
        """A mask of FP32's own minimum and scores, which are -inf in the format where it has its own."""
        found = below_minimum(args[:2], self._limit - self._format.largest)
        if found is not None:
            self._fault(note, args, result, self._format.largest + found.depth)
            self._infinite[id(self._bad[storage_key(result)])] = found.elements.expand_as(result)

    def _is_flushed(self, operation: str, args: tuple) -> bool:
        """Whether the format makes a divisor or an argument of a logarithm zero."""
        tensors = [value for value in args[:3] if isinstance(value, torch.Tensor)]
        if not tensors or (operation == "div" and len(tensors) < 2):
            return False
        magnitudes = tensors[-1].detach().abs()
        return bool(((magnitudes > 0) & (magnitudes <= self._flushed)).any())

    def _fault(self, note: Note, args: tuple, result: torch.Tensor, largest: float) -> None:
        made = self._made_of(note)
        owned = [self._owners[key].name for key in made.inputs if key in self._owners]
        if owned and made.operation in PRODUCTS:
            made.module = owned[0].rpartition(".")[0]
        tensors = [tensor for tensor in float_tensors(args) if tensor.dim()]
        operands = list(map(self._operand, tensors))
        count = int((result.detach().abs() >= self._limit).sum())
        rounded = result.detach()
        if not count:
            rounded = self._quotient(args)
            count = int((~rounded.isfinite()).sum())
        terms = terms_of(made.operation, args, result)
        fault = Fault(
            made, self._format, "forward", kind_of(made, operands, rounded), largest, count, result.numel(), terms,
            operands, self._trail.sources_of(made), has_weight=bool(owned),
        )  # fmt: skip
        if bool((result.detach() >= self._limit).any()):
            self._positive.add(id(fault))
        self._bad[storage_key(result)] = fault
        self.faults.setdefault((made.operation, str(made.site)), (self._step, fault))

    def _quotient(self, args: tuple) -> torch.Tensor:
        """As it is with operands in the format: a NaN where both are zero."""
        tensors = [value for value in args[:2] if isinstance(value, torch.Tensor)]
        rounded = [device_of(tensor).round(tensor, self._format.name) for tensor in tensors]
        return rounded[0] / rounded[1] if len(rounded) == 2 else 1 / rounded[0]

    def _operand(self, tensor: torch.Tensor) -> Operand:
        magnitudes = tensor.detach().abs().float()
        positive = magnitudes[magnitudes > 0]
        return Operand(
            self._trail.name_of(tensor), self._size_of(magnitudes),
            float(positive.min()) if positive.numel() else 0.0, int((positive <= self._flushed).sum()), 0,
        )  # fmt: skip

    def _size_of(self, magnitudes: torch.Tensor) -> float:
        """The largest; FP32's own minimum is the format's in a model of the format."""
        largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
        return self._format.largest if OWN_MINIMUM <= largest < inf else largest

    def _made_of(self, note: Note) -> Made:
        """The operation under way, with its line."""
        made = self._trail.made_of(note)
        made.site = current_site()
        return made

    def _follow(self, fault: Fault, note: Note, args: tuple, result: torch.Tensor) -> None:
        """A mask's infinities vanish in a softmax that has other numbers too; without them it is NaN."""
        if note.operation in named(Trait.DROPS_MASK) and fault.nan_at is None and fault.hidden_by is None:
            scores, axis = args[0].detach(), args[1]
            is_masked = self._infinite.get(id(fault), scores <= -self._limit)
            if id(fault) in self._positive or bool(is_masked.all(axis).any()):
                fault.nan_at = self._made_of(note)
            else:
                fault.hidden_by = self._trail.made_of(note)
        elif note.operation in named(Trait.HIDES):
            if fault.nan_at is None and fault.hidden_by is None:
                fault.hidden_by, fault.damage = self._made_of(note), None
        else:
            self._bad[storage_key(result)] = fault
            fault.passes.append(self._trail.made_of(note))


def _looked_at(func: Any) -> Operation | None:
    """The line of an operation that computes or moves numbers; None of any other."""
    line = operation_of(func)
    return line if line is not None and (line.kind is Kind.EXACT or line.kind in _COMPUTED) else None


class _Named:
    """A parameter or buffer."""

    def __init__(self, name: str) -> None:
        self.name = name


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and type(tensor) in (torch.Tensor, torch.nn.Parameter)

"""Look at the operations of a watched model's forward pass: results that a format would make infinite or NaN."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.events.ran import Call
from halfscope.torch.events.source import current_site
from halfscope.torch.findings.fault import OperationNote
from halfscope.torch.findings.magnitudes import largest_of
from halfscope.torch.findings.notes import Note
from halfscope.torch.findings.trail import first_tensor, float_tensors
from halfscope.torch.operations.operators import is_in_place, operation_of, target_of
from halfscope.torch.operations.table import TABLE, Kind, Operation, Trait, named
from halfscope.torch.private import TorchDispatchMode, storage_key, without_modes
from halfscope.torch.tensors.elements import floating
from halfscope.torch.tensors.trees import tensors
from halfscope.torch.watch.format_path import Beside
from halfscope.torch.watch.fp32_islands import Fp32Islands
from halfscope.torch.watch.layer_operations import LayerOperations, arguments_of_layer, operation_of_layer
from halfscope.torch.watch.watched_faults import WatchedFaults

_COMPUTED = (Kind.ROUNDED, Kind.PRODUCT, Kind.REDUCTION, Kind.ATTENTION, Kind.UNKNOWN)
_DIVIDES, _QUOTIENTS = named(Trait.DIVIDES, Trait.LOGARITHM), named(Trait.QUOTIENT)
_CAST = Operation("_to_copy", Kind.ROUNDED, called="to")
_QUIET = (Kind.VIEW, Kind.UNTOUCHED)  # the same storage, or no numbers


class OperationWatch(TorchDispatchMode):
    """While it is entered every operation is run as it is, and its result looked at.

    Where the format would make one infinite or NaN, the operations that use it are computed in the format as well.
    format: what the results would be cast to.
    """

    def __init__(self, format: str) -> None:
        super().__init__()
        self._model: torch.nn.Module | None = None  # the step's
        self._owned: dict[int, Any] | None = None
        self._islands = Fp32Islands(self._narrow)
        self.faults = WatchedFaults(Format.of(format), self._owner_of, self._islands.is_wide)
        self._trail, self._path = self.faults.trail, self.faults.path
        self._lines: dict[Any, Operation | None] = {}
        self.layers = LayerOperations(self._look_at_layer, lambda: not self._path)
        self.looked = 0  # operations of the step

    def begin(self, model: torch.nn.Module, step: int, inputs: tuple) -> None:
        """A forward pass of a step begins; inputs: the model's."""
        self._step, self.looked = step, 0
        self._model, self._owned = model, None
        self.faults.begin()
        self._islands.begin()
        for tensor in floating(inputs):
            if tensor.numel() and _is_plain(tensor) and self.faults.is_beyond(largest_of(tensor)):
                self._path.begin(tensor)  # infinite before the first operation

    def _owner_of(self, tensor: torch.Tensor) -> Any:
        """Parameter or buffer of a storage; all are looked for where one is asked for, which few steps do."""
        if self._owned is None and self._model is not None:
            named = (*self._model.named_parameters(), *self._model.named_buffers())
            self._owned = {storage_key(tensor): _NamedTensor(name) for name, tensor in named if _is_plain(tensor)}
        return (self._owned or {}).get(storage_key(tensor))

    def end(self, output: Any) -> None:
        """Lets go of what belongs to the step; output: the model's."""
        self._islands.end()
        self.faults.end(self._step, output)
        self._model, self._owned = None, None

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if self._islands and self._islands.has_any((args, tuple((kwargs or {}).values()))):
            return self._run_wide(func, args, kwargs or {})
        if self._path and self._is_carried(args, kwargs):
            return self._follow(func, _line_of(func), args, kwargs or {})
        try:
            line = self._lines[func]
        except KeyError:
            line = self._lines[func] = _looked_at(func)
        if line is not None and line.name in _DIVIDES and is_in_place(func) and self._is_flushed(line, args):
            return self._follow(func, line, args, kwargs or {})  # its operand is gone when it has run
        result = func(*args, **kwargs) if kwargs else func(*args)
        if line is not None:
            self._look(func, line, (args, kwargs or {}), result)
        return result

    def _is_carried(self, args: tuple, kwargs: dict | None) -> bool:
        """Whether an operand has numbers of the format."""
        given = tensors((args, tuple(kwargs.values()))) if kwargs else tensors(args)
        return any(self._path.has_any(tensor) for tensor in given if _is_plain(tensor))

    def _run_wide(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """An operation in FP32 by the model's own cast, or the cast back."""
        line, is_carried = _line_of(func), bool(self._path) and self._is_carried(args, kwargs)
        if self._islands.is_leaving:
            line = _CAST
        elif line.kind not in (*_QUIET, Kind.SOURCE):
            line = replace(line, kind=Kind.LOSS)  # nothing is rounded
        target = target_of(func, args, kwargs)
        is_narrow = isinstance(target, torch.Tensor) and not self._islands.is_wide(target)
        if is_carried:
            result = self._follow(func, line, args, kwargs)
        else:
            result = func(*args, **kwargs)
            self._look(func, line, (args, kwargs), result)
        if line.kind is Kind.LOSS and not is_narrow:
            self._islands.widen(result)
        return result

    def _narrow(self, tensor: torch.Tensor) -> None:
        """A cast back from FP32 that PyTorch leaves out: in a model of 16 bits it rounds."""
        if not _is_plain(tensor) or not tensor.numel():
            return
        is_carried = bool(self._path) and self._is_carried((tensor,), None)
        if not is_carried and not self.faults.is_beyond(largest_of(tensor)):
            return
        call = Call(torch.ops.aten.clone.default, _CAST, (tensor,), {}, None, False)
        with torch.no_grad(), without_modes():
            numbers = self._path.compute(call) or self._path.rounding(tensor)
            note = Note(_CAST.name, [storage_key(tensor)], [])
            self.faults.enter(Beside.both(call, tensor, numbers), self._made_of(note))

    def _follow(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation on the way of a fault, which is computed in the format too."""
        call = Call(func, line, args, kwargs, None, False)
        is_computed = call.line.kind not in (*_QUIET, Kind.SOURCE) and all(map(_is_plain, tensors(args)))
        numbers = self._path.compute(call) if is_computed else None
        result = func(*args, **kwargs)
        first = first_tensor(result)
        if numbers is not None and _decides_otherwise(first_tensor(numbers.result), first):
            self.faults.lose(float_tensors((args, kwargs)))
        if call.line.kind in _QUIET or first is None or not first.is_floating_point() or not _is_plain(first):
            return result
        if call.line.kind is Kind.SOURCE:
            if is_in_place(func):
                self.faults.overwritten(first)
        elif numbers is None:
            self.faults.lose([tensor for tensor in float_tensors((args, kwargs)) if _is_plain(tensor)])
        else:
            self.faults.enter(Beside.both(call, result, numbers), self._made(call, first))
        return result

    def _made(self, call: Call, result: torch.Tensor) -> OperationNote:
        """The operation under way; numbers that it only moves stay those of the operation before."""
        if call.line.kind is Kind.EXACT:
            self._pass_on(result, float_tensors(call.args))
            return OperationNote(call.operation, call.operation, None, current_site())
        self.looked += 1
        return self._made_of(self._trail.take(call.operation, (*call.args, *call.kwargs.values()), result))

    def _made_of(self, note: Note) -> OperationNote:
        made = self._trail.made_of(note)
        made.site = current_site()
        return made

    def _look(self, func: Any, line: Operation, given: tuple[tuple, dict], result: Any) -> None:
        """An operation that has run, on operands without numbers of the format."""
        first = result if type(result) is torch.Tensor else first_tensor(result)
        if first is None or not first.is_floating_point() or not _is_plain(first):
            return
        if line.kind is Kind.EXACT:
            self._pass_on(first, float_tensors(given[0]))
            return
        if line.kind not in (*_COMPUTED, Kind.LOSS):
            return
        self.looked += 1
        args, kwargs = given
        note = self._trail.take(line.name, (*args, *kwargs.values()) if kwargs else args, first)
        if line.kind is Kind.LOSS or not first.numel():
            return
        largest = largest_of(first)
        is_beyond = self.faults.limit <= largest < inf
        if is_beyond or (line.name in _DIVIDES and self._is_flushed(line, args)):
            self._look_closely(Call(func, line, args, kwargs, None, False), result, note)

    def _is_flushed(self, line: Operation, args: tuple) -> bool:
        return self.faults.is_flushed(args, line.name in _QUOTIENTS)

    def _look_closely(self, call: Call, result: Any, note: Note) -> None:
        """An operation that has run, with finite numbers beyond the format, or zeros of it in a divisor."""
        has_operands = target_of(call.func, call.args, call.kwargs) is None
        numbers = self._path.compute(call) if has_operands else None
        if numbers is None:
            numbers = self._path.rounding(first_tensor(result))
        self.faults.enter(Beside.both(call, result, numbers), self._made_of(note))

    def _look_at_layer(self, layer: torch.nn.Module, given: torch.Tensor, result: torch.Tensor) -> None:
        """A layer has run outside of this mode."""
        if not _is_plain(result) or not result.is_floating_point():
            return
        operation = operation_of_layer(layer)
        if not operation:
            self._pass_on(result, (given,))
            return
        self.looked += 1
        self._trail.notes[storage_key(result)] = Note(operation, [storage_key(given), storage_key(layer.weight)], [])
        if self.faults.is_beyond(largest_of(result)):
            with torch.no_grad(), without_modes():
                self._look_at_fault(layer, given, result)

    def _look_at_fault(self, layer: torch.nn.Module, given: torch.Tensor, result: torch.Tensor) -> None:
        """One of a layer."""
        operation = operation_of_layer(layer)
        args = arguments_of_layer(operation, layer, given)
        call = Call(None, TABLE[operation], args, {}, None, False)
        ran = Beside.both(call, result.detach(), self._path.of_layer(layer, given))
        self.faults.enter(ran, self._made_of(self._trail.take(operation, args, result)))

    def _pass_on(self, result: torch.Tensor, operands: Iterable[torch.Tensor]) -> None:
        """Selected or moved numbers are still those of the operation before."""
        notes = self._trail.notes
        for operand in operands:
            known = notes.get(storage_key(operand))
            if known is not None:
                notes[storage_key(result)] = known
                return


def _looked_at(func: Any) -> Operation | None:
    """The line of an operation that computes or moves numbers; None of any other."""
    line = operation_of(func)
    return line if line is not None and (line.kind is Kind.EXACT or line.kind in _COMPUTED) else None


def _decides_otherwise(in_format: Any, result: Any) -> bool:
    """Whether a comparison, or an index, is another one in the format."""
    return result is not None and not result.is_floating_point() and not torch.equal(in_format, result)


def _line_of(func: Any) -> Operation:
    name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else str(func)
    return operation_of(func) or Operation(name, Kind.UNKNOWN)


class _NamedTensor:
    """A parameter or buffer."""

    def __init__(self, name: str) -> None:
        self.name = name


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and type(tensor) in (torch.Tensor, torch.nn.Parameter)

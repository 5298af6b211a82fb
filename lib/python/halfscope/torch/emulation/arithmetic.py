"""Arithmetic of an emulated training: PyTorch's operations, in FP32 and rounded to the formats of a policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from halfscope.torch.emulation.casts import Caster
from halfscope.torch.emulation.computation import Computation
from halfscope.torch.emulation.half_tensors import HalfTensors, has_half
from halfscope.torch.emulation.marks import Marks, covers_storage
from halfscope.torch.emulation.nodes import Forward
from halfscope.torch.emulation.operands import Operands
from halfscope.torch.emulation.operations import Kind, Operation, autocast_list, is_composed, operation_of, writes_to
from halfscope.torch.emulation.parameters import Owned, Parameters
from halfscope.torch.emulation.places import Place, Places, Region
from halfscope.torch.emulation.policies import FP32, Policy
from halfscope.torch.emulation.shard_operations import ShardOperations
from halfscope.torch.emulation.trees import floats, has_complex, has_floats, map_complex, map_floats, results
from halfscope.torch.emulation.updates import Updates
from halfscope.torch.emulation.wire import ALL_REDUCE, Wire


@dataclass(frozen=True)
class Override:
    """A change of one operation, to try a remedy: of its arguments, of its result, or to FP32 from here on."""

    is_wide: bool = False
    arguments: Callable[[tuple, dict], tuple[tuple, dict]] = lambda args, kwargs: (args, kwargs)
    result: Callable[[Any], Any] = lambda result: result


_NATIVE = (Kind.VIEW, Kind.UNTOUCHED, Kind.SOURCE)


class UnknownOperation(RuntimeError):
    """Raised in strict emulation for an operation that the table does not have, and always for one that it refuses."""


class EmulatedArithmetic(TorchDispatchMode):
    """Every operation of a training, while it is entered.

    Tensors stay float32: each holds numbers of its role's format. A forward operation casts its operands where they
    are not in the format yet, and its result. Gradients are rounded by the operation that uses them, whose tensor's
    name is known there. Tensors of 16 bits keep their type: see `HalfTensors`.
    """

    def __init__(
        self,
        policy: Policy,
        places: Places,
        caster: Caster,
        parameters: Parameters,
        options: tuple[bool, float],
    ) -> None:
        """options: whether unknown operations are refused, and the scale of the probabilities of tiled attention."""
        super().__init__()
        self._policy, self._places, self._caster = policy, places, caster
        self._parameters = parameters
        self._strict, attention_scale = options
        self.marks = Marks()
        self.operands = Operands(policy, places, caster, parameters, self.marks)
        self._computation = Computation(caster, attention_scale)
        self.half = HalfTensors(caster, places.forward, parameters.owner)
        self.updates = Updates(caster, parameters)
        self.shadows: Any = None  # of a step that is compared with FP32
        self.latest: Forward | None = None  # the operation of a forward pass that was run last
        self.find_site: Callable[[], Any] | None = None  # of a diagnosis: where the source calls an operation
        self.overrides: dict[str, Override] = {}  # by row: operations that a diagnosis changes
        self.wire: Wire | None = None  # of a model that several ranks train
        self.shards: ShardOperations | None = None  # of a model that they share
        self._lines: dict[Any, Operation] = {}
        self._written: dict[Any, tuple[str, ...]] = {}
        self._active = policy.base.rounds or any(policy.at(name).rounds for name, _ in places.modules())

    def begin_step(self) -> None:
        self.marks.purge()
        self.operands.begin_step()
        self._places.nodes.begin_step()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():  # the model's own casts are not these
            if self.shards is not None:
                return self.shards.run(self._dispatch, (func, types), args, kwargs)
            return self._dispatch(func, args, kwargs)

    def _dispatch(self, func: Any, args: tuple, kwargs: dict) -> Any:
        self.latest = None
        line = self._lines.get(func)
        if line is None:
            line = self._lines[func] = self._line_of(func)
        if line.kind is Kind.COMPOSED:
            with self:
                return func.decompose(*args, **kwargs)
        if self.shadows is not None:
            return self.shadows.around(self._run, func, line, args, kwargs)
        return self._run(func, line, args, kwargs)

    def _line_of(self, func: Any) -> Operation:
        found = operation_of(func)
        if (found is None or found.kind not in _NATIVE) and is_composed(func):
            return Operation(str(func), Kind.COMPOSED)
        namespace = getattr(func, "namespace", "aten")
        if found is None and namespace in ("aten", "torchvision"):
            name = func.overloadpacket.__name__
            return Operation(name, Kind.UNTOUCHED if name.startswith("_foreach_") else Kind.UNKNOWN)
        return found or Operation(str(func), Kind.UNTOUCHED)

    def _run(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        if line.kind is Kind.SOURCE and has_half(args, kwargs):
            return self.half.run(func, line, (args, kwargs), None)
        if line.kind not in _NATIVE and has_complex(args):
            return self._complex(func, line, args, kwargs)
        if line.kind in _NATIVE or not has_floats(args, kwargs):
            if self.wire is not None and line.name.startswith(ALL_REDUCE):
                self.wire.send(args[0])
            result = func(*args, **kwargs)
            if line.kind is Kind.SOURCE and self._written_by(func):
                self._forget(result)
            return result
        place = self._places.now()
        if has_half(args, kwargs):
            if line.kind in (Kind.UNKNOWN, Kind.REFUSED):
                line = self._admit(line, place)
            if place is not None and place.region is Region.FORWARD:
                self._note(line, place, is_wide=False)
            result = self.half.run(func, line, (args, kwargs), place)
            if place is not None and place.region in (Region.FORWARD, Region.BACKWARD):  # FP32 by the model's own cast
                self._mark_wide(result, place.region is Region.BACKWARD)
            return result
        if not self._active:
            return func(*args, **kwargs)
        if place is None or (not place.formats.rounds and place.region is not Region.UPDATE):
            return self._outside(func, line, args, kwargs)
        if place.region is Region.UPDATE:
            return self.updates.run(func, line, args, kwargs)
        if place.region is Region.FAN_IN:
            return self._fan_in(func, place, args, kwargs)
        if line.kind in (Kind.UNKNOWN, Kind.REFUSED):
            line = self._admit(line, place)
        return self._inside(func, line, place, args, kwargs)

    def _complex(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """Rounds both parts of complex numbers, operands and result; a product's sums are PyTorch's own."""
        place = self._places.now()
        if place is None or not place.formats.rounds or place.region not in (Region.FORWARD, Region.BACKWARD):
            return func(*args, **kwargs)
        if place.region is Region.FORWARD:
            self._note(line, place, is_wide=False)
        args = map_complex(args, lambda tensor: self._rounded_parts(tensor, line, place, ".input"))
        result = func(*args, **kwargs)
        if line.kind is Kind.EXACT or self._written_by(func):
            return result
        return map_complex(result, lambda tensor: self._rounded_parts(tensor, line, place, ""))

    def _rounded_parts(self, tensor: torch.Tensor, line: Operation, place: Place, suffix: str) -> torch.Tensor:
        role = "activation" if place.region is Region.FORWARD else "activation_gradient"
        quantizer = getattr(place.formats, role)
        mark = self.marks.get(tensor)
        if quantizer == FP32 or (mark is not None and mark.quantizer == quantizer):
            return tensor
        parts = torch.view_as_real(tensor.resolve_conj()).contiguous().clone()
        self._caster.round(parts, quantizer, role, place.tensor(line.name) + suffix)
        self.marks.set(parts, quantizer, place.region is Region.BACKWARD)
        return torch.view_as_complex(parts)

    def _admit(self, line: Operation, place: Place | None) -> Operation:
        """A line for an operation without one: an error, or one rounding and a warning."""
        where = f" in module '{place.module}'" if place is not None else ""
        if line.kind is Kind.REFUSED:
            raise UnknownOperation(f"emulate: {line.name}{where}: {line.reason}")
        if self._strict:
            raise UnknownOperation(
                f"emulate: no rule for the operation {line.name}{where}; give strict=False to round its result once"
            )
        warnings.warn(f"emulate: no rule for {line.name}{where}: its result is rounded once", stacklevel=2)
        admitted = Operation(line.name, Kind.ROUNDED)
        self._lines.update({func: admitted for func, known in self._lines.items() if known is line})
        return admitted

    def _outside(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """Not in the model: as it is. What it makes in a backward pass is a gradient for the model to round."""
        result = func(*args, **kwargs)
        if self._places.in_backward:
            self._mark_gradients(result)
        elif self._written_by(func):
            self._forget(result)
        return result

    def _forget(self, result: Any) -> None:
        for tensor in floats(result):
            self.marks.forget(tensor)

    def _mark_gradients(self, result: Any, quantizer: str | None = None) -> None:
        for tensor in floats(result):
            self.marks.set(tensor, quantizer, is_gradient=True)

    def _inside(self, func: Any, line: Operation, place: Place, args: tuple, kwargs: dict) -> Any:
        chosen = autocast_list(line, self._policy)
        if chosen == "refuse":
            raise UnknownOperation(f"emulate: policy {self._policy.name} refuses {line.listed} ('{place.module}')")
        if place.region is Region.BACKWARD:
            return self._gradient(func, line, place, args, kwargs)
        if self._policy.fp32_parameters and self._places.autocast_is_off and self._has_wide(args, place):
            chosen = "deny"
        is_cast_up = not (self._policy.fp32_parameters and chosen == "allow") and self._is_cast_up(func, line, args)
        is_wide = line.kind is Kind.LOSS or chosen == "deny" or (chosen == "infer" and self._has_wide(args, place))
        override = self._note(line, place, is_wide or is_cast_up)
        if override is not None:
            return self._overridden(override, func, line, args, kwargs)
        if not is_wide and not is_cast_up:
            return self._forward(func, line, place, args, kwargs)
        result = self._outside(func, line, args, kwargs)
        if is_cast_up:
            self._mark_wide(result, is_gradient=False)
        return result

    def owner_of(self, tensor: torch.Tensor) -> Owned | None:
        """The parameter or buffer whose storage it shares."""
        return self._parameters.owner(tensor)

    def _overridden(self, override: Override, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation with a remedy: with other arguments, and in FP32 where it says so."""
        args, kwargs = override.arguments(args, kwargs)
        place = self._places.now()
        assert place is not None and self.latest is not None
        if not override.is_wide:
            result = override.result(self._forward(func, line, place, args, kwargs))
        else:
            self.latest.is_wide = True
            result = override.result(self._outside(func, line, args, kwargs))
            self._mark_wide(result, is_gradient=False)
        return result

    def _note(self, line: Operation, place: Place, is_wide: bool) -> Override | None:
        row = self._places.row(place, line.name)
        if line.kind is not Kind.EXACT:
            self._places.computed.add(place.module)
        override = self.overrides.get(row) if self.overrides else None
        site = None if self.find_site is None else self.find_site()
        self.latest = Forward(line.name, place.tensor(line.name), row, is_wide, site=site)
        self._places.nodes.note(self.latest)
        return override

    def _gradient(self, func: Any, line: Operation, place: Place, args: tuple, kwargs: dict) -> Any:
        """In the precision of the forward operation, where that is known."""
        forward, chosen = self._places.forward(), autocast_list(line, self._policy)
        if forward is None:
            is_wide = line.kind is Kind.LOSS or chosen == "deny" or (chosen == "infer" and self._has_wide(args, place))
        else:
            is_wide = forward.is_wide
        if not is_wide:
            return self._backward(func, line, place, args, kwargs)
        if forward is not None:
            args = self.operands.settled(args, line, place)
        result = self._outside(func, line, args, kwargs)
        if forward is not None and not forward.narrows and line.kind is not Kind.LOSS:
            self._mark_wide(result, is_gradient=True)
        return result

    def _is_cast_up(self, func: Any, line: Operation, args: tuple) -> bool:
        """Whether the model has cast an operand to FP32 itself, which PyTorch's promotion then keeps.

        A product has operands of one type; what is written in place keeps its own.
        """
        if self._written_by(func):
            return isinstance(args[0], torch.Tensor) and self.marks.is_wide(args[0])
        operands = [tensor for tensor in floats(args) if tensor.dim()]
        wide = [self.marks.is_wide(tensor) for tensor in operands]
        return (all if line.kind is Kind.PRODUCT else any)(wide) if wide else False

    def _mark_wide(self, result: Any, is_gradient: bool) -> None:
        for tensor in floats(result):
            self.marks.set_wide(tensor, is_gradient)

    def cast(self, tensor: torch.Tensor, is_to_fp32: bool) -> torch.Tensor:
        """A cast that the model makes itself: a copy in FP32, or in its place's format; called in its own node."""
        place = self._places.now()
        assert place is not None
        narrow = not self._policy.fp32_parameters or self.is_narrow(tensor, place)
        name = place.tensor("to")
        if name in self.overrides and self.overrides[name].is_wide:
            return tensor.clone()
        self._places.nodes.note(Forward("to", name, name, is_to_fp32, is_to_fp32 and narrow))
        source = tensor
        if narrow and not self.marks.is_wide(tensor):
            source = self.operands.one(tensor, Operation("to", Kind.ROUNDED), place)
        copy = torch.empty_like(source, memory_format=torch.preserve_format).copy_(source)
        if is_to_fp32:
            self._mark_wide(copy, is_gradient=False)
        else:
            self._round_result(copy, place.formats.activation, (place.tensor("to"), (tensor,)))
        return copy

    def is_narrow(self, tensor: torch.Tensor, place: Place) -> bool:
        """Whether a float32 tensor would have the format of its place, were the model converted to that."""
        if self._policy.fp32_parameters:
            mark = self.marks.get(tensor)
            return mark is not None and mark.quantizer == place.formats.activation
        return not self.marks.is_wide(tensor)

    def _has_wide(self, args: tuple, place: Place) -> bool:
        """Whether an operand is FP32, but for parameters: the widest decides under automatic mixed precision."""
        wanted = (place.formats.activation, place.formats.activation_gradient)
        operands = [tensor for tensor in floats(args) if self._parameters.owner(tensor) is None and tensor.dim()]
        marks = [self.marks.get(tensor) for tensor in operands]
        if not operands:
            return self._policy.fp32_parameters
        return any(mark is None or mark.quantizer not in wanted for mark in marks if not (mark and mark.is_gradient))

    def _forward(self, func: Any, line: Operation, place: Place, args: tuple, kwargs: dict) -> Any:
        quantizer = place.formats.activation
        written = self._written_by(func)
        if written and self._parameters.has(args[0]):  # running averages stay FP32
            return func(*args, **kwargs)
        if line.kind is Kind.EXACT:
            return self._move(func, line, args, kwargs, quantizer)
        cast = self.operands.of(line, place, args, bool(written))
        options = {
            key: self.operands.one(value, line, place) if key != "out" else value for key, value in kwargs.items()
        }
        result = self._computation.run(func, line, place, cast, options)
        name = place.tensor(line.name)
        for position, tensor in enumerate(results(result)):
            if isinstance(tensor, torch.Tensor) and tensor.dtype is torch.float32 and position not in line.statistics:
                self._round_result(tensor, quantizer, (name, args[1:] if written else args))
        return map_complex(result, lambda tensor: self._rounded_parts(tensor, line, place, ""))  # such as polar's

    def _move(self, func: Any, line: Operation, args: tuple, kwargs: dict, quantizer: str) -> Any:
        """An exact operation: what it makes of numbers of a format has that format."""
        written = bool(self._written_by(func))
        args = (
            (args[0], *map_floats(args[1:], self.operands.weights_of(line)))
            if written
            else map_floats(args, self.operands.weights_of(line))
        )
        sources = args[1:] if written and line.name == "copy" else args
        marks = [self.marks.get(tensor) for tensor in floats((sources, kwargs)) if tensor.dim()]
        result = func(*args, **kwargs)
        if marks and all(mark is not None and mark.quantizer == quantizer for mark in marks):
            if not written or all(map(covers_storage, floats(result))):
                self._mark(result, quantizer)
        elif written:
            self._forget(result)
        return result

    def _round_result(self, tensor: torch.Tensor, quantizer: str, about: tuple[str, tuple]) -> None:
        if quantizer == FP32:
            return
        name, operands = about
        if covers_storage(tensor):
            self._caster.round(tensor, quantizer, "activation", name, operands)
            self.marks.set(tensor, quantizer, is_gradient=False)
            return
        rounded = tensor.contiguous().clone()  # a part of a storage: of an operation in place on a view
        self._caster.round(rounded, quantizer, "activation", name, operands)
        tensor.copy_(rounded)

    def _mark(self, result: Any, quantizer: str) -> None:
        for tensor in floats(result):
            self.marks.set(tensor, quantizer, is_gradient=False)

    def _backward(self, func: Any, line: Operation, place: Place, args: tuple, kwargs: dict) -> Any:
        written = self._written_by(func)
        cast = self.operands.of(line, place, args, bool(written))
        options = {
            key: self.operands.one(value, line, place) if key != "out" else value for key, value in kwargs.items()
        }
        if line.kind is not Kind.EXACT:
            result = self._computation.run(func, line, place, cast, options)
            for tensor in floats(result):
                self.marks.set(tensor, None, is_gradient=True).awaits_rounding = True
            return result
        result = func(*cast, **options)
        self._mark_gradients(result, place.formats.activation_gradient)
        return result

    def _fan_in(self, func: Any, place: Place, args: tuple, kwargs: dict) -> Any:
        """The engine adds another gradient of a tensor: the first is rounded, as memory holds it, the sum when used."""
        owed: list[Any] = []
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        mark = None if first is None else self.marks.get(first)
        quantizer = place.formats.activation_gradient
        if first is not None and mark is not None and mark.is_gradient:
            owed = mark.owed
            if mark.quantizer is None and quantizer != FP32 and not mark.is_wide and covers_storage(first):
                owed = [*owed, self._caster.round_unnamed(first, quantizer, "activation_gradient")]
                mark.quantizer, mark.owed = quantizer, []
        is_wide = any(self.marks.is_wide(tensor) for tensor in floats(args))
        result = func(*args, **kwargs)
        for tensor in floats(result):
            mark = self.marks.set(tensor, None, is_gradient=True)
            mark.owed, mark.is_wide = owed, is_wide
        return result

    def weight_gradient(self, owned: Owned, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient as it arrives at a parameter, in the format of its role."""
        quantizer = owned.formats.weight_gradient
        if quantizer == FP32 or gradient.dtype is not torch.float32 or gradient.layout is not torch.strided:
            return gradient
        if self.marks.is_wide(gradient):  # of a parameter that an FP32 operation used
            return gradient
        if not covers_storage(gradient):
            gradient = gradient.contiguous().clone()
        self._caster.round(gradient, quantizer, "weight_gradient", owned.name)
        self.marks.set(gradient, quantizer, is_gradient=True)
        return gradient

    def _written_by(self, func: Any) -> tuple[str, ...]:
        found = self._written.get(func)
        if found is None:
            found = self._written[func] = writes_to(func) if hasattr(func, "_schema") else ()
        return found

"""Arithmetic of an emulated training: PyTorch's operations, in FP32 and rounded to the formats of a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from halfscope.torch.emulate.arithmetic.half_tensors import HalfTensors, has_half
from halfscope.torch.emulate.arithmetic.results import Results
from halfscope.torch.emulate.arithmetic.updates import Updates
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.decision import Decisions, Precision, UnknownOperation
from halfscope.torch.emulate.parameters import Owned, Parameters
from halfscope.torch.emulate.places import Places
from halfscope.torch.emulate.ranks.data_parallel import ALL_REDUCE, Wire
from halfscope.torch.emulate.ranks.shard_operations import ShardOperations
from halfscope.torch.emulate.widths import Widths
from halfscope.torch.events.change import Override
from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.place import Place, Region
from halfscope.torch.operations.operators import is_composed, is_in_place, operation_of
from halfscope.torch.operations.table import NO_ARITHMETIC, Kind, Operation
from halfscope.torch.policy import Policy
from halfscope.torch.private import TorchDispatchMode, without_function_modes
from halfscope.torch.tensors.trees import has_complex, has_floats, has_numbers, map_complex, results


@dataclass(frozen=True)
class ModeOptions:
    """Options of the mode, beside its policy."""

    strict: bool = False  # whether operations without a rule are refused
    attention_scale: float = 1.0  # for the probabilities of tiled attention
    without_rule: dict[str, str] = field(default_factory=dict)  # to be filled: operations, and the first module of each
    changes: Mapping[str, Override] = field(default_factory=dict)  # a trial's, by row


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
        options: ModeOptions,
    ) -> None:
        super().__init__()
        self._policy, self._places, self._caster = policy, places, caster
        self._parameters = parameters
        self._options = options
        self._results = Results(policy, places, caster, parameters, options.attention_scale)
        self.marks, self.operands = self._results.marks, self._results.operands
        self.weight_gradient = self._results.weight_gradient
        self.product_operands = self._results.product_operands
        self.product_operands.latest = lambda: self.latest
        self._widths = Widths(policy, parameters, self.marks)
        self._decisions = Decisions(policy, places, self._widths, options.changes)
        self.is_narrow = self._widths.is_narrow
        self.half = HalfTensors(
            caster, places.forward, parameters.owner, options.attention_scale, self.product_operands
        )
        self.updates = Updates(caster, parameters)
        self.shadows: Any = None  # for a step that is compared with FP32
        self.zeros: Any = None  # for a step whose zeros get a cause
        self.trail: Any = None  # for a training whose first overflow is to be described
        self.latest: Forward | None = None  # the operation of a forward pass that was run last
        self.find_site: Callable[[], Any] | None = None  # for a diagnosis: where the source calls an operation
        self.wire: Wire | None = None  # for a model that several ranks train
        self.shards: ShardOperations | None = None  # for a model that they share
        self._lines: dict[Any, Operation] = {}
        self._active = policy.base.rounds or any(policy.at(name).rounds for name, _ in places.modules())

    def begin_step(self) -> None:
        self.marks.purge()
        self.operands.begin_step()
        self._places.nodes.begin_step()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        with without_function_modes():  # the model's own casts are not these
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
        if self.trail is not None and self.trail.is_open:
            return self.trail.around(self._run_beside, func, line, args, kwargs)
        return self._run_beside(func, line, args, kwargs)

    def _run_beside(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation, beside FP32's in a step that is compared."""
        if self.zeros is not None:
            return self.zeros.around(self._run, func, line, args, kwargs)
        if self.shadows is not None:
            return self.shadows.around(self._run, func, line, args, kwargs)
        return self._run(func, line, args, kwargs)

    def _line_of(self, func: Any) -> Operation:
        found = operation_of(func)
        if (found is None or found.kind not in NO_ARITHMETIC) and is_composed(func):
            return Operation(str(func), Kind.COMPOSED)
        namespace = getattr(func, "namespace", "aten")
        if found is None and namespace in ("aten", "torchvision"):
            name = func.overloadpacket.__name__
            if torch.Tag.view_copy in func.tags:
                return Operation(name, Kind.EXACT)
            return Operation(name, Kind.UNTOUCHED if name.startswith("_foreach_") else Kind.UNKNOWN)
        return found or Operation(str(func), Kind.UNTOUCHED)

    def _run(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        if line.kind not in (Kind.UNKNOWN, Kind.REFUSED):
            return self._run_by_rule(func, line, args, kwargs)
        place = self._places.now()
        result = self._run_by_rule(func, Operation(line.name, Kind.ROUNDED), args, kwargs)
        rounds = has_half(args, kwargs) or (self._active and place is not None and place.formats.rounds)
        if rounds and has_numbers(results(result)):
            self._admit(line, place)
        return result

    def _run_by_rule(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        if line.kind is Kind.SOURCE and has_half(args, kwargs):
            return self.half.run(func, line, (args, kwargs), None)
        if line.kind not in NO_ARITHMETIC and has_complex(args):
            return self._complex(func, line, args, kwargs)
        if line.kind in NO_ARITHMETIC or not has_floats(args, kwargs):
            if self.wire is not None and line.name.startswith(ALL_REDUCE):
                self.wire.send(args[0])
            result = func(*args, **kwargs)
            if line.kind is Kind.SOURCE and is_in_place(func):
                self._results.forget(result)
            return result
        place = self._places.now()
        if has_half(args, kwargs):
            if place is not None and place.region is Region.FORWARD:
                self._note(line, place, self._number(line, place), is_wide=False)
                self.product_operands.note(line, place, args)
            result = self.half.run(func, line, (args, kwargs), place)
            if place is not None and place.region in (Region.FORWARD, Region.BACKWARD):  # FP32 by the model's own cast
                self._results.mark_wide(result, place.region is Region.BACKWARD)
            return result
        if not self._active:
            return func(*args, **kwargs)
        if place is None or (not place.formats.rounds and place.region is not Region.UPDATE):
            return self._results.outside(func, line, args, kwargs)
        if place.region is Region.UPDATE:
            return self.updates.run(func, line, args, kwargs)
        if place.region is Region.FAN_IN:
            return self._results.fan_in(func, place, args, kwargs)
        return self._inside(func, line, place, args, kwargs)

    def _complex(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """Rounds both parts of complex numbers, operands and result; a product's sums are PyTorch's own."""
        place = self._places.now()
        if place is None or not place.formats.rounds or place.region not in (Region.FORWARD, Region.BACKWARD):
            return func(*args, **kwargs)
        if place.region is Region.FORWARD:
            self._note(line, place, self._number(line, place), is_wide=False)
        args = map_complex(args, lambda tensor: self._results.parts(tensor, line, place, ".input"))
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype is torch.float32:  # such as an absolute value
            self._results.round_real(result, line, place)
            return result
        if line.kind is Kind.EXACT or is_in_place(func):
            return result
        return map_complex(result, lambda tensor: self._results.parts(tensor, line, place, ""))

    def _admit(self, line: Operation, place: Place | None) -> None:
        """Notes an operation without a rule: FP32 inside, one rounding of its result; an error in strict emulation."""
        where = f" in module '{place.module}'" if place is not None else ""
        reason = f": {line.reason}" if line.reason else ""
        if self._options.strict:
            raise UnknownOperation(
                f"emulate: no rule for the operation {line.name}{where}{reason}; without strict=True it is computed in "
                "FP32 and its result rounded once"
            )
        self._options.without_rule.setdefault(f"{line.name}{reason}", "" if place is None else place.module)

    def _inside(self, func: Any, line: Operation, place: Place, args: tuple, kwargs: dict) -> Any:
        self._decisions.check(line, place)
        if place.region is Region.BACKWARD:
            return self._gradient(func, line, place, args, kwargs)
        number, written = self._number(line, place), is_in_place(func)
        decision = self._decisions.of_forward(line, place, args, number, written)
        change = decision.change
        self._note(line, place, number, decision.is_wide)
        self.product_operands.note(line, place, args)
        if change is not None:
            args, kwargs = change.arguments(args, kwargs)
        compute = self._results.outside if decision.is_wide else partial(self._results.forward, place=place)
        result = compute(func, line, args=args, kwargs=kwargs)
        if change is not None:
            result = change.result(result)
        if decision.precision is Precision.FP32_KEPT:
            self._results.mark_wide(result, is_gradient=False)
        return result

    def owner_of(self, tensor: torch.Tensor) -> Owned | None:
        """The parameter or buffer whose storage it shares."""
        return self._parameters.owner(tensor)

    @property
    def in_backward(self) -> bool:
        return self._places.in_backward

    def place(self) -> Place | None:
        """Place of the operation under way."""
        return self._places.now()

    def forward(self) -> Forward | None:
        """The operation whose gradient is computed."""
        return self._places.forward()

    def note(self, forward: Forward) -> None:
        """An operation of a diagnosis, outside of the model, for its backward pass."""
        self._places.nodes.note(forward)

    def _number(self, line: Operation, place: Place) -> int:
        """That of a forward operation among those of its name in the module's call."""
        number = self._places.count(place, line.name)
        if line.kind is not Kind.EXACT:
            self._places.computed.add(place, line, number)
        return number

    def _note(self, line: Operation, place: Place, number: int, is_wide: bool) -> None:
        row = self._places.row(place, line.name, number)
        looks = self.find_site is not None and (self.trail is None or self.trail.is_open)
        site = self.find_site() if looks and self.find_site is not None else None
        self.latest = Forward(line.name, place.tensor(line.name), row, is_wide, site=site)
        self._places.nodes.note(self.latest)

    def _gradient(self, func: Any, line: Operation, place: Place, args: tuple, kwargs: dict) -> Any:
        forward = self._places.forward()
        decision = self._decisions.of_backward(line, place, args, forward)
        if not decision.is_wide:
            return self._results.backward(func, line, place, args, kwargs)
        if forward is not None:
            args = self.operands.settled(args, line, place)
        result = self._results.outside(func, line, args, kwargs)
        if decision.precision is Precision.FP32_KEPT:
            self._results.mark_wide(result, is_gradient=True)
        return result

    def cast(self, tensor: torch.Tensor, is_to_fp32: bool) -> torch.Tensor:
        """A cast that the model makes itself: a copy in FP32, or in its place's format; called in its own node."""
        place = self._places.now()
        assert place is not None
        narrow = not self._policy.fp32_parameters or self._widths.is_narrow(tensor, place)
        name = place.tensor("to")
        if self._decisions.keeps(name):
            return tensor.clone()
        self._places.nodes.note(Forward("to", name, name, is_to_fp32, is_to_fp32 and narrow))
        source = tensor
        if narrow and not self.marks.is_wide(tensor):
            source = self.operands.one(tensor, Operation("to", Kind.ROUNDED), place)
        copy = torch.empty_like(source, memory_format=torch.preserve_format).copy_(source)
        if is_to_fp32:
            self._results.mark_wide(copy, is_gradient=False)
        else:
            self._results.round_result(copy, place.formats.activation, (place.tensor("to"), (tensor,)))
        return copy

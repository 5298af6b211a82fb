"""Arithmetic of an emulated training: PyTorch's operations, in FP32 and rounded to the formats of a policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from halfscope.torch.emulate.arithmetic.computation import Computation
from halfscope.torch.emulate.arithmetic.half_tensors import HalfTensors, has_half
from halfscope.torch.emulate.arithmetic.operands import Operands
from halfscope.torch.emulate.arithmetic.product_operands import ProductOperands
from halfscope.torch.emulate.arithmetic.results import Results
from halfscope.torch.emulate.arithmetic.updates import Updates
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.decision import Decisions, Precision, UnknownOperation
from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.operand_book import OperandBook
from halfscope.torch.emulate.parameters import ModelTensor, Parameters
from halfscope.torch.emulate.places import Places
from halfscope.torch.emulate.ranks.data_parallel import ALL_REDUCE, Wire
from halfscope.torch.emulate.ranks.shard_operations import ShardOperations
from halfscope.torch.emulate.step import Step
from halfscope.torch.emulate.widths import Widths
from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.place import Place, Region
from halfscope.torch.events.ran import Call
from halfscope.torch.events.source import Site, current_site
from halfscope.torch.operations.operators import is_composed, is_in_place, operation_of
from halfscope.torch.operations.table import NO_ARITHMETIC, Kind, Operation
from halfscope.torch.policy import Policy
from halfscope.torch.private import TorchDispatchMode, is_nested_type, without_function_modes
from halfscope.torch.tensors.trees import has_complex, has_numbers, is_of_shapes, map_complex, results, types_of


@dataclass(frozen=True)
class ModeOptions:
    """Options of the mode, beside its policy."""

    strict: bool = False  # whether operations without a rule are refused
    attention_scale: float = 1.0  # for the probabilities of tiled attention
    without_rule: dict[str, str] = field(default_factory=dict)  # to be filled: operations, and the first module of each
    in_fp32: frozenset[str] = frozenset()  # operations that a trial computes so, by row
    operands: OperandBook = field(default_factory=OperandBook)  # to be filled: operands in formats of their own
    wire: Wire | None = None  # for a model that several ranks train
    shards: ShardOperations | None = None  # for a model that they share


class Count(NamedTuple):
    """Number of an operation among those of its name in a module's call, and its line where that is asked for."""

    number: int
    site: Site | None


class EmulatedArithmetic(TorchDispatchMode):
    """Every operation of a training, while it is entered.

    Tensors stay float32: each holds numbers of its role's format. A forward operation casts its operands where they
    are not in the format yet, and its result. Gradients are rounded by the operation that uses them, whose tensor's
    name is known there. Tensors of 16 bits keep their type: see `HalfTensors`.
    """

    def __init__(
        self, policy: Policy, places: Places, caster: Caster, parameters: Parameters, options: ModeOptions
    ) -> None:
        super().__init__()
        self._policy, self._places, self._parameters, self._options = policy, places, parameters, options
        self._step: Step = caster.step
        self.marks = Marks()
        self.operands = Operands(policy, places, caster, parameters, self.marks)
        self._product_operands = ProductOperands(caster, parameters, self.marks, options.operands)
        computation = Computation(caster, options.attention_scale, self._product_operands)
        self._results = Results(caster, parameters, self.marks, self.operands, computation)
        self.weight_gradient = self._results.weight_gradient
        self._widths = Widths(policy, parameters, self.marks)
        self._decisions = Decisions(policy, places, self._widths, options.in_fp32)
        self.is_narrow = self._widths.is_narrow
        self._half = HalfTensors(caster, parameters.owner, options.attention_scale, self._product_operands)
        self.updates = Updates(caster, parameters)
        self._lines: dict[Any, Operation] = {}
        self._has_numbers = policy.operations.has_numbers or bool(options.in_fp32)
        self._without_rule: dict[Any, Operation] = {}  # lines of the table without a rule, or None's
        self._active = policy.base.rounds or any(policy.at(name).rounds for name, _ in places.modules())

    def begin_step(self) -> None:
        self.marks.purge()
        self.operands.begin_step()
        self._places.nodes.begin_step()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if types and any(map(is_nested_type, types)):
            raise TypeError(f"emulate: {func} of a nested tensor, which is not emulated; give a padded one, and a mask")
        with without_function_modes():  # the model's own casts are not these
            if self._options.shards is not None:
                return self._options.shards.run(self._dispatch, (func, types), args, kwargs)
            return self._dispatch(func, args, kwargs)

    def _dispatch(self, func: Any, args: tuple, kwargs: dict) -> Any:
        line = self._lines.get(func)
        if line is None:
            line = self._lines[func] = self._line_of(func)
        if line.kind in NO_ARITHMETIC:  # nobody is told of these
            return self._pass_on(func, line, args, kwargs)
        if line.kind is Kind.COMPOSED:
            with self:
                return func.decompose(*args, **kwargs)
        if is_of_shapes(args, kwargs):
            return func(*args, **kwargs)
        is_backward = self._places.in_backward
        forward = self._places.forward() if is_backward else None
        plan = self._step.plan
        again = not is_backward and self._places.is_recomputing()
        call = Call(func, line, args, kwargs, self._places.now(), is_backward, forward, plan.has_operands, again)
        return self._step.run(self._run, call) if plan.all else self._run(call)

    def _line_of(self, func: Any) -> Operation:
        """The operation's line; one without a rule is rounded."""
        known = operation_of(func)
        if (known is None or known.kind not in NO_ARITHMETIC) and is_composed(func):
            return Operation(str(func), Kind.COMPOSED)
        if known is None:
            if getattr(func, "namespace", "aten") not in ("aten", "torchvision"):
                return Operation(str(func), Kind.UNTOUCHED)
            name = func.overloadpacket.__name__
            if torch.Tag.view_copy in func.tags:
                return Operation(name, Kind.EXACT)
            if name.startswith("_foreach_"):
                return Operation(name, Kind.UNTOUCHED)
            known = Operation(name, Kind.UNKNOWN)
        if known.kind in (Kind.UNKNOWN, Kind.REFUSED):
            self._without_rule[func] = known
            return Operation(known.name, Kind.ROUNDED)
        return known

    def _pass_on(self, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation that computes nothing."""
        if line.kind is Kind.SOURCE and has_half(types_of(args, kwargs)):
            return self._half.run(Call(func, line, args, kwargs, None, self._places.in_backward))
        if self._options.wire is not None and line.name.startswith(ALL_REDUCE):
            self._options.wire.send(args[0])
        result = func(*args, **kwargs)
        if line.kind is Kind.SOURCE and is_in_place(func):
            self._results.forget(result)
        return result

    def _run(self, call: Call) -> Any:
        result = self._run_by_rule(call)
        if self._without_rule and call.func in self._without_rule:
            place = call.place
            rounds = has_half(types_of(call.args, call.kwargs)) or (
                self._active and place is not None and place.formats.rounds
            )
            if rounds and has_numbers(results(result)):
                self._admit(self._without_rule[call.func], place)
        return result

    def _run_by_rule(self, call: Call) -> Any:
        args, kwargs, place = call.args, call.kwargs, call.place
        types = types_of(args, kwargs)
        if torch.complex64 in types and has_complex(args):
            return self._complex(call)
        if not any(each.is_floating_point for each in types):
            return call.func(*args, **kwargs)
        if has_half(types):
            return self._run_half(call)
        if not self._active:
            return call.func(*args, **kwargs)
        if place is None or (not place.formats.rounds and place.region is not Region.UPDATE):
            return self._results.outside(call, args, kwargs)
        if place.region is Region.UPDATE:
            return self.updates.run(call.func, call.line, args, kwargs)
        if place.region is Region.FAN_IN:
            return self._results.fan_in(call, place)
        self._decisions.check(call.line, place)
        return self._gradient(call, place) if place.region is Region.BACKWARD else self._forward(call, place)

    def _run_half(self, call: Call) -> Any:
        place = call.place
        if place is not None and place.region is Region.FORWARD:
            self._note(call, place, self._count(call.line, place), is_wide=False)
            self._product_operands.note(call, place)
        result = self._half.run(call)
        if place is not None and place.region in (Region.FORWARD, Region.BACKWARD):  # FP32 by the model's own cast
            self._results.mark_wide(result, place.region is Region.BACKWARD)
        return result

    def _complex(self, call: Call) -> Any:
        """Rounds both parts of complex numbers, operands and result; a product's sums are PyTorch's own."""
        func, line, place = call.func, call.line, call.place
        if place is None or not place.formats.rounds or place.region not in (Region.FORWARD, Region.BACKWARD):
            return func(*call.args, **call.kwargs)
        if place.region is Region.FORWARD:
            self._note(call, place, self._count(line, place), is_wide=False)
        args = map_complex(call.args, lambda tensor: self._results.parts(tensor, line, place, ".input"))
        result = func(*args, **call.kwargs)
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

    def _forward(self, call: Call, place: Place) -> Any:
        line, args, kwargs = call.line, call.args, call.kwargs
        count, written = self._count(line, place), is_in_place(call.func)
        decision = self._decisions.of_forward(line, place, args, count.number, written)
        self._note(call, place, count, decision.is_wide)
        self._product_operands.note(call, place)
        if decision.is_wide:
            result = self._results.outside(call, args, kwargs)
        else:
            result = self._results.forward(call, place, args, kwargs)
        if decision.precision is Precision.FP32_KEPT:
            self._results.mark_wide(result, is_gradient=False)
        return result

    def _gradient(self, call: Call, place: Place) -> Any:
        decision = self._decisions.of_backward(call.line, place, call.args, call.forward)
        if not decision.is_wide:
            return self._results.backward(call, place)
        args = call.args if call.forward is None else self.operands.settled(call, place)
        result = self._results.outside(call, args, call.kwargs)
        if decision.precision is Precision.FP32_KEPT:
            self._results.mark_wide(result, is_gradient=True)
        return result

    def _count(self, line: Operation, place: Place) -> Count:
        """Counts the forward operations of its name in the module's call, this one too."""
        site = current_site() if self._step.plan.has_sites or self._has_numbers else None
        number = self._places.count(place, line.name, site)
        if line.kind is not Kind.EXACT:
            self._places.computed.add(place, line, number)
        return Count(number, site)

    def _note(self, call: Call, place: Place, count: Count, is_wide: bool) -> None:
        """Notes an operation of the forward pass for its backward pass."""
        row = self._places.row(place, call.operation, count.number)
        forward = Forward(call.operation, place.tensor(call.operation), row, is_wide, site=count.site)
        call.note_forward(forward)
        self._places.nodes.note(forward)

    def owner_of(self, tensor: torch.Tensor) -> ModelTensor | None:
        """The parameter or buffer whose storage it shares."""
        return self._parameters.owner(tensor)

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

"""Mode above autograd: numbers the calls of a step, finds their places, casts their operands and changes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from halfscope.torch.doctor.autocast_calls import NARROW_TYPES, TO_FORMAT, TO_FP32, AutocastBlocks
from halfscope.torch.doctor.call_casts import cast, set_kind
from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.call_names import CASTS, UNCOUNTED, VIEWS, WIDE_INSIDE, has_buffers, is_in_place, name_of
from halfscope.torch.doctor.calls import Call, CallPlan, EndlessRun
from halfscope.torch.doctor.mixed_types import MixedTypes, takes_two_types
from halfscope.torch.doctor.nested_tensors import floats_in, tensors_in
from halfscope.torch.doctor.rounding_mode import RoundingMode
from halfscope.torch.doctor.source_text import place_of_call
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.private import is_in_transform, nodes_made, without_dispatch_modes
from halfscope.torch.tensors.trees import map_tensors

_DTYPE = torch.Tensor.dtype.__get__
_FP32 = torch.float32
LIFTS = (Numbers.LIFTED, Numbers.STATE)
Want = Callable[[torch.Tensor], "Numbers | None"]


class CallMode(TorchFunctionMode):
    """Sees what a script calls: `torch.exp(x)`, `a @ b`, `F.normalize(x)`."""

    def __init__(self, plan: CallPlan, mode: RoundingMode, blocks: AutocastBlocks, about: CallLog) -> None:
        super().__init__()
        self.plan, self.mode, self.blocks, self.log = plan, mode, blocks, about
        self.narrow_types: set[torch.dtype] = set()  # types of 16 bits that the script asked for itself
        self.answers: torch.dtype | None = None  # type that a tensor of the format answers; None in FP32
        self.keeps_state = False  # updates are computed in FP32
        self.after_call: Callable[[Call], None] | None = None  # called with each call and its result
        self.is_plain = True  # as after model.half(): FP32 is only what the script asks for

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func == _DTYPE:
            return self._answer(func(*args), args[0])
        name = name_of(func)
        if name in UNCOUNTED or name.startswith("_record_function"):
            return func(*args, **kwargs)
        if name == "backward":
            return self._backward(func, args, kwargs)
        if is_in_transform():
            raise NotImplementedError("a step within torch.func's vmap, grad or jvp, whose tensors have no memory")
        self._widen((args, kwargs))
        place = place_of_call(name, *self.log.layer())
        if place is None:
            return func(*args, **kwargs)
        if name in VIEWS:
            result = func(*args, **kwargs)
            self.log.add(Call(place, func, args, kwargs, (0, 0), result), is_view=True)
            return result
        return self._run(Call(place, func, args, kwargs, (nodes_made(), 0)))

    def _run(self, call: Call) -> Any:
        lifts = self.plan.lifts(call.place) and not self.log.in_update
        call.args, call.kwargs, asked = self._without_types(call, lifts)
        if not lifts:
            self._note_types(call)
        call.args, call.kwargs = self._cast_operands(call, lifts, asked)
        if self.log.count(call.place) > self.plan.most_calls:
            raise EndlessRun
        with self.mode.making(Numbers.LIFTED if lifts else self.mode.default):
            self._compute(call, asked, lifts)
        call.nodes = (call.nodes[0], nodes_made())
        pause = without_dispatch_modes()
        self.log.note_decision(call)
        if self.after_call is not None:
            self.after_call(call)
        del pause
        result = call.result  # which the log may let go
        self.log.add(call)
        return result

    def _note_types(self, call: Call) -> None:
        """Notes operands of two types that PyTorch refuses; raises MixedTypes where a trial alone makes them."""
        is_cast = self.blocks.is_on and (call.name in TO_FORMAT or call.name in TO_FP32)
        if is_cast or self.log.in_update or not takes_two_types(call.name, call.args, call.kwargs, self._is_wide):
            return
        if self.plan.mixed is not None and call.place not in self.plan.mixed:
            raise MixedTypes(call.name)
        self.log.mixed.add(call.place)

    def _is_wide(self, tensor: torch.Tensor) -> bool:
        return self.mode.kind_of(tensor) is Numbers.WIDE

    def _compute(self, call: Call, asked: Numbers | None, lifts: bool) -> None:
        change = self.plan.changes.get(call.place)
        if change is not None:
            call.result = change(self, call.func, call.args, call.kwargs)
        elif call.name in CASTS:
            call.result = self._cast_of_script(call, asked, lifts)
        elif call.name in WIDE_INSIDE and not lifts:
            call.result = self.run_wide(call.func, call.args, call.kwargs)
        else:
            call.result = call.func(*call.args, **call.kwargs)
            self._settle(call, asked, lifts)

    def run_wide(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """A function that a kernel of the format computes in FP32 inside, of which PyTorch makes several in FP32."""
        operands = floats_in((args, kwargs))
        if not operands or self.mode.kind_of(operands[0]) is not Numbers.NARROW:
            return func(*args, **kwargs)
        up = partial(map_tensors, change=self._lifted)
        result = func(*(up(value) for value in args), **{key: up(value) for key, value in kwargs.items()})
        return map_tensors(result, lambda tensor: cast(tensor, self.mode, Numbers.NARROW))

    def _lifted(self, tensor: torch.Tensor) -> torch.Tensor:
        is_narrow = tensor.dtype is _FP32 and self.mode.kind_of(tensor) is Numbers.NARROW
        return cast(tensor, self.mode, Numbers.LIFTED) if is_narrow else tensor

    def _answer(self, real: torch.dtype, tensor: torch.Tensor) -> Any:
        if real is not _FP32 or self.answers is None:
            return real if real not in NARROW_TYPES or self.answers is not None else _FP32
        kind = self.mode.kind_of(tensor)
        is_narrow = kind is Numbers.NARROW or (kind in LIFTS and self._says_the_format())
        return self.answers if is_narrow else real

    def _says_the_format(self) -> bool:
        """Whether the line under way is none of those in FP32, behind which a tensor has the format's type again."""
        here = place_of_call("dtype", *self.log.layer())
        if here is None or self.plan.has_line(here):
            return False
        self.log.answers.add(here)
        return True

    def _backward(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Backward pass with this mode on, so that what activation checkpointing computes again has the same casts."""
        if func is torch.Tensor.backward:
            names = ("gradient", "retain_graph", "create_graph", "inputs")
            given = {**dict(zip(names, args[1:])), **kwargs}
            given["grad_tensors"] = given.pop("gradient", None)
            if given["grad_tensors"] is None and args[0].numel() == 1:  # made by PyTorch it may be a call of the step
                given["grad_tensors"] = torch.ones_like(args[0])
            with self:
                return torch.autograd.backward(args[0], **given)
        return func(*args, **kwargs)

    def _widen(self, given: Any) -> None:
        """Tensors of 16 bits from outside of the run become float32, for as long as it runs."""
        for tensor in tensors_in(given):
            if tensor.dtype in NARROW_TYPES:
                self.narrow_types.add(tensor.dtype)
                self.log.widen(tensor)

    def _without_types(self, call: Call, lifts: bool) -> tuple[tuple, dict, Numbers | None]:
        """Arguments that ask for float32 alone, and the numbers that they asked for."""
        asked: list[Numbers] = []

        def ask(key: int | str, kind: Numbers) -> None:
            asked.append(kind)
            if lifts and kind is Numbers.NARROW:
                self.log.types.setdefault(call.place, key)

        def replaced(key: int | str, value: Any) -> Any:
            if value in NARROW_TYPES if isinstance(value, torch.dtype) else False:
                ask(key, Numbers.NARROW)
                self.narrow_types.add(value)
                return _FP32
            if value is _FP32:
                ask(key, Numbers.WIDE)
            return value

        args = tuple(replaced(key, value) for key, value in enumerate(call.args))
        kwargs = {key: replaced(key, value) for key, value in call.kwargs.items()}
        if call.name == "float":
            ask(0, Numbers.WIDE)
        if call.name in ("half", "bfloat16"):
            self.narrow_types.add(torch.float16 if call.name == "half" else torch.bfloat16)
            ask(0, Numbers.NARROW)
        like = args[1] if call.name in ("to", "type_as") and len(args) > 1 else None
        if isinstance(like, torch.Tensor) and like.dtype is _FP32:
            kind = self.mode.kind_of(like)
            ask(1, kind if kind is Numbers.NARROW else Numbers.WIDE)
        return args, kwargs, asked[0] if asked else None

    def _cast_of_script(self, call: Call, asked: Numbers | None, lifts: bool) -> Any:
        source = call.args[0]
        if call.name in ("half", "bfloat16"):
            result = source if source.dtype is _FP32 else source.to(_FP32)
        else:
            result = call.func(*call.args, **call.kwargs)
        if asked is None or not isinstance(result, torch.Tensor) or result.dtype is not _FP32:
            return result
        self.log.asked.setdefault(call.place, set()).add(asked)
        if lifts and (asked is Numbers.NARROW or call.place in self.plan.rounds):
            asked = Numbers.LIFTED
        if source.dtype is _FP32:
            return result if self.mode.kind_of(result) is asked else cast(result, self.mode, asked)
        if asked is Numbers.NARROW or (self.is_plain and not source.is_floating_point() and not lifts):
            set_kind(result, self.mode, Numbers.NARROW)
        else:
            self.mode.kinds.set(result, Numbers.LIFTED if lifts else Numbers.WIDE)
        return result

    def _settle(self, call: Call, asked: Numbers | None, lifts: bool) -> None:
        if not lifts and asked is None:
            return
        for tensor in floats_in(call.result):
            if not lifts:
                set_kind(tensor, self.mode, asked or Numbers.WIDE)
            elif self._is_lifted(call, tensor):
                self.mode.kinds.set(tensor, Numbers.LIFTED)

    def _is_lifted(self, call: Call, tensor: torch.Tensor) -> bool:
        """Whether a result holds FP32 for the trial alone."""
        if self.blocks.is_on and call.name in TO_FORMAT:
            return True
        return self.mode.kind_of(tensor) is Numbers.NARROW and not (is_in_place(call) and self.log.is_state(tensor))

    def _cast_operands(self, call: Call, lifts: bool, asked: Numbers | None) -> tuple[tuple, dict]:
        if self.keeps_state and self.log.in_update:
            return call.args, call.kwargs
        want = self._wanted(call, lifts, asked)
        skips = 1 if is_in_place(call) else 0
        if skips and call.args and not lifts:
            self._settle_target(call.args[0])
        if want is None:
            return call.args, call.kwargs

        def changed(key: int | str, tensor: torch.Tensor) -> torch.Tensor:
            kind = want(tensor) if tensor.dtype is _FP32 and not self._is_updated_by(call, tensor) else None
            if kind is None:
                return tensor
            self.log.casts.setdefault((call.place, key), kind)
            return cast(tensor, self.mode, kind)

        args = tuple(
            value if key < skips else map_tensors(value, partial(changed, key)) for key, value in enumerate(call.args)
        )
        kwargs = {
            key: value if key == "out" else map_tensors(value, partial(changed, key))
            for key, value in call.kwargs.items()
        }
        return args, kwargs

    def _is_updated_by(self, call: Call, tensor: torch.Tensor) -> bool:
        """Whether an operand is a buffer that the call changes; kernels of the format take these in FP32 too."""
        return has_buffers(call) and self.log.is_state(tensor) and not isinstance(tensor, torch.nn.Parameter)

    def _settle_target(self, target: Any) -> None:
        """A target in place that a trial keeps in FP32 holds numbers of the format again."""
        is_float = isinstance(target, torch.Tensor) and target.dtype is _FP32
        if is_float and self.mode.kind_of(target) is Numbers.LIFTED:
            set_kind(target, self.mode, Numbers.NARROW)

    def _wanted(self, call: Call, lifts: bool, asked: Numbers | None) -> Want | None:
        """The cast of an operand; None of a call whose operands need none."""
        kinds = [(tensor, self.mode.kind_of(tensor)) for tensor in floats_in((call.args, call.kwargs))]
        of = self.mode.kind_of
        if lifts:
            if all(kind is not Numbers.NARROW for _, kind in kinds):
                return None
            return lambda tensor: Numbers.LIFTED if of(tensor) is Numbers.NARROW else None
        if self.blocks.is_on:
            if call.name in TO_FORMAT:
                return lambda tensor: Numbers.NARROW if of(tensor) is not Numbers.NARROW else None
            if call.name in TO_FP32:
                return lambda tensor: Numbers.WIDE if of(tensor) is Numbers.NARROW else None
        lifted = any(kind in LIFTS for _, kind in kinds)
        wide = any(kind is Numbers.WIDE and tensor.dim() for tensor, kind in kinds)
        wide = wide or (asked is Numbers.WIDE and call.name not in CASTS)
        narrow = any(kind is Numbers.NARROW for _, kind in kinds)
        if not lifted and not (wide and narrow):
            return None

        def want(tensor: torch.Tensor) -> Numbers | None:
            kind = of(tensor)
            if kind in LIFTS:
                return Numbers.NARROW
            return Numbers.WIDE if wide and kind is Numbers.NARROW else None

        return want

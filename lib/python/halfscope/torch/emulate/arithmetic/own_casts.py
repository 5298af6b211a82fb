"""A model's own casts, `.float()` and `.to(x.dtype)`, as they act once the model has been converted to 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from halfscope.formats import element_of
from halfscope.torch.emulate.arithmetic.attention import Way
from halfscope.torch.emulate.mode import EmulatedArithmetic
from halfscope.torch.emulate.parameters import Parameters
from halfscope.torch.emulate.places import Places
from halfscope.torch.events.place import Place
from halfscope.torch.policy import Policy
from halfscope.torch.private import caller, fused_attention_kernel
from halfscope.torch.tensors.elements import HALF

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
_WIDE = torch.float32
_DTYPE = torch.Tensor.dtype.__get__
_FLASH = int(torch.nn.attention.SDPBackend.FLASH_ATTENTION.value)
_REFUSE = ("torchvision.",)  # refuses boxes in BF16, of which it asks the type
_CASTS = (torch.Tensor.to, torch.Tensor.type, torch.Tensor.type_as)


class _Cast(torch.autograd.Function):
    """Casts forward; the gradient is cast back by the precision in which its clone is computed."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cast: Callable, is_to_fp32: bool) -> torch.Tensor:
        del ctx
        result: torch.Tensor = cast(tensor, is_to_fp32)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        del ctx
        return gradients[0].clone(), None, None


class OwnCasts(TorchFunctionMode):
    """Follows a model's casts inside of its forward pass, where its tensors are float32 and stand for 16 bits.

    There `x.dtype` is the format's type, as models ask for it to choose a mask's constant or to cast back what they
    computed in FP32; `x.float()` and `dtype=torch.float32` give tensors that stay FP32 until the model casts them back.
    """

    def __init__(
        self, policy: Policy, places: Places, arithmetic: EmulatedArithmetic, parameters: Parameters, attention: Way
    ) -> None:
        super().__init__()
        self._attention_way = attention
        self._policy, self._places, self._arithmetic, self._parameters = policy, places, arithmetic, parameters
        self._has_answered = False  # with a type of 16 bits: from then on that type means the emulated format
        self._is_casting = False
        self._types: dict[str, torch.dtype | None] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        place = self._places.now() if self._places.in_forward and not self._is_casting else None
        narrow = None if place is None else self._type_of_format(place)
        if place is None or narrow is None or _sets_attribute(func) or _asked_by(("halfscope.torch.",)):
            return func(*args, **kwargs)
        if func == _DTYPE:
            return func(*args) if _asked_by(_REFUSE) else self._answer(args[0], place, narrow)
        self._is_casting = True
        try:
            return self._run(func, args, kwargs, narrow)
        finally:
            self._is_casting = False

    def _type_of_format(self, place: Place) -> torch.dtype | None:
        """Type of 16 bits that stands for the activations' format; None for other formats."""
        quantizer = place.formats.activation
        if quantizer not in self._types:
            self._types[quantizer] = TYPES.get(element_of(quantizer))
        return self._types[quantizer]

    def _answer(self, tensor: Any, place: Place, narrow: torch.dtype) -> Any:
        real = _DTYPE(tensor) if type(tensor) is torch.Tensor else tensor.dtype
        if real is not _WIDE:
            return real
        owned = self._parameters.owner(tensor)
        if owned is not None and self._policy.fp32_parameters:
            return real
        if not self._arithmetic.is_narrow(tensor, place):
            return real
        self._has_answered = True
        return narrow

    def _run(self, func: Any, args: tuple, kwargs: dict, narrow: torch.dtype) -> Any:
        if func is torch.Tensor.float:
            return self._cast(func(*args, **kwargs), args[0], True)
        if getattr(func, "__name__", "") == "rms_norm":
            return self._rms_norm(func, args, kwargs)
        if func is torch.nn.functional.scaled_dot_product_attention and self._attention_way.kind == "fused":
            return self._attention(func, args, kwargs)
        asked = self._asked_type(func, args, kwargs)
        if asked not in (_WIDE, narrow) or (asked is narrow and not self._has_answered):
            return func(*args, **kwargs)
        args, kwargs = _replaced(args, narrow), {key: _replaced(value, narrow) for key, value in kwargs.items()}
        source = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if func in _CASTS and source is not None:
            result = source.to(_WIDE) if func is torch.Tensor.type_as else func(*args, **kwargs)
            return self._cast(result, source, asked is _WIDE)
        if source is None or not source.is_floating_point():
            return func(*args, **kwargs)
        if source.dtype is _WIDE:  # such as softmax(x, dtype=torch.float32)
            args = (self._applied(source, asked is _WIDE), *args[1:])
        result = func(*args, **kwargs)
        return self._applied(result, False) if asked is narrow and isinstance(result, torch.Tensor) else result

    def _asked_type(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """The type that a call names, or that of the tensor that it names instead; None where it names none."""
        found = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.dtype)]
        if found:
            return found[0]
        like = args[1] if func in _CASTS and len(args) > 1 else kwargs.get("other")
        place = self._places.now()
        if isinstance(like, torch.Tensor) and place is not None and like.is_floating_point():
            narrow = self._type_of_format(place)
            return None if narrow is None else self._answer(like, place, narrow)
        return None

    def _cast(self, result: Any, source: Any, is_to_fp32: bool) -> Any:
        """result: of PyTorch's own cast."""
        if not isinstance(source, torch.Tensor) or not isinstance(result, torch.Tensor) or result.dtype is not _WIDE:
            return result
        if source.is_floating_point() and source.dtype is not _WIDE:
            return result
        if is_to_fp32 and not source.is_floating_point() and _is_mask(source):
            return result  # models of 16 bits cast masks of zeros and ones to their own type
        return self._applied(result, is_to_fp32)

    def _applied(self, tensor: torch.Tensor, is_to_fp32: bool) -> Any:
        """A tensor of another type holds that type's numbers already."""
        place = self._places.now()
        if place is None or tensor.dtype is not _WIDE or (is_to_fp32 and not self._arithmetic.is_narrow(tensor, place)):
            return tensor
        return _Cast.apply(tensor, self._arithmetic.cast, is_to_fp32)

    def _attention(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """The CPU's fused kernel is seen as a whole; where it has none, FP32 between the operands and the result."""
        if fused_attention_kernel(*args, **kwargs) == _FLASH:
            return func(*args, **kwargs)
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        half = next((tensor.dtype for tensor in tensors if tensor.dtype in HALF), None)  # a cast of the script's own
        self._places.enter_autocast(is_on=False)
        try:
            with torch.autocast(tensors[0].device.type, enabled=False):
                result = func(*map(self._in_fp32, args), **{key: self._in_fp32(value) for key, value in kwargs.items()})
        finally:
            self._places.leave_autocast()
        return self._applied(result, False) if half is None else result.to(half)

    def _rms_norm(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Norm in FP32 with one rounding, as a GPU's kernel: on a CPU PyTorch composes it of operations."""
        wide = tuple(self._widened(value) for value in args), {key: self._widened(kwargs[key]) for key in kwargs}
        result = func(*wide[0], **wide[1])
        if result.dtype is not _WIDE or (self._policy.fp32_parameters and self._policy.list_of("layer_norm") == "deny"):
            return result
        return self._applied(result, False)

    def _widened(self, value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.dtype is _WIDE
        return self._applied(value, True) if is_float else value

    def _in_fp32(self, value: Any) -> Any:
        is_half = isinstance(value, torch.Tensor) and value.dtype in HALF
        return value.float() if is_half else self._widened(value)


def _sets_attribute(func: Any) -> bool:
    """Such as `p.grad_dtype = torch.float32`, which is of the tensor itself: its cast is no leaf."""
    return getattr(func, "__name__", "") == "__set__"


def _is_mask(tensor: torch.Tensor) -> bool:
    return tensor.dtype is torch.bool or bool(((tensor == 0) | (tensor == 1)).all())


def _replaced(value: Any, narrow: torch.dtype) -> Any:
    """The emulated type is kept in float32."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_replaced(part, narrow) for part in value)
    return _WIDE if value is narrow else value


def _asked_by(modules: tuple[str, ...]) -> bool:
    return str(caller(2).f_globals.get("__name__", "")).startswith(modules)

"""Parts of a watched model that stay FP32 in 16 bits too: from a cast that the source names to the cast back."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.events.call_text import span_of, text_of
from halfscope.torch.private import caller, is_in_transform, replace_attribute, storage_key
from halfscope.torch.tensors.storages import storage_of
from halfscope.torch.tensors.trees import tensors

_WIDE = torch.float32
_NAMED = re.compile(r"\bfloat32\b|\btorch\.float\b")
_CASTS = ("to", "type", "type_as")
# Functions that compute in the type that they are given.
_TYPED = (
    *((torch.Tensor, name) for name in ("softmax", "log_softmax", "sum", "mean", "cumsum")),
    *((torch, name) for name in ("softmax", "log_softmax", "sum", "mean", "cumsum")),
    *((torch.nn.functional, name) for name in ("softmax", "log_softmax")),
)


class _Scope(NamedTuple):
    """A call in which a tensor is FP32, and its storage."""

    frame: int  # the identity of a frame, which another one may have later
    code: CodeType
    storage: StorageWeakRef


class Fp32Islands:
    """While it is open, casts of tensors are followed.

    `x.float()` and a cast whose source says `float32` make an FP32 copy, as in a model of 16 bits; what is computed of
    it is FP32, until another cast, `.to(x.dtype)`, makes a copy that is none. Without such a cast nothing is done.

    PyTorch gives back the tensor itself where it is FP32 already. A copy in its place would be a node of the backward
    pass, which adds gradients in another order. So a tensor with a gradient is FP32 within the function that casts it,
    and outside of it as before.
    """

    def __init__(self, narrow: Callable[[torch.Tensor], None]) -> None:
        """narrow: called with a tensor whose cast back PyTorch leaves out."""
        self._narrow = narrow
        self._wide: dict[int, StorageWeakRef] = {}
        self._scopes: dict[int, _Scope] = {}
        self._undo: list[Callable[[], None]] = []
        self.is_leaving = False  # while the cast back runs

    def __bool__(self) -> bool:
        """Whether a tensor is FP32 by the model's own cast."""
        return bool(self._wide or self._scopes)

    def begin(self) -> None:
        """A forward pass begins."""
        casts = [(torch.Tensor, "float", self._float), *((torch.Tensor, name, self._cast) for name in _CASTS)]
        for owner, name, change in [*casts, *((owner, name, self._typed) for owner, name in _TYPED)]:
            self._undo.append(replace_attribute(owner, name, change(getattr(owner, name))))

    def end(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo, self._wide, self._scopes = [], {}, {}

    def is_wide(self, tensor: torch.Tensor) -> bool:
        if tensor.layout is not torch.strided or is_in_transform():
            return False
        key = storage_key(tensor)
        return key in self._wide or (key in self._scopes and _is_running(self._scopes[key]))

    def _is_computed(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a copy in FP32, or was computed of one."""
        return tensor.layout is torch.strided and not is_in_transform() and storage_key(tensor) in self._wide

    def has_any(self, args: Any) -> bool:
        return any(map(self.is_wide, tensors(args)))

    def widen(self, results: Any) -> None:
        """Results of an operation with an FP32 operand."""
        for tensor in tensors(results):
            if tensor.is_floating_point():
                self._wide[storage_key(tensor)] = StorageWeakRef(storage_of(tensor))

    def _entered(self, tensor: torch.Tensor, cast: torch.Tensor) -> torch.Tensor:
        """cast: PyTorch's own, which is the tensor itself where that is FP32."""
        if not tensor.is_floating_point() or tensor.layout is not torch.strided or is_in_transform():
            return cast
        if self.is_wide(tensor):
            return cast
        if cast is tensor and _has_gradient(tensor):
            user = caller(2)
            self._scopes[storage_key(tensor)] = _Scope(id(user), user.f_code, StorageWeakRef(storage_of(tensor)))
            return cast
        copy = tensor.clone() if cast is tensor else cast
        self.widen(copy)
        return copy

    def _left(self, tensor: torch.Tensor, cast: torch.Tensor) -> torch.Tensor:
        if cast is not tensor or not self.is_wide(tensor):
            return cast
        if _has_gradient(tensor):
            self._wide.pop(storage_key(tensor), None)
            self._scopes.pop(storage_key(tensor), None)
            self._narrow(tensor)
            return cast
        self.is_leaving = True
        try:
            return tensor.clone()
        finally:
            self.is_leaving = False

    def _float(self, original: Callable) -> Callable:
        def float_(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            return self._entered(tensor, original(tensor, *args, **kwargs))

        return float_

    def _cast(self, original: Callable) -> Callable:
        def cast(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            result = original(tensor, *args, **kwargs)
            if not isinstance(result, torch.Tensor) or result.dtype is not _WIDE:
                return result
            like = next((value for value in args if isinstance(value, torch.Tensor)), None)
            is_typed = like is not None or any(isinstance(value, torch.dtype) for value in (*args, *kwargs.values()))
            if not is_typed:  # to a device
                return result
            # The tensor before its cast, as in `norm(x.float()).type_as(x)`, has the model's type.
            enters = self._is_computed(like) if like is not None else _names_fp32()
            return self._entered(tensor, result) if enters else self._left(tensor, result)

        return cast

    def _typed(self, original: Callable) -> Callable:
        def typed(*args: Any, **kwargs: Any) -> Any:
            is_asked = kwargs.get("dtype") is _WIDE and args and isinstance(args[0], torch.Tensor) and _names_fp32()
            if not is_asked or self.is_wide(args[0]):
                return original(*args, **kwargs)
            given = self._entered(args[0], args[0])
            try:
                return original(given, *args[1:], **kwargs)
            finally:
                self._scopes.pop(storage_key(given), None)  # this call alone asks for FP32

        return typed


def _has_gradient(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and torch.is_grad_enabled()


def _is_running(scope: _Scope) -> bool:
    frame: FrameType | None = caller(2)
    while frame is not None:
        if id(frame) == scope.frame and frame.f_code is scope.code:
            return True
        frame = frame.f_back
    return False


def _names_fp32() -> bool:
    """Whether an argument of the call under way, of the user's or of a library, has FP32's name in its text."""
    frame = caller(2)
    return _has_name(text_of(frame.f_code.co_filename, span_of(frame)))


@cache
def _has_name(text: str) -> bool:
    """text: of a call; empty where Python knows no columns."""
    try:
        call = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(call, ast.Call):
        return False
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(_NAMED.search(ast.unparse(argument)) for argument in arguments)

"""Products of a model's forward pass, where the model calls PyTorch for them, each with the module that called it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from halfscope.torch.events.running_modules import RunningModules
from halfscope.torch.private import storage_key
from halfscope.torch.sensitivity.attention_calls import AttentionCall
from halfscope.torch.sensitivity.call_readers import read_call
from halfscope.torch.sensitivity.product_calls import ConvolutionCall, ProductCall
from halfscope.torch.sensitivity.recurrent_layers import recurrent_layer
from halfscope.torch.words import called

Run = Callable[[], torch.Tensor]
Handle = Callable[[str, ProductCall, Run], torch.Tensor]
"""Computes a product: the module's name, the call, and PyTorch's own computation of it."""


class WatchedProducts(TorchFunctionMode):
    """Hands products with weights of a model to a function, whose result the model goes on with.

    Products outside of the model are PyTorch's own, and so are products of matrices without a parameter of the model; a
    convolution has a weight even where that is computed. caches: attention is handed over too.
    """

    def __init__(self, model: torch.nn.Module, handle: Handle, caches: bool = False) -> None:
        super().__init__()
        self._handle, self._caches = handle, caches
        self._weights = {storage_key(weight) for weight in model.parameters()}
        self._modules = RunningModules(model)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The forward pass of a model."""
        with self._modules.followed(), self:
            yield

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not self._modules:
            return func(*args, **kwargs)
        if func is functional.multi_head_attention_forward:
            with self._calls_inside():
                return func(*args, **kwargs)
        recurrent = recurrent_layer(func, args, kwargs)
        if recurrent is not None:
            return recurrent(lambda *each: self._call(functional.linear, each, {}))
        return self._call(func, args, kwargs)

    def _call(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        call = read_call(func, args, kwargs)
        if call is None or not self._is_watched(call):
            return func(*args, **kwargs)
        self._check_types(call)
        return self._handle(self._modules.name, call, lambda: func(*args, **kwargs))

    def _check_types(self, call: ProductCall) -> None:
        types = {operand.dtype for operand in (call.input, call.weight) if operand.is_floating_point()}
        if types != {torch.float32}:
            raise TypeError(
                f"sensitivity: '{called(self._modules.name)}' multiplies {call.input.dtype} by {call.weight.dtype}; "
                "give model.float(), and float32 inputs without autocast"
            )

    def _is_watched(self, call: ProductCall) -> bool:
        if isinstance(call, AttentionCall):
            return self._caches
        return isinstance(call, ConvolutionCall) or storage_key(call.weight) in self._weights

    @contextmanager
    def _calls_inside(self) -> Iterator[None]:
        """In a function of PyTorch's that calls others by their names, where a mode does not see them."""
        own = {name: getattr(functional, name) for name in ("linear", "scaled_dot_product_attention")}
        for name, func in own.items():
            setattr(functional, name, lambda *args, _func=func, **kwargs: self._call(_func, args, kwargs))
        try:
            yield
        finally:
            for name, func in own.items():
                setattr(functional, name, func)

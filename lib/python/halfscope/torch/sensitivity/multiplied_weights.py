"""Weights of a model that products take, those of operations that `emulate` does not know among them."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.operations.operators import operation_of
from halfscope.torch.operations.table import Kind
from halfscope.torch.private import TorchDispatchMode, storage_key
from halfscope.torch.tensors.trees import tensors

_PRODUCTS = (Kind.PRODUCT, Kind.ATTENTION, Kind.REFUSED, Kind.UNKNOWN)


class MultipliedWeights(TorchDispatchMode):
    """Notes them while it is entered; a weight that is added, normalised with or looked up is none."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._weights = {storage_key(weight) for weight in model.parameters()}
        self.storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        line = operation_of(func)
        if line is None or line.kind in _PRODUCTS:
            self.storages |= self._weights & {storage_key(operand) for operand in tensors(args)}
        return func(*args, **(kwargs or {}))

"""Operations of a sharded training: DTensors' as those on their local elements, and those of FSDP2's communication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.ranks.fully_shard import Sharding, first_element
from halfscope.torch.emulate.ranks.reduce_scatter import ReduceScatter

_NO_ARITHMETIC = torch.Tensor.__torch_dispatch__  # dispatch without the tensor type's own


class ShardOperations:
    """Lets only operations on plain tensors of the training through to the arithmetic.

    A mode is asked before a DTensor is. Left to the DTensor, its operation comes back on the local elements.
    """

    def __init__(self, sharding: Sharding, wire: ReduceScatter, caster: Caster) -> None:
        self._sharding, self._wire, self._caster = sharding, wire, caster
        self._expected: Any = None  # the operation on local elements that comes next
        self._first = 0  # position of these in the whole tensor

    def run(self, arithmetic: Callable, asked: tuple[Any, Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """asked: the operator, and types of tensors among the arguments."""
        func, types = asked
        own = [kind for kind in types if kind.__torch_dispatch__ is not _NO_ARITHMETIC]
        if own:
            if any(kind.__name__ == "FakeTensor" for kind in own):  # DTensor asks for a shape
                return func(*args, **kwargs)
            self._expected, self._first = func, _first_of((*args, *kwargs.values()))
            return NotImplemented
        if self._sharding.is_communicating:
            return self._wire.run(func, args, kwargs)
        if func is not self._expected:
            return arithmetic(func, args, kwargs)
        self._expected = None
        with self._caster.shard(self._first):
            return arithmetic(func, args, kwargs)


def _first_of(values: tuple) -> int:
    found = next((value for value in values if hasattr(value, "device_mesh") and isinstance(value, torch.Tensor)), None)
    return 0 if found is None else first_element(found)

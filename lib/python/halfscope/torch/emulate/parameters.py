"""Parameters and buffers of an emulated model by their storage, and the copies of parameters that operations use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.ranks.fully_shard import ShardedParameter, Sharding, parameter_name
from halfscope.torch.policy import Formats, Policy
from halfscope.torch.private import BATCH_NORM, buffers_in, parameters_in, storage_key, version_of
from halfscope.torch.steps.optimizers import parameters_of
from halfscope.torch.tensors.storages import storage_of


@dataclass
class ModelTensor:
    """A parameter, or a buffer, of the model."""

    name: str
    tensor: torch.Tensor  # the elements that this process updates: of a sharded parameter its shard
    formats: Formats
    is_parameter: bool
    in_batch_norm: bool
    sharded: ShardedParameter | None = None
    version: Any = None
    copies: dict[str, torch.Tensor] = field(default_factory=dict)  # all of the storage, by quantizer
    counted: set[str] = field(default_factory=set)  # quantizers of the copies whose casts are in the book

    @property
    def used(self) -> torch.Tensor | None:
        """The tensor that operations use; None before a sharded parameter was gathered for the first time."""
        return self.tensor if self.sharded is None else self.sharded.unsharded

    def has_moved(self, key: int) -> bool:
        """Whether somebody has put it into other memory than the storage `key`."""
        return key != storage_key(self.tensor if self.sharded is None else self.sharded.shard)

    def current_version(self) -> Any:
        """Another one after each change of the elements that operations use."""
        return version_of(self.tensor) if self.sharded is None else self.sharded.version()

    def forget_copies(self) -> None:
        self.copies, self.counted = {}, set()


class Parameters:
    """Found by the storage that a view shares with them."""

    def __init__(
        self, model: torch.nn.Module, policy: Policy, caster: Caster, sharding: Sharding | None = None
    ) -> None:
        self._model, self._policy, self._caster = model, policy, caster
        self._sharded = {} if sharding is None else sharding.parameters
        self.base = policy.base
        self._owned: dict[int, ModelTensor] = {}  # by the storage that is updated
        self._unsharded: dict[int, ModelTensor] = {}  # by the storage that operations use, which outlives its memory
        self.refresh()

    def refresh(self) -> None:
        """Looks where parameters and buffers lie now, and forgets the copies."""
        self._owned = {}
        for module_name, module in self._model.named_modules():
            formats, is_batch_norm = self._policy.at(module_name), isinstance(module, BATCH_NORM)
            for kind, tensors in ((True, parameters_in(module)), (False, buffers_in(module))):
                for own_name, tensor in tensors.items():
                    name = parameter_name(module_name, own_name)
                    sharded = self._sharded.get(name)
                    if sharded is not None:
                        tensor = sharded.shard
                    if tensor is None or not tensor.is_floating_point() or tensor.device.type == "meta":
                        continue
                    owned = ModelTensor(name, tensor, formats, kind, is_batch_norm, sharded)
                    self._owned.setdefault(storage_key(tensor), owned)
        self._unsharded = {}
        self.gathered(self._sharded.values())

    def gathered(self, whole: Iterable[ShardedParameter]) -> list[ModelTensor]:
        """Finds sharded parameters by the storage that operations use, as far as they have one; returns these."""
        found = []
        for sharded in whole:
            owned = self._owned.get(storage_key(sharded.shard))
            if owned is not None and sharded.unsharded is not None:
                self._unsharded[storage_key(sharded.unsharded)] = owned
                found.append(owned)
        return found

    def refresh_if_moved(self) -> None:
        """Looks again where somebody has put a parameter into other memory."""
        if any(owned.has_moved(key) for key, owned in self._owned.items()):
            self.refresh()

    def owner(self, tensor: torch.Tensor) -> ModelTensor | None:
        key = storage_key(tensor)
        return self._owned.get(key) or self._unsharded.get(key)

    def has(self, value: object) -> bool:
        """Whether it is a parameter or a buffer, or a view of one."""
        return isinstance(value, torch.Tensor) and self.owner(value) is not None

    def all(self) -> list[ModelTensor]:
        return [owned for owned in self._owned.values() if owned.is_parameter]

    def of(self, optimizer: Any) -> dict[str, torch.nn.Parameter]:
        """The parameters that an optimizer trains, by name."""
        own = parameters_of(optimizer)
        sharded = {name: found.parameter for name, found in self._sharded.items()}
        named = {name: sharded.get(name, parameter) for name, parameter in self._model.named_parameters()}
        return {name: parameter for name, parameter in named.items() if id(parameter) in own}

    def forget_copies(self) -> None:
        """After the weights have changed."""
        for owned in self._owned.values():
            owned.forget_copies()

    def rounded(self, owned: ModelTensor, view: torch.Tensor, quantizer: str) -> torch.Tensor:
        """`view` of a parameter as operations in `quantizer` see it: rounded once, until the parameter changes."""
        version = owned.current_version()
        if owned.version != version:
            owned.forget_copies()
            owned.version = version
        copy = owned.copies.get(quantizer)
        if copy is None:
            copy = owned.copies[quantizer] = _flat_copy(view, owned)
            self._caster.round(copy, quantizer, "weight", owned.name)
        elif self._caster.counts and quantizer not in owned.counted:  # an evaluation, which counts nothing, made it
            self._caster.count(_flat_copy(view, owned), quantizer, "weight", owned.name)
        if self._caster.counts:
            owned.counted.add(quantizer)
        return copy.as_strided(view.size(), view.stride(), view.storage_offset())


def _flat_copy(view: torch.Tensor, owned: ModelTensor) -> torch.Tensor:
    """All elements of the storage that `view` is in, without the padding behind those of an unsharded parameter."""
    used = owned.used if owned.sharded is not None else None
    elements = storage_of(view).nbytes() // view.element_size() if used is None else used.numel()
    return view.detach().as_strided((elements,), (1,), 0).clone()

"""Parameters and buffers of an emulated model by their storage, and the copies of parameters that operations use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope.torch.emulation.casts import Caster
from halfscope.torch.emulation.marks import storage_key, storage_of
from halfscope.torch.emulation.policies import Formats, Policy
from halfscope.torch.steps import parameters_of

_BATCH_NORMS = (torch.nn.modules.batchnorm._BatchNorm,)


@dataclass
class Owned:
    """A parameter, or a buffer, of the model."""

    name: str
    tensor: torch.Tensor
    formats: Formats
    is_parameter: bool
    in_batch_norm: bool
    version: int = -1
    copies: dict[str, torch.Tensor] = field(default_factory=dict)  # all of the storage, by quantizer


class Parameters:
    """Found by the storage that a view shares with them."""

    def __init__(self, model: torch.nn.Module, policy: Policy, caster: Caster) -> None:
        self._model, self._policy, self._caster = model, policy, caster
        self.base = policy.base
        self._owned: dict[int, Owned] = {}
        self.refresh()

    def refresh(self) -> None:
        """Looks where parameters and buffers lie now, and forgets the copies."""
        self._owned = {}
        for module_name, module in self._model.named_modules():
            formats, is_batch_norm = self._policy.at(module_name), isinstance(module, _BATCH_NORMS)
            for kind, tensors in ((True, module._parameters), (False, module._buffers)):
                for own_name, tensor in tensors.items():
                    if tensor is None or not tensor.is_floating_point() or tensor.device.type == "meta":
                        continue
                    name = f"{module_name}.{own_name}" if module_name else own_name
                    self._owned.setdefault(storage_key(tensor), Owned(name, tensor, formats, kind, is_batch_norm))

    def refresh_if_moved(self) -> None:
        """Looks again where somebody has put a parameter into other memory."""
        if any(key != storage_key(owned.tensor) for key, owned in self._owned.items()):
            self.refresh()

    def owner(self, tensor: torch.Tensor) -> Owned | None:
        return self._owned.get(storage_key(tensor))

    def has(self, value: object) -> bool:
        """Whether it is a parameter or a buffer, or a view of one."""
        return isinstance(value, torch.Tensor) and self.owner(value) is not None

    def all(self) -> list[Owned]:
        return [owned for owned in self._owned.values() if owned.is_parameter]

    def of(self, optimizer: Any) -> dict[str, torch.nn.Parameter]:
        """The parameters that an optimizer trains, by name."""
        own = parameters_of(optimizer)
        return {name: parameter for name, parameter in self._model.named_parameters() if id(parameter) in own}

    def forget_copies(self) -> None:
        """After the weights have changed."""
        for owned in self._owned.values():
            owned.copies = {}

    def rounded(self, owned: Owned, view: torch.Tensor, quantizer: str) -> torch.Tensor:
        """`view` of a parameter as operations in `quantizer` see it: rounded once, until the parameter changes."""
        if owned.version != owned.tensor._version:
            owned.copies, owned.version = {}, owned.tensor._version
        copy = owned.copies.get(quantizer)
        if copy is None:
            copy = owned.copies[quantizer] = _flat_copy(view)
            self._caster.round(copy, quantizer, "weight", owned.name)
        return copy.as_strided(view.size(), view.stride(), view.storage_offset())


def _flat_copy(view: torch.Tensor) -> torch.Tensor:
    """All elements of the storage that `view` is in."""
    return view.detach().as_strided((storage_of(view).nbytes() // view.element_size(),), (1,), 0).clone()

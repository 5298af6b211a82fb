"""Models that fully_shard (FSDP2) has sharded: shards, unsharded parameters, and when the ranks communicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from halfscope.torch.counts.ranks import is_fully_sharded
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.private import groups_of_fully_shard, modules_with, offset_of, shard_of, unsharded_of, version_of
from halfscope.torch.wrapping import wrap_method

# Methods of FSDP2's parameter groups in which it moves, gathers and reduces tensors.
_COMMUNICATION = ("lazy_init", "unshard", "wait_for_unshard", "reshard", "post_backward")


class ShardedParameter:
    """A parameter of which this process has a shard, and while its module runs all elements."""

    def __init__(self, name: str, given: Any) -> None:
        """given: FSDP2's own account of it."""
        self.name, self._given = name, given
        self._checksum: int | None = None  # checksum of the elements that were gathered last

    @property
    def parameter(self) -> torch.nn.Parameter:
        """The DTensor that the optimizer trains."""
        given: torch.nn.Parameter = self._given.sharded_param
        return given

    @property
    def shard(self) -> torch.Tensor:
        """The elements of this process; none where there are fewer rows than ranks."""
        return shard_of(self._given)

    @property
    def unsharded(self) -> torch.nn.Parameter | None:
        """The tensor that operations use, one for the whole training; None before the first all-gather."""
        return unsharded_of(self._given)

    @property
    def compute_type(self) -> torch.dtype | None:
        """`param_dtype` of the MixedPrecisionPolicy."""
        found: torch.dtype | None = self._given.mp_policy.param_dtype
        return found

    @property
    def reduce_type(self) -> torch.dtype | None:
        """`reduce_dtype` of the MixedPrecisionPolicy."""
        found: torch.dtype | None = self._given.mp_policy.reduce_dtype
        return found

    def first_element(self) -> int:
        """Position of the shard's first element in the parameter, which is sharded by its rows."""
        return first_element(self.parameter)

    def gathered(self) -> None:
        """The unsharded parameter has been filled anew."""
        self._checksum = None

    def version(self) -> tuple[int, int]:
        """Another one where the unsharded parameter has other elements.

        The memory is filled at every all-gather without a new version of the tensor. The shards' versions do not
        tell: another rank may have changed its own.
        """
        whole = self.unsharded
        assert whole is not None
        if self._checksum is None:
            self._checksum = _checksum_of(whole)
        return version_of(whole), self._checksum


class Sharding:
    """The parameters of a model that fully_shard has sharded, by name."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Raises TypeError for sharding that is not followed."""
        names = {id(module): name for name, module in model.named_modules()}
        self._groups = list(groups_of_fully_shard(model))
        self.parameters: dict[str, ShardedParameter] = {}
        self._of_group: dict[int, list[ShardedParameter]] = {}
        for group in self._groups:
            own = self._of_group[id(group)] = []
            for given in group.fsdp_params:
                places = modules_with(given)
                found = [
                    parameter_name(names[id(module)], own_name) for module, own_name in places if id(module) in names
                ]
                sharded = ShardedParameter(found[0] if found else "", given)
                _check(sharded)
                own.append(sharded)
                self.parameters |= dict.fromkeys(found, sharded)
        _check_mesh(self.parameters.values())
        self._communicating = 0

    @property
    def is_communicating(self) -> bool:
        """Whether FSDP2 itself computes, and not the model."""
        return self._communicating > 0

    @property
    def group(self) -> Any:
        """The ranks' process group."""
        first = next(iter(self.parameters.values()))
        return first.parameter.device_mesh.get_group()

    def has_type(self, types: Any) -> bool:
        """Whether modules compute in one of `types` by their MixedPrecisionPolicy."""
        return any(sharded.compute_type in types for sharded in self.parameters.values())

    def begin(self, after_gather: Callable[[list[ShardedParameter]], None]) -> list[Callable[[], None]]:
        """Follows the communication; `after_gather` is told of parameters that are whole. Returns what undoes that."""
        undo = []
        for group in self._groups:
            gathers = partial(self._gathered, self._of_group[id(group)], after_gather)
            for name in _COMMUNICATION:
                after = gathers if name == "wait_for_unshard" else None
                undo.append(wrap_method(group, name, partial(self._communicate, after)))
        return undo

    def _communicate(
        self, after: Callable[[], None] | None, original: Callable, *arguments: Any, **options: Any
    ) -> Any:
        self._communicating += 1
        try:
            result = original(*arguments, **options)
            if after is not None:
                after()
            return result
        finally:
            self._communicating -= 1

    @staticmethod
    def _gathered(own: list[ShardedParameter], after_gather: Callable[[list[ShardedParameter]], None]) -> None:
        whole = [sharded for sharded in own if sharded.unsharded is not None]
        for sharded in whole:
            sharded.gathered()
        after_gather(whole)


def sharding_of(model: torch.nn.Module) -> Sharding | None:
    """None of a model that fully_shard has left whole. Raises TypeError for sharding that is not followed."""
    if not is_fully_sharded(model):
        return None
    found = Sharding(model)
    return found if found.parameters else None


def check_sharding(model: torch.nn.Module, door: str) -> None:
    """Raises TypeError for sharding that is not followed: all but that of fully_shard over one axis of ranks.

    door: the function that was called.
    """
    try:
        _check_parameters(model)
    except TypeError as reason:
        raise TypeError(f"{door}: {reason}") from None


def _check_parameters(model: torch.nn.Module) -> None:
    for name, module in model.named_modules():
        if type(module).__name__ == "FullyShardedDataParallel":
            label = f"'{name}'" if name else "the model"
            raise TypeError(
                f"{label} is FullyShardedDataParallel (FSDP1), whose flat parameters hide the weights; "
                "shard it with fully_shard (FSDP2)"
            )
    found = sharding_of(model)
    known = {} if found is None else found.parameters
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "to_local") and name not in known:
            raise TypeError(
                f"parameter '{name}' is a DTensor that is not of fully_shard on a module of this model; "
                "only fully_shard is followed"
            )


def first_element(tensor: Any) -> int:
    """Position of a DTensor's local elements in the whole, where it is sharded by its rows; else 0."""
    if not tensor.placements[0].is_shard(0):
        return 0
    return int(offset_of(tensor)[0]) * (tensor.numel() // max(tensor.shape[0], 1))


def _checksum_of(whole: torch.Tensor) -> int:
    device = device_of(whole)
    return device.checksum(device.near(whole.detach()))


def _check(sharded: ShardedParameter) -> None:
    placements = sharded.parameter.placements
    if len(placements) != 1 or not placements[0].is_shard() or type(sharded.shard) is not torch.Tensor:
        raise TypeError(
            f"parameter '{sharded.name}' is replicated, of tensor parallelism or a tensor subclass beside "
            "fully_shard; give fully_shard plain parameters and a mesh of one axis"
        )


def _check_mesh(parameters: Iterable[ShardedParameter]) -> None:
    meshes: dict[Any, str] = {}
    for sharded in parameters:
        meshes.setdefault(sharded.parameter.device_mesh, sharded.name)
    if len(meshes) > 1:
        first, second, *_ = meshes.values()
        raise TypeError(
            f"parameters '{first}' and '{second}' are sharded over different meshes; give fully_shard one mesh"
        )


def parameter_name(module: str, own_name: str) -> str:
    """Name in `named_parameters`; `module` is empty for the model itself."""
    return f"{module}.{own_name}" if module else own_name

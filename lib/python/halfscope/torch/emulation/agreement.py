"""Agreement of the ranks that train a model together."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.emulation.sharding import sharding_of
from halfscope.torch.emulation.wire import is_data_parallel


def all_agree(model: torch.nn.Module, verdict: bool) -> bool:
    """Whether all ranks of `model` say yes, asked on all of them; the verdict itself of one that trains alone."""
    group = _group_of(model)
    if group is None:
        return verdict
    told: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(told, verdict, group=group)
    return all(told)


def _group_of(model: Any) -> Any:
    if is_data_parallel(model):
        return model.process_group
    sharding = sharding_of(model)
    return None if sharding is None else sharding.group

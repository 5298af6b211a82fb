"""Agreement of the ranks that train a model together."""

from __future__ import annotations

import math
from typing import Any

import torch

from halfscope.torch.emulate.ranks.data_parallel import is_data_parallel
from halfscope.torch.emulate.ranks.fully_shard import sharding_of

EndCalls = bool | float | None  # result of a training: yes or no, a number to minimise, or that every step was skipped


def result_of(value: Any) -> EndCalls:
    """A criterion's answer: a number of Python or of a tensor, else whether it is true."""
    if isinstance(value, torch.Tensor) and value.dtype is not torch.bool:
        return float(value.detach())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return bool(value)


def agreed(model: torch.nn.Module, told: EndCalls) -> EndCalls:
    """Answer of all ranks of `model`: None where one does, yes where all do, the largest number or NaN."""
    group = group_of(model)
    if group is None:
        return told
    every: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(every, told, group=group)
    if any(one is None for one in every):
        return None
    if any(isinstance(one, bool) for one in every):
        return all(every)
    return math.nan if any(map(math.isnan, every)) else float(max(every))


def group_of(model: Any) -> Any:
    """The ranks that train `model` together; None where it has one process."""
    if is_data_parallel(model):
        return model.process_group
    sharding = sharding_of(model)
    return None if sharding is None else sharding.group

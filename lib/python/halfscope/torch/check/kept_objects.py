"""State outside of the model that a step changes: generators, loss scalers, schedules, other modules."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy
import torch

_DEEPEST = 4  # containers inside of each other
Keeper = Callable[[], Any]


def keepers_of(objects: Iterable[Any], model: torch.nn.Module) -> list[Keeper]:
    """Functions that bring each object with a state of its own back as it is now."""
    inside = {id(module) for module in model.modules()}
    found: list[Keeper] = []
    for each in objects:
        if id(each) not in inside and not isinstance(each, torch.optim.Optimizer):
            found += _keepers(each)
    return found


def _keepers(each: Any) -> list[Keeper]:
    if isinstance(each, torch.Generator):
        return [partial(each.set_state, each.get_state())]
    if isinstance(each, numpy.random.Generator):
        return [partial(setattr, each.bit_generator, "state", copy.deepcopy(each.bit_generator.state))]
    if isinstance(each, numpy.random.RandomState):
        return [partial(each.set_state, each.get_state())]
    if isinstance(each, random.Random):
        return [partial(each.setstate, each.getstate())]
    if isinstance(each, torch.nn.Module):
        return [_keeper(tensor) for tensor in (*each.parameters(recurse=False), *each.buffers(recurse=False))]
    return [_keeper(vars(each))] if _has_state(each) else []


def _has_state(each: Any) -> bool:
    """Whether it is saved with a training: loss scalers, schedules of learning rates, counters."""
    named = (getattr(type(each), name, None) for name in ("state_dict", "load_state_dict"))
    return all(map(callable, named)) and hasattr(each, "__dict__")


def _keeper(value: Any, depth: int = 0) -> Keeper:
    """A function that brings a tensor, or a container, back where it lies, and returns it; others are returned."""
    if isinstance(value, torch.Tensor):
        return partial(_restore_tensor, value, value.detach().clone())
    if isinstance(value, dict) and depth < _DEEPEST:
        return partial(_restore_dict, value, {key: _keeper(part, depth + 1) for key, part in value.items()})
    if type(value) is list and depth < _DEEPEST:
        return partial(_restore_list, value, [_keeper(part, depth + 1) for part in value])
    return lambda: value


def _restore_tensor(tensor: torch.Tensor, elements: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        tensor.copy_(elements)
    return tensor


def _restore_dict(value: dict, parts: dict[Any, Keeper]) -> dict:
    found = {key: keep() for key, keep in parts.items()}
    value.clear()
    value.update(found)
    return value


def _restore_list(value: list, parts: list[Keeper]) -> list:
    value[:] = [keep() for keep in parts]
    return value

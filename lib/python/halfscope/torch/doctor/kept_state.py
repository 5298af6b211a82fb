"""State of a training around a run, brought back after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from halfscope.torch.doctor.nested_tensors import tensors_in
from halfscope.torch.private import buffers_in
from halfscope.torch.steps.snapshot import RandomNumbers
from halfscope.torch.tensors.storages import place_of_elements


class Copies:
    """Elements of tensors, copied once for several runs, each of which begins with them."""

    def __init__(self) -> None:
        self._taken: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}

    def of(self, tensors: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Each tensor with its data and the copied elements; new ones are copied now, and others are let go."""
        kept = {}
        for tensor in tensors:
            entry = self._taken.get(id(tensor))
            if entry is None or place_of_elements(entry[1]) != place_of_elements(tensor.data):
                entry = (tensor, tensor.data, tensor.data.clone())
            kept[id(tensor)] = entry
        self._taken = kept
        return list(self._taken.values())

    def let_go(self) -> None:
        self._taken.clear()


@contextmanager
def kept_state(
    model: torch.nn.Module,
    tensors: list[torch.Tensor],
    optimizers: list[torch.optim.Optimizer],
    copies: Copies | None = None,
) -> Iterator[None]:
    """A model's weights and buffers, gradients, modes, optimizers and random numbers are left as they were.

    The tensors of optimizers stay the same objects: runs tell them by their storages. copies: of earlier runs from the
    same state, between which nothing has written to it.
    """
    of_optimizers = [each for optimizer in optimizers for each in tensors_in(dict(optimizer.state))]
    every = {id(each): each for each in [*tensors, *of_optimizers]}
    kept = (copies or Copies()).of(list(every.values()))
    gradients = [(weight, weight.grad) for weight in model.parameters()]
    modes = [(module, module.training) for module in model.modules()]
    dictionaries = [(module, dict(buffers_in(module))) for module in model.modules()]
    states = [(optimizer, _containers(dict(optimizer.state)), _groups(optimizer)) for optimizer in optimizers]
    numbers = RandomNumbers.now()
    for weight, _ in gradients:
        weight.grad = None
    try:
        yield
    finally:
        for weight, _ in gradients:
            weight.grad = None
        for tensor, data, elements in kept:
            tensor.data = data
            with torch.no_grad():
                data.copy_(elements)
        for module, buffers in dictionaries:  # a step may replace buffers, and add some
            buffers_in(module).clear()
            buffers_in(module).update(buffers)
        for weight, gradient in gradients:
            weight.grad = gradient
        for module, is_training in modes:
            module.training = is_training
        for optimizer, state, groups in states:
            optimizer.state.clear()
            optimizer.state.update(state)
            for group, before in zip(optimizer.param_groups, groups):
                group.update(before)
        numbers.restore()


def _containers(value: Any) -> Any:
    """New dictionaries and lists with the same tensors and numbers."""
    if type(value) is dict:
        return {key: _containers(each) for key, each in value.items()}
    return [_containers(each) for each in value] if type(value) is list else value


def _groups(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]

"""State of a training that a step changes, to be brought back before the step is computed again."""

from __future__ import annotations

import copy
import random
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch

from halfscope.torch.private import buffers_in

if TYPE_CHECKING:
    from halfscope.torch.steps.trainee import Trainee


@dataclass(frozen=True)
class RandomNumbers:
    """States of the generators of PyTorch, on the CPU and all GPUs, of NumPy and of Python.

    A generator that a script makes itself is not among them.
    """

    cpu: torch.Tensor
    gpus: list[torch.Tensor]
    numpy: Any
    python: Any

    @classmethod
    def now(cls) -> RandomNumbers:
        gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return cls(torch.get_rng_state(), gpus, numpy.random.get_state(), random.getstate())

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        if self.gpus:
            torch.cuda.set_rng_state_all(self.gpus)
        numpy.random.set_state(self.numpy)
        random.setstate(self.python)


@dataclass(frozen=True)
class Buffers:
    """A model's buffers, persistent or not: which tensors they are, and their elements."""

    tensors: list[tuple[torch.nn.Module, dict[str, Any]]]
    elements: list[tuple[torch.Tensor, torch.Tensor]]

    @classmethod
    def of(cls, model: torch.nn.Module, but: Container[str] = ()) -> Buffers:
        """but: names of buffers whose elements are kept elsewhere."""
        named = model.named_buffers()
        elements = [(buffer, buffer.detach().clone()) for name, buffer in named if name not in but]
        return cls([(module, dict(buffers_in(module))) for module in model.modules()], elements)

    def restore(self) -> None:
        for module, buffers in self.tensors:
            buffers_in(module).clear()
            buffers_in(module).update(buffers)
        with torch.no_grad():
            for buffer, elements in self.elements:
                buffer.copy_(elements)


@dataclass(frozen=True)
class Snapshot:
    """Weights, buffers, optimizers, scaler, modes and random numbers; other attributes of modules are not in it."""

    model: dict[str, Any]
    buffers: Buffers
    optimizers: list[dict[str, Any]]
    scaler: dict[str, Any] | None
    random: RandomNumbers
    modes: dict[str, bool]

    @classmethod
    def of(cls, trainee: Trainee) -> Snapshot:
        state = copy.deepcopy(trainee.model.state_dict())
        return cls(
            state,
            Buffers.of(trainee.model, but=state),
            [copy.deepcopy(optimizer.state_dict()) for optimizer in trainee.optimizers],
            None if trainee.scaler is None else copy.deepcopy(trainee.scaler.state_dict()),
            RandomNumbers.now(),
            {name: module.training for name, module in trainee.model.named_modules()},
        )

    def restore(self, trainee: Trainee) -> None:
        self.buffers.restore()
        trainee.model.load_state_dict(self.model)
        for optimizer, state in zip(trainee.optimizers, self.optimizers):
            optimizer.load_state_dict(copy.deepcopy(state))
            optimizer.zero_grad(set_to_none=True)
        if trainee.scaler is not None:
            trainee.scaler.load_state_dict(copy.deepcopy(self.scaler))
        for name, module in trainee.model.named_modules():
            module.training = self.modes.get(name, module.training)
        self.random.restore()

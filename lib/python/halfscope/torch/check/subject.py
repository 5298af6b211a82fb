"""Subject of a check: a model, its step, its optimizers, and the format in which the step is to be computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.check.closure import Closure
from halfscope.torch.doctor.program import TYPES, Program
from halfscope.torch.private import is_compiled
from halfscope.torch.steps.optimizers import optimizers_of
from halfscope.torch.steps.trainee import refuse_float64

_AUTOCAST = "autocast"
_POLICIES = {"fp16": "autocast_cuda", "bf16": "autocast_cpu"}  # for the lint of FP32 weights under autocast


@dataclass
class Subject:
    """name: of the format as it was given: "autocast" too. makes_backward: whether the step runs it itself."""

    model: torch.nn.Module
    closure: Closure
    optimizers: list[torch.optim.Optimizer]
    name: str
    format: Format
    own_types: frozenset[torch.dtype] = frozenset()  # 16-bit types that the step asks for itself
    makes_backward: bool = False
    reaches_weights: bool = False  # by a backward pass, its own or one from the loss
    returns_tensors: bool = False
    scaler: Any = None  # that scales the loss in the step
    losses: tuple[float, ...] = ()  # results of the step as its script has it

    @property
    def is_autocast(self) -> bool:
        return self.name.startswith(_AUTOCAST)

    @property
    def scale(self) -> float:
        """The loss scale of the step."""
        return 1.0 if self.scaler is None else float(self.scaler.get_scale())

    @property
    def narrow_weights(self) -> frozenset[torch.dtype]:
        types = (torch.float16, torch.bfloat16)
        return frozenset(weight.dtype for weight in self.model.parameters() if weight.dtype in types)

    def take_types(self, types: Iterable[torch.dtype]) -> None:
        """Takes the format of 16-bit types that the model has, or the step asks for, as the doctor does."""
        self.own_types = frozenset(types)
        names = [name for name, type_ in TYPES.items() if type_ in self.own_types]
        if names:
            self.format = Format.of(names[0])

    @property
    def stores_format(self) -> bool:
        """Whether weights and optimizer state are kept in the format."""
        return bool(self.narrow_weights) or not (self.is_autocast or self.own_types)

    @property
    def lint_format(self) -> str:
        """The format for a lint, or the policy where weights stay in FP32."""
        return self.format.name if self.stores_format else _POLICIES.get(self.format.name, "autocast_cuda")

    @property
    def lint_optimizers(self) -> list[torch.optim.Optimizer]:
        """Optimizers for a lint: the state of FP32 weights is FP32, whatever the step is computed in."""
        return self.optimizers if self.narrow_weights else []

    def program(self, scale: float = 1.0) -> Program:
        """The step for the doctor's runs."""
        return Program(
            self.model, self.closure, self.optimizers, self.format, scale, self.is_autocast, not self.is_autocast
        )

    def state(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Weights, buffers and tensors of the optimizers' states, by name."""
        yield from self.program().state()


def subject_of(model: Any, loss: Any, optimizer: Any, format: Any) -> Subject:
    """Raises TypeError and ValueError for what cannot be checked."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"check: model is of type {type(model).__name__}; give a torch.nn.Module")
    if isinstance(model, torch.jit.ScriptModule) or is_compiled(model):
        raise TypeError("check: the model is compiled or scripted, so that no call is seen; give the eager model")
    if not callable(loss):
        raise TypeError(f"check: loss is of type {type(loss).__name__}; give a function without arguments: lambda: ...")
    refuse_float64(model, "check")
    _refuse_dtensors(model)
    closure = Closure(loss, model)
    optimizers = closure.optimizers if optimizer is None else _optimizers(optimizer)
    given = _format(format)
    subject = Subject(model, closure, optimizers, format, given)
    subject.take_types(subject.narrow_weights)
    return subject


def _refuse_dtensors(model: torch.nn.Module) -> None:
    """The step is run other numbers of times by each rank, which communicate in it."""
    name = next((name for name, weight in model.named_parameters() if hasattr(weight, "to_local")), None)
    if name is not None:
        raise TypeError(
            f"check: '{name}' is a DTensor, of which this rank has a part; check the model in one process before it is "
            "sharded, or watch it"
        )


def _optimizers(given: Any) -> list[torch.optim.Optimizer]:
    try:
        return optimizers_of(given, "check")
    except TypeError:
        raise TypeError(
            f"check: optimizer is of type {type(given).__name__}; give an optimizer of PyTorch, or a list of them"
        ) from None


def _format(given: Any) -> Format:
    if not isinstance(given, str):
        raise TypeError(f"check: format={given!r}; give a name, such as 'fp16', 'bf16' or 'autocast'")
    name = given
    if given == _AUTOCAST or given.startswith(f"{_AUTOCAST}_"):
        name = given.removeprefix(_AUTOCAST).lstrip("_") or "fp16"
    try:
        return Format.of(name)
    except ValueError as error:
        raise ValueError(f"check: format={given!r}: {error}; 'autocast' and 'autocast_bf16' are others") from None

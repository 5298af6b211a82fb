"""Parts of an emulation that cost as much as the model's state, and that a large model has where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from halfscope.torch.tensors.host_memory import refuse_shortage, trained_bytes
from halfscope.torch.words import listed

_STEPS = frozenset({1, 10, 100, 1000})
_LARGE = 10_000_000  # weights
_PLAIN, _COMPARED = 2, 4  # copies of the trained weights that a step holds at once, gradients among them


def compared_steps(model: torch.nn.Module, given: Iterable[int] | None) -> frozenset[int]:
    """Steps that are computed in FP32 too; None leaves the choice to the model's size."""
    if given is not None:
        return frozenset(given)
    return frozenset() if _size(model) > _LARGE else _STEPS


def keeps_start(model: torch.nn.Module, given: bool | None) -> bool:
    """Whether a copy of the state at entry is kept; None leaves the choice to the model's size."""
    return _size(model) <= _LARGE if given is None else given


def left_out_words(model: torch.nn.Module, compared: frozenset[int], restarts: bool) -> str:
    """A sentence for a large model on what it went without."""
    if _size(model) <= _LARGE:
        return ""
    parts = ["compare_steps=[1] compares step 1 with FP32"] * (not compared)
    parts += ["restarts=True keeps the copy that `bisect` begins with"] * (not restarts)
    return f"Not done for {_size(model) / 1e6:.0f} million weights unless asked: {listed(parts)}." if parts else ""


def refuse_without_memory(model: torch.nn.Module, compared: frozenset[int]) -> None:
    """Raises MemoryError where copies of the weights that every step has are more than is free."""
    instead = "give compare_steps=()" if compared else "emulate one block: halfscope.torch.load_block(CHECKPOINT, NAME)"
    refuse_shortage("emulate", (_COMPARED if compared else _PLAIN) * trained_bytes(model), instead)


def _size(model: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())

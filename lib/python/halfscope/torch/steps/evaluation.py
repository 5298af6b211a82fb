"""Calls of a model with batches in evaluation mode, which leave the model as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from halfscope.torch.steps.snapshot import RandomNumbers


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, weights without gradients, and afterwards modes and random numbers as before."""
    modes = [(module, module.training) for module in model.modules()]
    needing = [weight for weight in model.parameters() if weight.requires_grad]
    random = RandomNumbers.now()
    try:
        model.eval()
        for weight in needing:
            weight.requires_grad_(False)
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for weight in needing:
            weight.requires_grad_(True)
        random.restore()


def batches_of(batches: Iterable[Any], what: str, enough: str) -> tuple[Any, ...]:
    """enough: how many there should be. Raises TypeError for a single tensor or mapping, ValueError without a batch."""
    if isinstance(batches, (torch.Tensor, Mapping)):
        raise TypeError(f"{what} is {kind_of(batches)}; give a list of batches, as [batch]")
    found = tuple(batches)
    if not found:
        raise ValueError(f"{what} has no batch; give {enough}, of data that the model is to run on")
    return found


def output_of(model: torch.nn.Module, batch: Any, door: str) -> Any:
    """The model's output for a tensor, a mapping of arguments by name, or a tuple of them.

    door: the function that was called. Raises TypeError for another batch, and for more parts than the model takes.
    """
    if isinstance(batch, torch.Tensor):
        return model(batch)
    if isinstance(batch, Mapping):
        return model(**batch)
    if isinstance(batch, (tuple, list)):
        try:
            return model(*batch)
        except TypeError as error:
            if "positional argument" not in str(error):
                raise
            raise TypeError(
                f"{door}: a batch has {len(batch)} parts, and the model takes fewer ({error}); labels are not read: "
                "give call=lambda model, batch: model(batch[0])"
            ) from None
    raise TypeError(
        f"{door}: a batch is {kind_of(batch)}; give tensors, or call=lambda model, batch: ... that returns the output"
    )


def kind_of(value: Any) -> str:
    """A value in words of a refusal."""
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)} of {value.dtype}"
    return f"a {type(value).__name__}"

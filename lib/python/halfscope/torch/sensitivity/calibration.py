"""A model with its calibration batches: forward passes in evaluation mode that leave the model as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch

from halfscope.torch.sensitivity.loss_families import Family
from halfscope.torch.steps.evaluation import batches_of, evaluating, kind_of, output_of

ENOUGH = "four or more"  # batches
Call = Callable[[torch.nn.Module, Any], Any]


@dataclass(frozen=True)
class Calibration:
    """call: the model's output for a batch; mask: of the loss's terms that count; caches: whether they are units."""

    model: torch.nn.Module
    batches: tuple[Any, ...]
    family: Family
    call: Call | None = None
    mask: Callable[[Any], torch.Tensor] | None = None
    caches: bool = False

    def with_batches(self, batches: Iterable[Any]) -> Calibration:
        """The same model on other batches. Raises ValueError without any."""
        return replace(self, batches=batches_of(batches, "choose: held_out", ENOUGH))

    def output(self, batch: Any) -> torch.Tensor:
        """(sequences, ...) of floats. Raises TypeError for another output, ValueError for one that is not finite."""
        result = output_of(self.model, batch, "sensitivity") if self.call is None else self.call(self.model, batch)
        output = _tensor_of(result)
        if not isinstance(output, torch.Tensor) or not output.is_floating_point() or output.dim() < 2:
            raise TypeError(
                f"sensitivity: the model returns {kind_of(result)}; give call=lambda model, batch: ... that returns a "
                "tensor (sequences, ..., classes)"
            )
        if output.dtype is not torch.float32:
            raise TypeError(f"sensitivity: the output is {output.dtype}; give model.float(), without autocast")
        return output

    def terms(self, batch: Any, output: torch.Tensor) -> torch.Tensor:
        """1 for each of the loss's terms that counts, else 0; of the shape of the family's terms."""
        shape = self.family.terms(output)
        if self.mask is None:
            return output.new_ones(shape)
        mask = torch.as_tensor(self.mask(batch), device=output.device)
        if mask.shape != shape:
            raise ValueError(f"sensitivity: mask has the shape {tuple(mask.shape)}; give {tuple(shape)}, as the terms")
        return mask.to(output.dtype)

    def weighted(self, gradient: torch.Tensor, terms: torch.Tensor) -> torch.Tensor:
        """A gradient by the output, without the terms that do not count."""
        if self.mask is None:
            return gradient
        axis = getattr(self.family, "axis", None)
        return gradient * (terms if axis is None else terms.unsqueeze(axis))

    def evaluating(self) -> AbstractContextManager[None]:
        """Evaluation mode, weights without gradients, and afterwards modes and random numbers as before."""
        return evaluating(self.model)


def _tensor_of(result: Any) -> Any:
    """The output, or the logits of it."""
    if isinstance(result, Mapping):
        return result.get("logits")
    if isinstance(result, torch.Tensor):
        return result
    return getattr(result, "logits", None)

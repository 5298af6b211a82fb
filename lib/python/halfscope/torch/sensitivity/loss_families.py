"""Families of losses: labels drawn from a model's own output, and the KL between two outputs, in nats.

The gradients of drawn labels have the covariance of the loss's Gauss-Newton matrix (Kunstner et al., 1905.12558).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional

_FEW = 2**22  # elements


class Family(Protocol):
    """A distribution of labels whose parameters are the model's output; axis 0 of an output are the sequences."""

    @property
    def words(self) -> str:
        """The family in a sentence."""

    def drawn(self, output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Gradient of each term's loss by the output, with labels drawn from it; of the output's shape."""

    def soft(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        """Gradient by the output of the KL from the reference, summed over terms; of the output's shape."""

    def divergence(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        """KL of each term in nats, float64, of the shape of `terms`."""

    def terms(self, output: torch.Tensor) -> torch.Size:
        """Shape of the loss's terms."""


@dataclass(frozen=True)
class Softmax:
    """Classes along an axis of the output."""

    axis: int = -1

    @property
    def words(self) -> str:
        return "labels drawn from the model's softmax"

    def drawn(self, output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        shares = output.movedim(self.axis, -1).softmax(-1)
        rows = shares.reshape(-1, shares.shape[-1])
        labels = torch.multinomial(rows, 1, generator=generator)
        rows.scatter_add_(1, labels, torch.full_like(labels, -1, dtype=rows.dtype))
        return rows.reshape(shares.shape).movedim(-1, self.axis)

    def soft(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return output.softmax(self.axis) - reference.softmax(self.axis)

    def divergence(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        size = max(1, _FEW * len(output) // output.numel())  # sequences that are float64 at once
        pairs = zip(reference.split(size), output.split(size))
        return torch.cat([_softmax_divergence(*pair, self.axis) for pair in pairs])

    def terms(self, output: torch.Tensor) -> torch.Size:
        return output.select(self.axis, 0).shape


def _softmax_divergence(reference: torch.Tensor, output: torch.Tensor, axis: int) -> torch.Tensor:
    before, after = (each.double().log_softmax(axis) for each in (reference, output))
    return (before.exp() * (before - after)).sum(axis)


class _Elements:
    """Families whose every element of the output is a term."""

    def terms(self, output: torch.Tensor) -> torch.Size:
        return output.shape


class Gaussian(_Elements):
    """Squared errors: each element is the mean of a label of variance 1."""

    words = "labels drawn from a Gaussian of variance 1 about the output"

    def drawn(self, output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return torch.randn(output.shape, generator=generator, device=output.device, dtype=output.dtype)

    def soft(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return output - reference

    def divergence(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return (output.double() - reference.double()).square() / 2


class Bernoulli(_Elements):
    """Binary labels: each element is a logit."""

    words = "binary labels drawn from the model's sigmoid"

    def drawn(self, output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        shares = output.sigmoid()
        return shares - torch.bernoulli(shares, generator=generator)

    def soft(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return output.sigmoid() - reference.sigmoid()

    def divergence(self, reference: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        before, after = reference.double(), output.double()
        ones = before.sigmoid() * (functional.logsigmoid(before) - functional.logsigmoid(after))
        return ones + (-before).sigmoid() * (functional.logsigmoid(-before) - functional.logsigmoid(-after))


NAMES: dict[str, Family] = {"softmax": Softmax(), "gaussian": Gaussian(), "bernoulli": Bernoulli()}
_CRITERIA: dict[Any, Family] = {
    nn.CrossEntropyLoss: Softmax(1), functional.cross_entropy: Softmax(1), nn.MSELoss: Gaussian(),
    functional.mse_loss: Gaussian(), nn.BCEWithLogitsLoss: Bernoulli(),
    functional.binary_cross_entropy_with_logits: Bernoulli(),
}  # fmt: skip


def family_of(loss: Any) -> Family:
    """The family of a name or of a criterion of PyTorch's, whose classes lie along axis 1.

    Raises ValueError for a loss whose labels cannot be drawn.
    """
    found = NAMES["softmax"] if loss is None else NAMES.get(loss) if isinstance(loss, str) else _criterion(loss)
    if found is None:
        raise ValueError(
            f"sensitivity: loss={loss!r}: labels are drawn from a distribution that the output gives, which this loss "
            f"does not name; give {', '.join(map(repr, NAMES))}, or cross_entropy, mse_loss or "
            "binary_cross_entropy_with_logits of PyTorch"
        )
    return found


def _criterion(loss: Any) -> Family | None:
    weights = (getattr(loss, name, None) for name in ("weight", "pos_weight"))
    if any(weight is not None for weight in weights if not callable(loss) or isinstance(loss, nn.Module)):
        return None  # terms of several weights are no distribution's
    if type(loss) in _CRITERIA:
        return _CRITERIA[type(loss)]
    return _CRITERIA.get(loss) if callable(loss) and not isinstance(loss, nn.Module) else None

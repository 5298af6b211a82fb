"""Positions and inverse frequencies in a format: positions that coincide, and the error of their angles."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import halfscope
from halfscope.formats import Format


@dataclass(frozen=True)
class Positions:
    """The integers 0 to count - 1, cast to a format."""

    count: int
    format: Format

    @property
    def distinct(self) -> int:
        """So many different numbers after the cast."""
        return self._stored().unique().numel()

    @property
    def first(self) -> int | None:
        """The first that is another number after the cast; None where none is."""
        changed = (self._stored() != torch.arange(self.count, dtype=torch.float32)).nonzero()
        return int(changed[0]) if changed.numel() else None

    def _stored(self) -> torch.Tensor:
        return halfscope.round(torch.arange(self.count, dtype=torch.float32), self.format.name)


@dataclass(frozen=True)
class Angles:
    """Positions times inverse frequencies, which a format holds; both factors and the product are else exact."""

    frequencies: torch.Tensor  # float32, a value per pair of channels
    format: Format

    def error(self, position: int) -> float:
        """The largest error of an angle there, in radians."""
        return position * self._error_of_one()

    def first(self, error: float) -> int | None:
        """The first position at which an angle is off by `error` radians or more; None where none is."""
        one = self._error_of_one()
        return None if one == 0 else -int(-error // one)

    def _error_of_one(self) -> float:
        exact = self.frequencies.detach().float().cpu().flatten().contiguous()
        stored = halfscope.round(exact, self.format.name)
        return float((stored.double() - exact.double()).abs().max())


def are_frequencies(name: str, tensor: torch.Tensor) -> bool:
    """Whether a buffer holds inverse frequencies: by its name, or a falling geometric row that begins with 1."""
    if tensor.dim() != 1 or tensor.numel() < 2 or not bool((tensor > 0).all()):
        return False
    if "inv_freq" in name or "inverse" in name:
        return True
    ratios = (tensor[1:] / tensor[:-1]).double()
    even = bool(((ratios - ratios.mean()).abs() < 1e-3).all())
    return tensor.numel() >= 4 and float(tensor[0]) == 1 and even and bool((ratios < 1).all())

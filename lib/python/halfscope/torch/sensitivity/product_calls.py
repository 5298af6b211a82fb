"""Products of an input and a weight, as a model calls them: exact, and with operands in a format.

A product's result has its rows first and the layer's outputs last; the bias is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch.nn import functional

from halfscope.torch.sensitivity.operand_images import LEFT, RIGHT

linear = functional.linear  # as it is, where another one stands in its place for a while


class Images(Protocol):
    """Images of operands, in blocks along the summed axis or element by element."""

    @property
    def has_blocks(self) -> bool: ...

    def image(self, matrix: torch.Tensor, side: str) -> torch.Tensor: ...


class Exact:
    """Operands as they are."""

    has_blocks = False

    def image(self, matrix: torch.Tensor, side: str) -> torch.Tensor:
        del side
        return matrix


@dataclass(frozen=True)
class Operand:
    """A matrix (..., summed axis) as blocks run along it: taps, and within a tap the channels from `first` on."""

    side: str
    matrix: torch.Tensor
    taps: int = 1
    first: int = 0

    @property
    def channels(self) -> slice:
        """Channels that the matrix has, of those of the whole operand."""
        return slice(self.first, self.first + self.matrix.shape[-1] // self.taps)


class ProductCall(Protocol):
    """One call; input and weight are as the model gave them."""

    @property
    def input(self) -> torch.Tensor: ...

    @property
    def weight(self) -> torch.Tensor: ...

    def product(self, images: Images) -> torch.Tensor:
        """(rows ..., outputs) of operands as `images` show them."""

    def operands(self) -> list[Operand]:
        """The matrices that a format with blocks sees."""

    def rows_first(self, result: torch.Tensor) -> torch.Tensor:
        """A tensor of the call's result, or its gradient, in the axes of `product`."""

    def as_result(self, product: torch.Tensor) -> torch.Tensor:
        """A product in the axes of the call's result, with the bias."""

    def plain(self) -> torch.Tensor:
        """The call as PyTorch has it."""


@dataclass(frozen=True)
class LinearCall:
    """x W^T + b: input (..., in), weight (out, in)."""

    input: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None = None

    def product(self, images: Images) -> torch.Tensor:
        return linear(images.image(self.input.detach(), LEFT), images.image(self.weight.detach(), RIGHT))

    def operands(self) -> list[Operand]:
        return [Operand(LEFT, self.input.detach()), Operand(RIGHT, self.weight.detach())]

    def rows_first(self, result: torch.Tensor) -> torch.Tensor:
        return result

    def as_result(self, product: torch.Tensor) -> torch.Tensor:
        return product if self.bias is None else product + self.bias

    def plain(self) -> torch.Tensor:
        return linear(self.input, self.weight, self.bias)


@dataclass(frozen=True)
class EmbeddingCall:
    """Rows of a weight (entries, width); the weight alone has a format."""

    input: torch.Tensor
    weight: torch.Tensor

    def product(self, images: Images) -> torch.Tensor:
        return functional.embedding(self.input, images.image(self.weight.detach(), RIGHT))

    def operands(self) -> list[Operand]:
        return [Operand(RIGHT, self.weight.detach())]

    def rows_first(self, result: torch.Tensor) -> torch.Tensor:
        return result

    def as_result(self, product: torch.Tensor) -> torch.Tensor:
        return product

    def plain(self) -> torch.Tensor:
        return functional.embedding(self.input, self.weight)


@dataclass(frozen=True)
class ConvolutionCall:
    """A convolution of any number of axes: input (batch, in, ...), weight (out, in of a group, kernel ...).

    Blocks run along a patch: over the taps, and within a tap over the channels of a group.
    """

    input: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    _axes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_axes", self.weight.dim() - 2)

    def product(self, images: Images) -> torch.Tensor:
        if not images.has_blocks:
            seen = images.image(self.input.detach(), LEFT), images.image(self.weight.detach(), RIGHT)
            return self.rows_first(self._convolve(*seen, None))
        operands = zip(self._patches(), self._matrices())
        parts = [linear(images.image(left, LEFT), images.image(right, RIGHT)) for left, right in operands]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def operands(self) -> list[Operand]:
        taps, channels = self.weight.shape[2:].numel(), self.weight.shape[1]
        return [
            Operand(side, matrix, taps, group * channels)
            for side, matrices in ((LEFT, self._patches()), (RIGHT, self._matrices()))
            for group, matrix in enumerate(matrices)
        ]

    def rows_first(self, result: torch.Tensor) -> torch.Tensor:
        return result.movedim(1, -1)

    def as_result(self, product: torch.Tensor) -> torch.Tensor:
        images = product.movedim(-1, 1).contiguous()
        return images if self.bias is None else images + self.bias.reshape(1, -1, *[1] * self._axes)

    def plain(self) -> torch.Tensor:
        return self._convolve(self.input, self.weight, self.bias)

    def _convolve(self, images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        each = (self.stride, self.padding, self.dilation)
        options = ([*values] for values in each)
        return torch.convolution(images, weight, bias, *options, False, [0] * self._axes, self.groups)

    def _patches(self) -> list[torch.Tensor]:
        """By group (batch, positions ..., taps and channels)."""
        spans = [size for pad in reversed(self.padding) for size in (pad, pad)]
        padded = functional.pad(self.input.detach(), spans).movedim(1, -1).contiguous()
        channels = padded.shape[-1] // self.groups
        view = padded.as_strided(*self._windows(padded, channels))
        return [view[..., group, :].flatten(1 + self._axes) for group in range(self.groups)]

    def _windows(self, padded: torch.Tensor, channels: int) -> tuple[list[int], list[int]]:
        """Sizes and strides (batch, positions ..., taps ..., groups, channels) of the patches in padded images."""
        kernel, strides = self.weight.shape[2:], padded.stride()
        reach = [spread * (taps - 1) + 1 for spread, taps in zip(self.dilation, kernel)]
        counts = [(size - end) // step + 1 for size, end, step in zip(padded.shape[1:-1], reach, self.stride)]
        steps = [stride * step for stride, step in zip(strides[1:-1], self.stride)]
        taps = [stride * step for stride, step in zip(strides[1:-1], self.dilation)]
        sizes = [padded.shape[0], *counts, *kernel, self.groups, channels]
        return sizes, [strides[0], *steps, *taps, channels, 1]

    def _matrices(self) -> list[torch.Tensor]:
        """By group (outputs of a group, taps and channels)."""
        taps_first = self.weight.detach().movedim(1, -1).flatten(1)
        return list(taps_first.chunk(self.groups))

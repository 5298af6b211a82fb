"""Convolutions of any number of axes and their gradients as products of patches, in the order of the simulator's.

Each sum runs over the kernel's taps, and within a tap over the channels; that of a weight's gradient over the images'
positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.emulate.arithmetic.product_operands import DATA, FORWARD, LEFT, RIGHT, WEIGHT, See

_FEW = 4  # groups that are multiplied one by one


@dataclass(frozen=True)
class Product:
    """How a product of patches is computed: the order of its sums, and what it sees of its operands.

    see: None where it sees them as they are; else every group's patches, one after the other, and its weights are
    brought to formats of their own.
    """

    model: str
    see: See | None = None


@dataclass(frozen=True)
class Geometry:
    """Geometry of a convolution, per axis of an image."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def unpadded(self) -> Geometry:
        return replace(self, padding=(0,) * len(self.kernel))

    def outputs(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        """Positions of the kernel in an image of these extents."""
        return tuple(
            (size + 2 * pad - step * (kernel - 1) - 1) // stride + 1
            for size, kernel, stride, pad, step in zip(extents, self.kernel, self.stride, self.padding, self.dilation)
        )


@lru_cache(maxsize=512)
def _offsets(shape: tuple[int, ...], geometry: Geometry, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of patches in padded images (batch, ..., all channels): of corners, and of the elements of one of them.

    The corners have the axes (batch, positions ...); the elements are in the order (taps ..., channels of a group).
    """
    if np.prod(shape, dtype=np.int64) > np.iinfo(np.int32).max:
        raise ValueError(f"emulate: a convolution over {shape} has more than 2^31 elements; use a smaller batch")
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    corners = np.arange(shape[0]) * strides[0]
    for count, step, stride in zip(geometry.unpadded().outputs(shape[1:-1]), geometry.stride, strides[1:]):
        corners = np.add.outer(corners, np.arange(count) * step * stride)
    elements = np.zeros((), dtype=np.int64)
    for size, step, stride in zip(geometry.kernel, geometry.dilation, strides[1:]):
        elements = np.add.outer(elements, np.arange(size) * step * stride)
    return corners.astype(np.int32), np.add.outer(elements, np.arange(channels)).reshape(-1).astype(np.int32)


def forward(
    product: Product, images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int],
    padding: list[int], dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    """The operation torch.ops.aten.convolution."""
    axes = images.dim() - 2
    geometry = Geometry(tuple(weight.shape[2:]), _each(stride, axes), _each(padding, axes), _each(dilation, axes))
    if transposed:
        result = _spread_product((product, FORWARD), images, weight, geometry, _each(output_padding, axes), groups)
    else:
        result = _patch_product((product, FORWARD), images, weight, geometry, groups)
    return result if bias is None else result + bias.reshape(1, -1, *[1] * axes)


def backward(
    product: Product, gradient: torch.Tensor, images: torch.Tensor, weight: torch.Tensor, bias_sizes: list[int] | None,
    stride: list[int], padding: list[int], dilation: list[int], transposed: bool, output_padding: list[int],
    groups: int, output_mask: list[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """The operation torch.ops.aten.convolution_backward."""
    del bias_sizes, output_padding
    axes = images.dim() - 2
    geometry = Geometry(tuple(weight.shape[2:]), _each(stride, axes), _each(padding, axes), _each(dilation, axes))
    of_images = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_images = _patch_product((product, DATA), gradient, weight, geometry, groups)
        # Rows that the output's padding added have no position in the images.
        of_images = of_images[_window(2, [slice(0, size) for size in images.shape[2:]])].contiguous()
    elif output_mask[0]:
        missing = [
            size - (count - 1) * step + 2 * pad - spread * (kernel - 1) - 1
            for size, count, step, pad, spread, kernel in zip(
                images.shape[2:], gradient.shape[2:], geometry.stride, geometry.padding, geometry.dilation,
                geometry.kernel,
            )
        ]  # fmt: skip
        of_images = _spread_product((product, DATA), gradient, weight, geometry, tuple(missing), groups)
    if output_mask[1]:
        whole, moved = (gradient, images) if transposed else (images, gradient)
        sides = (LEFT, RIGHT) if transposed else (RIGHT, LEFT)
        of_weight = _weight_gradient((product, sides), whole, moved, tuple(weight.shape), geometry, groups)
    if output_mask[2]:
        of_bias = channel_sums(gradient)
    return of_images, of_weight, of_bias


def channel_sums(gradient: torch.Tensor) -> torch.Tensor:
    """(channels): sums over batch and positions, in FP32 chunks of 256 terms."""
    rows = gradient.movedim(1, -1).flatten(0, -2)
    device = device_of(gradient)
    return device.away(device.sum(rows, "fp32_chunked(256)"), gradient)


def _each(values: Any, axes: int) -> tuple[int, ...]:
    given = tuple(int(value) for value in values)
    return given * axes if len(given) == 1 else given


def _patch_product(
    asked: tuple[Product, str], images: torch.Tensor, weight: torch.Tensor, geometry: Geometry, groups: int
) -> torch.Tensor:
    """Correlates images (batch, channels, ...) with a weight (out, channels of a group, ...); asked: and a product."""
    axes, out = images.dim() - 2, weight.shape[0] // groups
    taps_first = _near(weight).permute(*range(2, 2 + axes), 1, 0)  # (..., channels of a group, out)
    matrices = [part.reshape(-1, out) for part in taps_first.split(out, dim=-1)]
    return _multiply(asked, _padded(images, geometry.padding), matrices, geometry, images)


def _multiply(
    asked: tuple[Product, str],
    padded: torch.Tensor,
    matrices: list[torch.Tensor],
    geometry: Geometry,
    like: torch.Tensor,
) -> torch.Tensor:
    """Patches of padded images (batch, ..., channels) times a matrix (taps and channels, out) of each group."""
    channels, (product, which) = padded.shape[-1] // len(matrices), asked
    model = product.model
    if len(matrices) > _FEW or product.see is not None:
        positions = geometry.unpadded().outputs(tuple(padded.shape[1:-1]))
        patches, weights = _patches(padded, geometry, positions, channels), torch.stack(matrices)
        if product.see is not None:
            patches = _by_group(product.see, patches, f"{which}.{LEFT}", -1)
            weights = _by_group(product.see, weights, f"{which}.{RIGHT}", -2)
        each = device_of(like).matmul(patches, weights, model)  # (groups, rows, out of a group)
        rows_first = each.transpose(0, 1).reshape(padded.shape[0], *positions, each.shape[0] * each.shape[2])
        return _to_images(rows_first, like)
    corners, elements = _offsets(tuple(padded.shape), geometry, channels)
    rows = corners.reshape(-1)
    parts = [
        device_of(like).gather_matmul(padded, (rows, elements + np.int32(group * channels)), matrix.contiguous(), model)
        for group, matrix in enumerate(matrices)
    ]
    result: Any = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return _to_images(result.reshape(*corners.shape, result.shape[-1]), like)


def _by_group(see: See, matrices: torch.Tensor, where: str, axis: int) -> torch.Tensor:
    """Matrices (groups, rows, columns) as a product sees them, group by group."""
    if matrices.shape[0] == 1:
        return see(matrices[0], where, axis, -1)[None]
    return torch.stack([see(matrix, where, axis, group) for group, matrix in enumerate(matrices)])


def _patches(padded: torch.Tensor, geometry: Geometry, positions: tuple[int, ...], channels: int) -> torch.Tensor:
    """(groups, batch and positions, taps and channels of a group), of padded images: one product for many groups."""
    groups, strides = padded.shape[-1] // channels, padded.stride()
    sizes = (groups, padded.shape[0], *positions, *geometry.kernel, channels)
    steps = [stride * step for stride, step in zip(strides[1:-1], geometry.stride)]
    spans = [stride * step for stride, step in zip(strides[1:-1], geometry.dilation)]
    view = padded.as_strided(sizes, (channels, strides[0], *steps, *spans, 1))
    return view.flatten(1 + 1 + len(positions)).flatten(1, -2)


def _spread_product(
    asked: tuple[Product, str],
    gradient: torch.Tensor,
    weight: torch.Tensor,
    geometry: Geometry,
    missing: tuple[int, ...],
    groups: int,
) -> torch.Tensor:
    """The transposed product: zeros between the positions of a stride, then the kernel turned around.

    weight: (channels of gradient, out of a group, ...); missing: rows that no position of the kernel reached.
    """
    axes = gradient.dim() - 2
    reach = [spread * (kernel - 1) for spread, kernel in zip(geometry.dilation, geometry.kernel)]
    before = [size - pad for size, pad in zip(reach, geometry.padding)]
    spans = [(count - 1) * step + 1 for count, step in zip(gradient.shape[2:], geometry.stride)]
    wide = [max(first, 0) + span + max(first + more, 0) for first, span, more in zip(before, spans, missing)]
    near = _near(gradient)
    padded = near.new_zeros((gradient.shape[0], *wide, gradient.shape[1]))
    window = [slice(max(first, 0), max(first, 0) + span, step)
              for first, span, step in zip(before, spans, geometry.stride)]  # fmt: skip
    padded[_window(1, window)] = near.movedim(1, -1)
    for axis, (first, more) in enumerate(zip(before, missing)):  # a padding wider than the kernel cuts the edges off
        low, high = max(-first, 0), max(-first - more, 0)
        if low or high:
            padded = padded.narrow(axis + 1, low, padded.shape[axis + 1] - low - high).contiguous()
    turned = _near(weight).flip(list(range(2, 2 + axes)))
    inner = gradient.shape[1] // groups
    matrices = [
        part.permute(*range(2, 2 + axes), 0, 1).reshape(-1, part.shape[1]) for part in turned.split(inner)
    ]  # (taps, channels of a group; out)
    plain = replace(geometry, stride=(1,) * axes, padding=(0,) * axes)
    return _multiply(asked, padded, matrices, plain, gradient)


def _weight_gradient(
    asked: tuple[Product, tuple[str, str]], images: torch.Tensor, gradient: torch.Tensor, shape: tuple[int, ...],
    geometry: Geometry, groups: int,
) -> torch.Tensor:  # fmt: skip
    """(out, channels of a group, ...): one sum over all positions; asked: and the sides of images and gradient."""
    (product, sides), model, device = asked, asked[0].model, device_of(gradient)
    padded = _padded(images, geometry.padding)
    channels, groups_out = shape[1], shape[0] // groups
    if groups > _FEW or product.see is not None:
        patches = _patches(padded, geometry, tuple(gradient.shape[2:]), channels)
        moved = _near(gradient).movedim(1, -1).reshape(-1, groups, groups_out).transpose(0, 1).contiguous()
        if product.see is not None:
            patches = _by_group(product.see, patches, f"{WEIGHT}.{sides[0]}", -2)
            moved = _by_group(product.see, moved, f"{WEIGHT}.{sides[1]}", -2)
        each = device.matmul(patches.transpose(1, 2), moved, model)  # (groups, taps and channels, out)
        taps = each.reshape(groups, *geometry.kernel, channels, groups_out).movedim((-1, -2), (1, 2))
        return device.away(taps.reshape(shape).contiguous(), gradient)
    corners, elements = _offsets(tuple(padded.shape), geometry, channels)
    # A transposed convolution may have fewer positions than there is room for.
    used = corners[_window(1, [slice(0, size) for size in gradient.shape[2:]])].reshape(-1)
    rows = _near(gradient).movedim(1, -1)
    parts = []
    for group, own in enumerate(rows.split(groups_out, dim=-1)):
        right = own.flatten(0, -2).contiguous()
        indices = elements + np.int32(group * channels), used
        sums = device.gather_matmul(padded, indices, right, model)  # (taps and channels, out)
        parts.append(sums.reshape(*geometry.kernel, channels, -1).movedim((-1, -2), (0, 1)))
    result = parts[0] if groups == 1 else torch.cat(parts)
    return device.away(result.contiguous(), gradient)


def _padded(images: torch.Tensor, padding: tuple[int, ...]) -> torch.Tensor:
    """(batch, ..., channels) with zeros around."""
    last = _near(images).movedim(1, -1)
    if not any(padding):
        return last.contiguous()
    shape = [size + 2 * pad for size, pad in zip(images.shape[2:], padding)]
    padded = last.new_zeros((images.shape[0], *shape, images.shape[1]))
    padded[_window(1, [slice(pad, pad + size) for size, pad in zip(images.shape[2:], padding)])] = last
    return padded


def _near(tensor: torch.Tensor) -> torch.Tensor:
    return device_of(tensor).near(tensor.detach())


def _window(axes: int, slices: list[slice]) -> tuple[slice, ...]:
    """An index that takes all of the first axes and `slices` of the next."""
    return (slice(None),) * axes + tuple(slices)


def _to_images(rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """(batch, channels, ...) of rows (batch, ..., channels), in the memory order of `like`."""
    images = rows.movedim(-1, 1)
    channels_last = (
        like.dim() == 4 and not like.is_contiguous() and like.is_contiguous(memory_format=torch.channels_last)
    )
    return device_of(like).away(images if channels_last else images.contiguous(), like)

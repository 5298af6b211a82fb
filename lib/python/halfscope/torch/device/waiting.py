"""Counting of tensors: of the host's by the compiled module, of a GPU's on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from halfscope import Histogram, UpdateCounters, lost_updates, update_ratios
from halfscope._core import can_count_on_gpu, count_floats
from halfscope.torch.device import cuda_queue, pytorch_bins
from halfscope.torch.tensors.elements import ORDINARY, dense, holds_elements, lies_without_gaps, on_host


class Counting(NamedTuple):
    """Functions that count a tensor; weights and their updates; and the ratios of the two; for a format, given last.

    Each returns its result, or int64 numbers of one axis on the tensor's device, of which `Waiting` makes it later.
    """

    histogram: Callable[[torch.Tensor, str], Histogram | torch.Tensor]
    updates: Callable[[torch.Tensor, torch.Tensor, str], UpdateCounters | torch.Tensor]
    ratios: Callable[[torch.Tensor, torch.Tensor, str], Histogram | torch.Tensor]


# Types that the compiled module reads where they lie, by the names that it has for them.
TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64"}

Region = tuple[int, int, str]


def region_of(tensor: torch.Tensor) -> Region | None:
    """Memory of the elements, as `count_floats` and `KeptWeights` take it; valid as long as the tensor.

    None of a tensor that is not in CPU memory, has gaps, has no memory, or is of a type that has to be converted.
    """
    kind = TYPES.get(tensor.dtype)
    if kind is None or type(tensor) not in ORDINARY or not tensor.is_cpu or tensor.layout is not torch.strided:
        return None
    if not lies_without_gaps(tensor) or tensor.is_neg() or countings["cpu"] is not ON_HOST:
        return None
    try:
        address = tensor.data_ptr()
        if tensor.storage_offset() and not holds_elements(tensor):
            return None
    except RuntimeError:  # inside torch.func's transforms
        return None
    return (address, tensor.numel(), kind) if address else None


def _histogram(tensor: torch.Tensor, format: str) -> Histogram:
    region = region_of(tensor)
    if region is not None:
        return count_floats([region], format)[0]
    return Histogram(on_host(tensor), format=format)


def _ratios(weights: torch.Tensor, updates: torch.Tensor, format: str) -> Histogram:
    return update_ratios(weights, updates, format=format)


def _updates_by_pytorch(weights: torch.Tensor, updates: torch.Tensor, format: str) -> UpdateCounters | torch.Tensor:
    """Lost updates, counted on the host if PyTorch has no rounding to the format: the device is waited for."""
    if format in pytorch_bins.ROUNDED:
        return pytorch_bins.update_effect(weights, updates, format)
    return lost_updates(weights.cpu(), updates.cpu(), format)


ON_HOST = Counting(_histogram, lost_updates, _ratios)
BY_PYTORCH = Counting(
    lambda tensor, format: pytorch_bins.histogram_bins(dense(tensor), format),
    _updates_by_pytorch,
    pytorch_bins.ratio_bins,
)
BY_KERNELS = Counting(
    lambda tensor, format: cuda_queue.histogram_bins(dense(tensor), format),
    cuda_queue.update_effect,
    cuda_queue.ratio_bins,
)

# By type of device, as far as it is known yet; a tensor of any other one is brought to the host.
countings = {"cpu": ON_HOST}


def counting_of(tensor: torch.Tensor) -> Counting:
    kind = tensor.device.type
    if kind == "cuda" and kind not in countings:
        countings[kind] = BY_KERNELS if can_count_on_gpu() else BY_PYTORCH
    return countings.get(kind, ON_HOST)


def where_counted(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in a type that can be counted, in the memory in which they are."""
    return on_host(tensor) if counting_of(tensor) is ON_HOST else dense(tensor)


class Waiting:
    """Numbers that are still on devices, and what is to be made of them."""

    def __init__(self) -> None:
        self._numbers: dict[torch.device, list[torch.Tensor]] = {}
        self._uses: dict[torch.device, list[Callable[[np.ndarray], None]]] = {}

    def add(self, numbers: torch.Tensor, use: Callable[[np.ndarray], None]) -> None:
        """`use` will get `numbers` in host memory."""
        self._numbers.setdefault(numbers.device, []).append(numbers)
        self._uses.setdefault(numbers.device, []).append(use)

    def finish(self) -> None:
        """One copy from each device."""
        for device, parts in self._numbers.items():
            ends = np.cumsum([part.numel() for part in parts])
            for use, numbers in zip(self._uses[device], np.split(torch.cat(parts).cpu().numpy(), ends[:-1])):
                use(numbers)
        self._numbers, self._uses = {}, {}


def update_counters(numbers: np.ndarray, elements: int) -> UpdateCounters:
    """Counters from the numbers that `pytorch_bins.update_effect` returns."""
    nonzero, lost = (int(number) for number in numbers[:2])
    applied, intended = numbers[2:].view(np.float64)
    ratio = float(applied / intended) if intended > 0 else 1.0
    return UpdateCounters(elements=elements, nonzero=nonzero, lost=lost, applied_over_intended=ratio)

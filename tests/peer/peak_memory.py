"""Memory of a computation on the CPU: bytes of tensors that live at once."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import accumulate

import torch


def peak_of(work: Callable[[], object]) -> int:
    """Bytes of tensors that live at once, at most, of those that are made meanwhile."""
    gc.collect()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    kept = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(kept, key=lambda event: event.start_ns())]
    return max(accumulate(sizes, initial=1))


def weights_of(model: torch.nn.Module) -> int:
    """Bytes of a model's weights."""
    return sum(weight.nbytes for weight in model.parameters())

"""Memory that a search takes at least, known before its first run."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from halfscope.torch.doctor.nested_tensors import tensors_in
from halfscope.torch.tensors.host_memory import bytes_on_host, refuse_shortage, trained_bytes

_OF_PASS = 3  # copies of the trained weights, as gradients, that a search holds at once
_OF_STEP, _OF_QUICK_STEP = 5, 3  # copies of these weights and of their optimizer's state
_INSTEAD = (
    'look at one block: halfscope.torch.capture(model, NAME, "dump.safetensors") in the training, then '
    'check_blocks(CHECKPOINT, "dump.safetensors")'
)


def refuse_without_memory(
    door: str, model: torch.nn.Module, optimizers: Iterable[torch.optim.Optimizer] = (), quick: bool = False
) -> None:
    """Raises MemoryError, in the name of the door, where what every search holds at once is more than is free.

    optimizers: whose `step` the search runs.
    """
    weights = trained_bytes(model)
    given = list(optimizers)
    state = sum(bytes_on_host(tensors_in(dict(optimizer.state))) for optimizer in given)
    of_step = (_OF_QUICK_STEP if quick else _OF_STEP) * (weights + state)
    refuse_shortage(door, of_step if given else _OF_PASS * weights, _INSTEAD)

"""Modules and updates of a run, as its modes need to know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.nested_tensors import tensors_in


@contextmanager
def watched_modules(log: CallLog, model: torch.nn.Module, outputs: list[torch.Tensor]) -> Iterator[None]:
    modules = torch.nn.modules.module

    def enter(module: torch.nn.Module, args: Any) -> None:
        log.modules.append(module)

    def leave(module: torch.nn.Module, args: Any, result: Any) -> None:
        while log.modules and log.modules.pop() is not module:
            pass
        if module is model:
            outputs.extend(tensors_in(result))

    handles = [
        modules.register_module_forward_pre_hook(enter),
        modules.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watched_updates(log: CallLog, optimizers: Iterable[torch.optim.Optimizer]) -> Iterator[None]:
    """Updates are computed tensor by tensor meanwhile, so that each operation is seen."""

    def begin(*about: Any) -> None:
        log.in_update = True

    def end(*about: Any) -> None:
        log.in_update = False

    handles, options = [], []
    for optimizer in optimizers:
        handles += [optimizer.register_step_pre_hook(begin), optimizer.register_step_post_hook(end)]
        for group in optimizer.param_groups:
            options.append((group, {key: group[key] for key in ("foreach", "fused", "capturable") if key in group}))
            group.update(dict.fromkeys(options[-1][1], False))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for group, before in options:
            group.update(before)

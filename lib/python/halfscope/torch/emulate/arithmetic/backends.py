"""Switches of PyTorch that hide arithmetic inside of one operation: off during an emulation, and back as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from halfscope.torch.emulate.arithmetic.attention import Way
from halfscope.torch.private import autocast_is_on, switch


def decompose_fused_layers(attention: Way) -> list[Callable[[], None]]:
    """Turns fused attention and oneDNN's and cuDNN's recurrent layers off; returns what undoes that.

    The CPU's fused attention stays where `attention` has it.
    """
    undo: list[Callable[[], None]] = []
    for kind in ("flash", "mem_efficient", "cudnn"):
        wanted = attention.has_kernel and kind == "flash"
        undo += _switched(f"enable_{kind}_sdp", f"{kind}_sdp_enabled", torch.backends.cuda, wanted)
    undo += _switched("enable_math_sdp", "math_sdp_enabled", torch.backends.cuda, attention.has_operations)
    mha = getattr(torch.backends, "mha", None)
    if mha is not None:
        undo += _switched("set_fastpath_enabled", "get_fastpath_enabled", mha, False)
    return [*undo, *(switch(backend, is_on=False) for backend in ("mkldnn", "cudnn"))]


@contextmanager
def own_products() -> Iterator[None]:
    """PyTorch's fast products and convolutions for a while, where oneDNN is switched off."""
    undo = switch("mkldnn", is_on=True)
    try:
        yield
    finally:
        undo()


def decompose_in_autocast(attention: Way) -> list[Callable[[], None]]:
    """Does the same inside of every torch.autocast block, and only there; returns what undoes that."""
    autocast = torch.autocast
    enter, leave = autocast.__enter__, autocast.__exit__
    inside: list[list[Callable[[], None]]] = []

    def entered(self: Any) -> Any:
        inside.append(decompose_fused_layers(attention))
        return enter(self)

    def left(self: Any, *error: Any) -> Any:
        try:
            return leave(self, *error)
        finally:
            _undo_last(inside)

    def restore() -> None:
        autocast.__enter__, autocast.__exit__ = enter, leave
        while inside:
            _undo_last(inside)

    autocast.__enter__, autocast.__exit__ = entered, left
    return [restore]


def follow_autocast(places: Any) -> list[Callable[[], None]]:
    """Notes torch.autocast blocks that switch it off: a model keeps its own types there. Returns what undoes it."""
    autocast = torch.autocast
    enter, leave = autocast.__enter__, autocast.__exit__

    def entered(self: Any) -> Any:
        places.enter_autocast(autocast_is_on(self))
        return enter(self)

    def left(self: Any, *error: Any) -> Any:
        places.leave_autocast()
        return leave(self, *error)

    def restore() -> None:
        autocast.__enter__, autocast.__exit__ = enter, leave

    autocast.__enter__, autocast.__exit__ = entered, left
    return [restore]


def _undo_last(several: list[list[Callable[[], None]]]) -> None:
    for undo in reversed(several.pop() if several else []):
        undo()


def _switched(setter: str, getter: str, owner: Any, wanted: bool) -> list[Callable[[], None]]:
    change, ask = getattr(owner, setter, None), getattr(owner, getter, None)
    if change is None or ask is None:
        return []
    was = ask()
    change(wanted)
    return [lambda: change(was)]


def step_one_by_one(optimizers: Iterable[Any]) -> list[Callable[[], None]]:
    """Has optimizers step weight by weight; returns what undoes that."""
    undo: list[Callable[[], None]] = []
    for optimizer in optimizers:
        for options in (*optimizer.param_groups, optimizer.defaults):
            changed = {key: options[key] for key in ("foreach", "fused") if options.get(key, False) is not False}
            undo.append(partial(options.update, changed))
            options.update(dict.fromkeys(changed, False))
    return undo

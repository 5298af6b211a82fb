"""Callbacks for trainers: a training is watched, and its first batch that is not finite is saved and checked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Each stands in a file of its own, since it needs its trainer's package.
_CALLBACKS = {
    "HalfscopeCallback": "transformers_callback",
    "LightningCallback": "lightning_callback",
}
__all__ = sorted(_CALLBACKS)


def __getattr__(name: str) -> Any:
    if name not in _CALLBACKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_CALLBACKS[name]}"), name)

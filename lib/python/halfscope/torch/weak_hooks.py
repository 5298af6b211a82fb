"""Hooks that neither keep their owner alive nor stand in the way of a model's copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod


class WeakHook:
    """Calls a method as long as its object lives; in a copied, pickled or saved model it does nothing."""

    __torch_unserializable__ = True  # PyTorch need not warn that it leaves the hook of a tensor out

    def __init__(self, method: Callable, *arguments: Any) -> None:
        self._method, self._arguments = WeakMethod(method), arguments

    def __call__(self, *given: Any) -> Any:
        method = self._method()
        return None if method is None else method(*self._arguments, *given)

    def __reduce__(self) -> tuple:
        return _no_hook, ()


def _no_hook() -> Callable:
    return unwatched


def unwatched(*_: Any) -> None:
    """The hook that a copy of a watched model has."""

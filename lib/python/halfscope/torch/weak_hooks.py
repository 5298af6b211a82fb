"""Hooks that neither keep their owner alive nor stand in the way of a model's copy."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, cast
from weakref import ref


class WeakHook:
    """Calls a method as long as its object lives; in a copied, pickled or saved model it does nothing."""

    __torch_unserializable__ = True  # PyTorch need not warn that it leaves the hook of a tensor out

    def __init__(self, method: Callable[..., Any], *arguments: Any) -> None:
        bound = cast(MethodType, method)
        self._owner, self._function, self._arguments = ref(bound.__self__), bound.__func__, arguments

    def __call__(self, *given: Any) -> Any:
        owner = self._owner()
        return None if owner is None else self._function(owner, *self._arguments, *given)

    def __reduce__(self) -> tuple:
        return _no_hook, ()


def _no_hook() -> Callable:
    return unwatched


def unwatched(*_: Any) -> None:
    """The hook that a copy of a watched model has."""

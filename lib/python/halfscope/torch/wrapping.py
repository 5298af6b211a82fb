"""Methods of one object, wrapped and unwrapped again."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType


def wrap_method(owner: object, name: str, around: Callable) -> Callable[[], None]:
    """Puts `around(original, ...)` in the place of the method `name` of `owner`; returns what undoes that.

    On the instance and as a bound method, as learning-rate schedulers do it and expect it: PyTorch's own hooks for
    optimizers came later than the versions that are supported here. Where somebody wrapped the wrapper it stays.
    """
    original = getattr(owner, name)
    wrapper = MethodType(lambda _, *arguments, **options: around(original, *arguments, **options), owner)
    had = owner.__dict__.get(name)
    setattr(owner, name, wrapper)

    def undo() -> None:
        if owner.__dict__.get(name) is wrapper:
            if had is None:
                delattr(owner, name)
            else:
                setattr(owner, name, had)

    return undo

"""Objects that a function can reach: by its closure, its defaults, the globals that it names, and their attributes."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

_DEEPEST = 10  # from the function: a function that it calls, an object, its attribute, a list in that
_MOST = 10_000  # objects that are looked at
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_ENDS = (str, bytes, int, float, bool, type(None), type, ModuleType, torch.Tensor, CodeType)


def reachable_objects(function: Callable) -> list[Any]:
    """Each object once, the nearest first; nothing of installed packages' own globals."""
    found: dict[int, Any] = {}
    level: list[Any] = [function]
    for _ in range(_DEEPEST):
        following: list[Any] = []
        for each in level:
            parts = None if id(each) in found else _parts_or_none(each)
            if parts is None:
                continue
            found[id(each)] = each
            if len(found) >= _MOST:
                return list(found.values())
            following.extend(parts)
        level = following
    return list(found.values())


def _parts_or_none(each: Any) -> list[Any] | None:
    """None of what has no parts, and of objects that do not even tell their type."""
    try:
        return None if isinstance(each, _ENDS) else list(_parts(each))
    except Exception:  # a proxy of something that is not there
        return None


def _parts(each: Any) -> Iterator[Any]:
    if isinstance(each, FunctionType):
        yield from _parts_of_function(each)
    elif isinstance(each, MethodType):
        yield each.__self__
        yield each.__func__
    elif isinstance(each, functools.partial):
        yield from (each.func, *each.args, *each.keywords.values())
    elif isinstance(each, dict):
        yield from each.values()
    elif isinstance(each, (list, tuple, set, frozenset)):
        yield from each
    elif hasattr(each, "__dict__") and not isinstance(each, torch.optim.Optimizer):
        yield from vars(each).values()


def _parts_of_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that nothing has been assigned to yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    """Global names of a function, and of the functions inside of it; names of attributes are not among them."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname.startswith(_LOADS))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)

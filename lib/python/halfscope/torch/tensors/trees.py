"""Tensors inside of an operator's arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

_NUMBERS = (torch.float32, torch.float16, torch.bfloat16)


def results(result: Any) -> list[Any]:
    """An operator's results in their order."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def floats(value: Any) -> Iterator[torch.Tensor]:
    """The float32 tensors in arguments or results."""
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.float32:
            yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from floats(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from floats(part)


def types_of(args: tuple, kwargs: dict) -> set[torch.dtype]:
    """Types of the tensors among an operation's arguments."""
    found: set[torch.dtype] = set()
    _add_types(args, found)
    if kwargs:
        _add_types(kwargs.values(), found)
    return found


def _add_types(values: Iterable[Any], found: set[torch.dtype]) -> None:
    for value in values:
        if isinstance(value, torch.Tensor):
            found.add(value.dtype)
        elif isinstance(value, (list, tuple)):
            _add_types(value, found)


def is_of_shapes(args: tuple, kwargs: dict) -> bool:
    """Whether an operation computes shapes alone: an argument, or its result, is on the device meta."""
    device = kwargs.get("device") if kwargs else None
    if isinstance(device, torch.device) and device.type == "meta":
        return True
    return any(value.is_meta for value in args if isinstance(value, torch.Tensor))


def map_floats(args: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same arguments, with each float32 tensor changed."""
    if isinstance(args, torch.Tensor):
        return change(args) if args.dtype is torch.float32 else args
    if isinstance(args, (tuple, list)):
        return type(args)(map_floats(part, change) for part in args)
    return args


def numbers(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of float32 and of 16 bits in arguments or results."""
    if isinstance(value, torch.Tensor):
        if value.dtype in _NUMBERS:
            yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from numbers(part)


def map_numbers(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same, with each tensor of float32 and of 16 bits changed, and types of 16 bits become float32."""
    if isinstance(value, torch.Tensor):
        return change(value) if value.dtype in _NUMBERS else value
    if isinstance(value, (tuple, list)):
        return type(value)(map_numbers(part, change) for part in value)
    return torch.float32 if isinstance(value, torch.dtype) and value in _NUMBERS else value


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same, with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(map_tensors(part, change) for part in value)
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of any type in arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


def has_numbers(values: list[Any]) -> bool:
    """Whether one of an operator's results is a tensor of real or complex numbers."""
    return any(value.is_floating_point() or value.is_complex() for value in tensors(values))


def has_complex(args: tuple) -> bool:
    """Whether an argument is a tensor of complex numbers of two float32."""
    return any(isinstance(value, torch.Tensor) and value.dtype is torch.complex64 for value in args)


def map_complex(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same, with each complex tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value) if value.dtype is torch.complex64 else value
    if type(value) in (tuple, list):
        return type(value)(map_complex(part, change) for part in value)
    return value

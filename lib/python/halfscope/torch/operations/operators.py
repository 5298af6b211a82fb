"""PyTorch's operators: their rows of the table, and what else their names, schemas and kernels say of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from halfscope.torch.operations.table import TABLE, Operation
from halfscope.torch.private import has_kernel, schema_of


def operation_of(func: Any) -> Operation | None:
    """The row of an operator; None of one that the table does not have."""
    name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else str(func)
    return TABLE.get(name) or TABLE.get(name[:-1] if name.endswith("_") else name)


def is_composed(func: Any) -> bool:
    """Whether PyTorch has no kernel of its own for it, so that autograd sees the operations that it is composed of."""
    if not (hasattr(func, "name") and hasattr(func, "decompose")):
        return False
    own = any(has_kernel(func, key) for key in ("CPU", "CUDA", "CompositeExplicitAutograd"))
    return not own and has_kernel(func, "CompositeImplicitAutograd")


@cache
def writes(func: Any) -> tuple[int | str, ...]:
    """Positions and names of the arguments that an operator changes: its schema's, and `updated` of its row."""
    schema, row = schema_of(func), operation_of(func)
    if schema is None:
        return ()
    updated = () if row is None else row.updated
    changed = [
        (place, argument.name)
        for place, argument in enumerate(schema.arguments)
        if place in updated or _is_written(argument)
    ]
    return tuple(key for both in changed for key in both)


@cache
def is_in_place(func: Any) -> bool:
    """Whether an operator's result is an argument that it changes; the running averages of a norm are none."""
    schema = schema_of(func)
    return schema is not None and (0 in writes(func) or any(map(_is_written, schema.returns)))


def _is_written(value: Any) -> bool:
    """An argument or a result of a schema."""
    return value.alias_info is not None and bool(value.alias_info.is_write)


def is_random(func: Any) -> bool:
    """Whether an operator draws random numbers, so that a second run has others."""
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def target_of(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The argument that an operation writes its result to, `out` or the first of one in place; None of all others."""
    target = kwargs.get("out")
    return args[0] if target is None and 0 in writes(func) else target

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


def writes_to(func: Any) -> tuple[str, ...]:
    """Names of the arguments that an operator writes to, by its schema."""
    return tuple(
        argument.name for argument in schema_of(func).arguments if argument.alias_info and argument.alias_info.is_write
    )


@cache
def written_arguments(func: Any) -> frozenset[int | str]:
    """Positions and names of all arguments that an operator writes to: its schema's, and `updated` of its row."""
    schema = schema_of(func)
    if schema is None:
        return frozenset()
    row, arguments, names = operation_of(func), schema.arguments, writes_to(func)
    positions = {place for place, argument in enumerate(arguments) if argument.name in names}
    positions.update(() if row is None else row.updated)
    return frozenset({*positions, *(arguments[place].name for place in positions)})


def is_random(func: Any) -> bool:
    """Whether an operator draws random numbers, so that a second run has others."""
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def target_of(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The argument that an operation writes to, `out` or the first of one in place; None of all others."""
    target = kwargs.get("out")
    if target is None and str(func.overloadpacket.__name__).endswith("_"):
        target = args[0]
    return target

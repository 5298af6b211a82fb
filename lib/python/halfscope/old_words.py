"""Words of halfscope before 0.1, which are refused until 0.2 with the one to type."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SETTINGS = {"accumulate": "order", "gradient_accumulator": "gradient_sum", "reduce": "sum_order"}
FUNCTIONS = {"list_accumulators": "list_orders"}
ARGUMENTS = {
    "ablate": {"accumulate": "order", "rules": "exceptions"},
    "diagnose": {"accumulate": "order", "loss_or_step": "loss"},
    "dot": {"accumulate": "order"},
    "emulate": {
        "accumulate": "order",
        "gradient_accumulator": "gradient_sum",
        "reductions": "sum_order",
        "rules": "exceptions",
    },
    "matmul": {"accumulate": "order"},
    "sum": {"accumulate": "order"},
}


def without_old_arguments(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, raising TypeError for an old argument, with the new one named."""
    renamed = ARGUMENTS[function.__name__]

    @wraps(function)
    def checked(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        for old, new in renamed.items():
            if old in options:
                raise TypeError(f"{function.__name__} has no {old}= since 0.1; give {new}=")
        return function(*args, **options)

    return checked

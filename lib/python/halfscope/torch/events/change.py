"""Change of one operation of a step, to try a remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Override:
    """A change of one operation, to try a remedy: of its arguments, of its result, or to FP32 from here on."""

    is_wide: bool = False
    arguments: Callable[[tuple, dict], tuple[tuple, dict]] = lambda args, kwargs: (args, kwargs)
    result: Callable[[Any], Any] = lambda result: result

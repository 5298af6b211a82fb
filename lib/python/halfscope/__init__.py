"""halfscope: rounding, histograms and dot products of half precision, and what training runs recorded of them.

`halfscope.round`, `Histogram`, `dot`, `lost_updates` and `update_ratios` are compiled (`pip install .` compiles them).
The modules that read records and draw them (`results`, `plots`, `report`) need no compiled part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfscope._core import Histogram, UpdateCounters, WhatIf, dot, lost_updates, round, update_ratios

__all__ = ["Histogram", "UpdateCounters", "WhatIf", "dot", "lost_updates", "round", "update_ratios"]


def __getattr__(name: str) -> object:
    """What is compiled, loaded where it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'halfscope' has no attribute '{name}'")
    try:
        from halfscope import _core
    except ImportError as error:
        raise ImportError(f"halfscope.{name} is compiled, and was not: run 'pip install .' in the source tree") from error
    return getattr(_core, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

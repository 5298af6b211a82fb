"""halfscope: rounding, histograms, dot products and loss scales of half precision, and the results of training runs.

The names of `__all__` need the compiled module (`pip install .` compiles it) and are loaded at their first use. Results
are read without it up to their histograms, which need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from halfscope import old_words

if TYPE_CHECKING:
    from halfscope._core import (
        BlockCounts,
        Histogram,
        LossScaler,
        UpdateCounters,
        WhatIf,
        count_blocks,
        lost_updates,
        update_ratios,
    )
    from halfscope.advice import ScaleAdvice, advise_scale
    from halfscope.analysis import Analysis, analyze
    from halfscope.arithmetic import dot, matmul, round, sum
    from halfscope.dumps.comparison import DumpComparison, compare_dumps
    from halfscope.encoding import Encoded, decode, encode
    from halfscope.explorer import Explorer, explore
    from halfscope.format_comparison import FormatComparison, compare_formats
    from halfscope.replays import Replay, replay
    from halfscope.tables import list_formats, list_orders, list_scalers

    __version__: str

__all__ = [
    "Analysis",
    "BlockCounts",
    "DumpComparison",
    "Encoded",
    "Explorer",
    "FormatComparison",
    "Histogram",
    "LossScaler",
    "Replay",
    "ScaleAdvice",
    "UpdateCounters",
    "WhatIf",
    "advise_scale",
    "analyze",
    "compare_dumps",
    "compare_formats",
    "count_blocks",
    "decode",
    "dot",
    "encode",
    "explore",
    "list_formats",
    "list_orders",
    "list_scalers",
    "lost_updates",
    "matmul",
    "replay",
    "round",
    "sum",
    "update_ratios",
]

# Where a name of __all__ is that is not in the compiled module itself.
_MODULES = {
    "Analysis": "analysis",
    "DumpComparison": "dumps.comparison",
    "Encoded": "encoding",
    "Explorer": "explorer",
    "FormatComparison": "format_comparison",
    "Replay": "replays",
    "ScaleAdvice": "advice",
    "advise_scale": "advice",
    "analyze": "analysis",
    "compare_dumps": "dumps.comparison",
    "compare_formats": "format_comparison",
    "decode": "encoding",
    "dot": "arithmetic",
    "encode": "encoding",
    "explore": "explorer",
    "list_formats": "tables",
    "list_orders": "tables",
    "list_scalers": "tables",
    "matmul": "arithmetic",
    "replay": "replays",
    "round": "arithmetic",
    "sum": "arithmetic",
}


def __getattr__(name: str) -> object:
    if name in old_words.FUNCTIONS:
        raise AttributeError(f"halfscope has no {name} since 0.1; call halfscope.{old_words.FUNCTIONS[name]}")
    if name not in ("__version__", *__all__):
        raise AttributeError(f"module 'halfscope' has no attribute '{name}'")
    try:
        import_module("halfscope._core")
    except ImportError as error:
        words = "is compiled, and was not: run 'pip install .' in the source tree"
        raise ImportError(f"halfscope.{name} {words}") from error
    return getattr(import_module(f"halfscope.{_MODULES.get(name, '_core')}"), name)


def __dir__() -> list[str]:
    imported = [name for name in ("plotting", "report", "results", "testing", "torch") if name in globals()]
    return sorted(["__version__", *__all__, *imported])

"""Formats, orders of sums and loss scalers by name, from the tables of `halfscope list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.results.dataframes import frame

if TYPE_CHECKING:
    import pandas as pd


def list_formats() -> pd.DataFrame:
    """The number formats that have a name; any other is eXmY, such as "e5m7".

    Columns: summary; exponent_bits; mantissa_bits; largest, the largest finite number; smallest_normal; smallest, the
    smallest positive number.
    """
    return frame(_core.format_table()).set_index("format")


def list_orders() -> pd.DataFrame:
    """The orders of `dot`, `matmul` and `sum`; another format may stand for fp16 and fp32.

    Columns: summary; sums, whether `sum` takes it: the others add up products only.
    """
    return frame(_core.order_table()).set_index("order")


def list_scalers() -> pd.DataFrame:
    """The loss scalers by name.

    Columns: summary; needs, what of the gradients they look at; replays, whether a trace holds what they look at;
    options with their defaults.
    """
    return frame(_core.scaler_table()).set_index("scaler")

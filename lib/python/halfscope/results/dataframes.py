"""Data frames of what the compiled module counts; pandas is imported where a frame is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfscope.results.histogram import PER_BINADE, filled

if TYPE_CHECKING:
    import pandas as pd

    from halfscope._core import Histogram


def frame(*arguments: Any, **options: Any) -> pd.DataFrame:
    """pandas.DataFrame(...). Raises ImportError, saying what to install, without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("halfscope: data frames need pandas: pip install pandas") from error
    return pandas.DataFrame(*arguments, **options)


def of_histogram(histogram: Histogram) -> pd.DataFrame:
    """The data frame that `Histogram.to_pandas` returns."""
    first, binades = filled(histogram)
    index = range(first, first + len(binades))
    return frame(binades, columns=list(PER_BINADE), index=index).rename_axis("exponent")

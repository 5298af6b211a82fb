"""Data frames of what the compiled module counts; pandas is imported where a frame is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfscope.results.histogram import PER_BINADE

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
    """What `Histogram.to_pandas` returns."""
    record: dict[str, Any] = histogram.record()
    rows = len(record["counts"]) if histogram.nonzero else 0
    first = record["first_exponent"]
    found = frame({name: record[name][:rows] for name in PER_BINADE}, index=range(first, first + rows), dtype="int64")
    return found.rename_axis("exponent")

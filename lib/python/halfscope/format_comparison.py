"""Formats held against each other over the same tensors: `halfscope.compare_formats`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from operator import index
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.advice import named
from halfscope.explorer import ExplorerPage
from halfscope.reporting import Finding, Report, Reported
from halfscope.results.dataframes import frame
from halfscope.results.json_files import finite_or_none
from halfscope.tensor_files import FilePath, tensors_of

if TYPE_CHECKING:
    import pandas as pd

MAX_ERROR = 0.05  # relative to the norm of the tensor
ELEMENTS = ("elements", "zeros", "nonfinite", "lost", "flushed", "flushed_by_scale", "subnormal", "clipped", "overflow")
SHARED = ("row", "column", "largest", "flushed_up_to", "flushed_by_rows")
COLUMNS = ("median_error", "worst_tenth_error", "largest", "norm_ratio")
BLOCKS = ("blocks", "blocks_at_risk", "clipped_blocks", "overflow_blocks", "zero_blocks", "nonfinite_blocks")


class FormatComparison(Reported):
    """Result of `halfscope.compare_formats`: the cheapest format within the limit, and the counts of each."""

    def __init__(self, compared: _core.FormatComparison, max_error: float, axis: int, rules: bool) -> None:
        self.max_error = max_error
        self.axis = axis
        self._has_rules = rules
        self._compared = compared
        self._sums = compared.formats
        self._tensors = compared.tensors

    @property
    def cheapest(self) -> str | None:
        """The format of fewest bits per element that stays within the limit in every tensor; None where none does.

        The limit is `max_error` for the tensor and for its median row, four times that for its worst row, and twice
        that for the share of its nonzero values that become zero since all rows have one scale. Where a column has
        four times the norm of the median one, the median column has the limit too, and nine tenths of the columns four
        times that. Tensors of one axis are left out, where there are others.
        """
        return self._compared.cheapest

    @property
    def report(self) -> Report:
        """One line: the cheapest format, its bits and its error; or the one that comes closest."""
        words = self._compared.verdict
        change, _, why = words.partition("; " if self.cheapest is None else ": ")
        finding = Finding("format", change, why.rstrip("."), f"counted over {_counted(len(self._tensors), 'tensor')}")
        return Report("compare_formats", (finding,), text=words)

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of the formats, in the order of the request."""
        return tuple(found.name for found in self._sums)

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._tensors)

    def counts(self, tensor: str, format: str) -> _core.BlockCounts:
        """Counts of one tensor under one format. Raises KeyError for a name that was not compared."""
        return self._found(_index(self.tensors, tensor), _index(self.formats, format)).counts

    def explorer(self, title: str | None = None) -> ExplorerPage:
        """The formats under every scale rule, for a page (`.write("formats.html")`) or a notebook (`.widget()`).

        title: the page's heading. Raises ValueError where `compare_formats` was not told to count the rules.
        """
        if not self._has_rules:
            raise ValueError("explorer: the other scale rules were not counted; give compare_formats rules=True")
        tensors, formats = _counted(len(self._tensors), "tensor"), _counted(len(self._sums), "format")
        return ExplorerPage(self._compared, title or f"{tensors} in {formats}")

    def sums(self) -> pd.DataFrame:
        """A row per format, over all tensors. Raises ImportError without pandas.

        bits are those of an element with its scales, relative_error the norm of the error over that of the tensors,
        worst_error the largest one of a tensor or of its median row, worst_tensor its name, worst_row_error the largest
        one of any row.
        """
        rows = [
            [found.name, found.bits_per_element, found.counts.relative_error(), found.worst_error, self._worst(found),
             found.worst_row_error, found.fits, *_numbers(found.counts)]
            for found in self._sums
        ]  # fmt: skip
        columns = [
            "format", "bits", "relative_error", "worst_error", "worst_tensor", "worst_row_error", "fits", *ELEMENTS,
            *BLOCKS,
        ]  # fmt: skip
        return frame(rows, columns=columns).set_index("format")

    def to_pandas(self) -> pd.DataFrame:
        """A row per tensor and format. Raises ImportError without pandas.

        relative_error is the norm of the error over that of the tensor, median_row and worst_row that of its rows; the
        counts are elements and blocks.
        """
        rows = [
            [tensor, format, found.counts.relative_error(), found.median_row_error, found.worst_row_error,
             *_numbers(found.counts)]
            for i, tensor in enumerate(self.tensors)
            for j, format in enumerate(self.formats)
            for found in [self._found(i, j)]
        ]  # fmt: skip
        columns = ["tensor", "format", "relative_error", "median_row", "worst_row", *ELEMENTS, *BLOCKS]
        return frame(rows, columns=columns).set_index(["tensor", "format"])

    def to_dict(self) -> dict:
        """The object that `halfscope formats --json` prints of the same tensors in a file.

        It lacks what only files have: `file` of a tensor, `files`, `skipped` and `not_read` of all.
        """
        return {
            "cheapest": self.cheapest, "verdict": str(self.verdict), "max_error": self.max_error, "axis": self.axis,
            "formats": [self._sum_dict(found) for found in self._sums],
            "tensors": [self._tensor_dict(index) for index in range(len(self._tensors))],
            "left_out": self._compared.left_out, "analysed": len(self._tensors),
        }  # fmt: skip

    def __repr__(self) -> str:
        formats, tensors = _counted(len(self._sums), "format"), _counted(len(self._tensors), "tensor")
        return f"<{type(self).__name__} of {formats} over {tensors}: {self.verdict}>"

    def __str__(self) -> str:
        return self.verdict

    def _found(self, tensor: int, format: int) -> _core.FormatCounts:
        return self._compared.counts(tensor, format)

    def _worst(self, found: _core.FormatSum) -> str | None:
        return None if found.worst is None else self.tensors[found.worst]

    def _sum_dict(self, found: _core.FormatSum) -> dict:
        return {
            "name": found.name, "bits_per_element": found.bits_per_element, "fits": found.fits,
            "worst_tensor": self._worst(found), "worst_relative_error": finite_or_none(found.worst_error),
            "worst_error_db": finite_or_none(_core.decibels(found.worst_error)),
            "worst_row_error": finite_or_none(found.worst_row_error), "most_flushed": found.most_flushed,
            "padded_tensors": found.padded_tensors,
            **_dict(found.counts),
        }  # fmt: skip

    def _tensor_dict(self, index: int) -> dict:
        name, rows, columns = self._tensors[index]
        formats = []
        for j, format in enumerate(self.formats):
            found = self._found(index, j)
            padded = self._compared.padded(index, j)
            numbers = {"name": format, "padded": padded, "scale_log2": found.scale_log2, "rows": _rows(found)}
            if found.shared is not None:
                numbers["shared_scale"] = {key: getattr(found.shared, key) for key in SHARED}
            if found.columns is not None:
                numbers["columns"] = {key: finite_or_none(getattr(found.columns, key)) for key in COLUMNS}
            formats.append({**numbers, **_dict(found.counts)})
        one_axis = self._compared.is_vector(index)
        return {"name": name, "rows": rows, "columns": columns, "one_axis": one_axis, "formats": formats}


def compare_formats(
    tensors: Mapping[str, object] | FilePath | Sequence[FilePath],
    formats: str | Sequence[str],
    *,
    max_error: float = MAX_ERROR,
    axis: int = -1,
    dtype: str | None = None,
    rules: bool = False,
) -> FormatComparison:
    """Counts what each of several formats does to tensors, and names the cheapest one that stays within an error.

    tensors: arrays by name, of any shape, as `analyze` takes them: weights, activations or gradients; or files of them.
    formats: names with blocks and without, "mxfp8_e4m3", "nvfp4", "mxfp4/floor", "block(fp8_e4m3, 1x64, e8m0/rceil)",
        "fp8_e4m3", "bf16". A format without blocks of at most 8 bits gets one power of two for the tensor, the least
        under which nothing overflows.
    max_error: the largest error that a format may make in any tensor and in its median row, norm of the error over
        that of the tensor; its worst row may have four times that, and twice that share of its values may become zero
        since all rows have one scale. Columns are held against it where a few of them have the tensor's norm.
    axis: the one that blocks run along in every tensor. A last block that is not full counts as if zeros followed.
    dtype: the type of the elements of files that do not tell it, as for `analyze`.
    rules: counts every scale rule of the block formats too, with exponents, for `explorer`; each takes about twice as
        long as a format.

    Raises TypeError for what is no dictionary of such arrays, ValueError for an unknown format or none, a negative
    max_error, an axis that a tensor has not, no tensors, arrays in a GPU's memory, and a file that cannot be read.
    """
    tensors = tensors_of(tensors, dtype)
    names, given = _names(formats), named("compare_formats", tensors)
    if not names or not given:
        raise ValueError(f"compare_formats: give at least one {'tensor' if names else 'format'}")
    if not isinstance(max_error, Real) or not max_error >= 0:
        words = f"compare_formats: max_error = {max_error!r}: give the error over the tensor's norm, as in 0.05"
        raise (ValueError if isinstance(max_error, Real) else TypeError)(words)
    try:
        compared = _core.FormatComparison(given, names, index(axis), float(max_error), with_rules=rules)
    except (TypeError, ValueError) as error:
        raise type(error)(f"compare_formats: {error}") from None
    return FormatComparison(compared, max_error, axis, rules)


def _names(formats: str | Sequence[str]) -> list[str]:
    names = [formats] if isinstance(formats, str) else formats
    if isinstance(names, Iterable):
        names = list(names)
        if all(isinstance(name, str) for name in names):
            return names
    raise TypeError(f"compare_formats: formats = {formats!r}: give names, as in ['mxfp8_e4m3', 'nvfp4']")


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise KeyError(f"'{name}' was not compared; there are {', '.join(names)}")
    return names.index(name)


def _numbers(counts: _core.BlockCounts) -> list[int]:
    return [getattr(counts, name) for name in ELEMENTS + BLOCKS]


def _rows(found: _core.FormatCounts) -> dict:
    return {
        "count": found.rows, "median_error": finite_or_none(found.median_row_error),
        "worst_error": finite_or_none(found.worst_row_error), "worst": found.worst_row,
    }  # fmt: skip


def _dict(counts: _core.BlockCounts) -> dict:
    error = counts.relative_error()
    numbers = dict(zip(ELEMENTS + BLOCKS, _numbers(counts)))
    return {"relative_error": finite_or_none(error), "error_db": finite_or_none(_core.decibels(error)), **numbers}


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

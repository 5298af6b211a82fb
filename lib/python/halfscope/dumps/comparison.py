"""`compare_dumps`: the first tensor by which two implementations of one model differ more than roundings explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from halfscope import _core
from halfscope.dumps.dump_file import Dump, dump_of
from halfscope.dumps.tensor_pairs import Pair, pairs_of
from halfscope.formats import Format
from halfscope.reporting import Finding, Report, Reported
from halfscope.results.dataframes import frame
from halfscope.roundoff import relative_error
from halfscope.tensor_files import FilePath
from halfscope.text_tables import aligned

if TYPE_CHECKING:
    import pandas as pd

_BEYOND = 1.5  # times a floor that was measured: two runs of one rounding differ by less
_GROWTH = 4.0  # times the largest error before, without such a floor
_FEWEST_TERMS = 64
_SHOWN = 12
_NEAREST = 3  # tensors that could not be judged
_FORMATS = ("fp8_e4m3", "fp8_e5m2", "bf16", "fp16", "fp32")


@dataclass(frozen=True)
class Judged:
    """A pair, and the error up to which roundings explain it."""

    pair: Pair
    floor: float
    limit: float
    is_weight: bool

    @property
    def is_beyond(self) -> bool:
        return self.pair.error > self.limit

    @property
    def ratio(self) -> float:
        """Error in floors."""
        return self.pair.error / self.floor if self.floor else (0.0 if self.pair.error == 0 else inf)


@dataclass(frozen=True)
class _About:
    """format: of the second dump. order: names of the first dump's computed tensors."""

    format: str
    has_floor: bool
    order: tuple[str, ...]


class DumpComparison(Reported):
    """Result of `compare_dumps`.

    pairs: weights first, then computed tensors in the first dump's order. lone: names of the first dump's tensors
    without a counterpart, then of the second's.
    """

    def __init__(self, pairs: tuple[Judged, ...], lone: tuple[tuple[str, ...], tuple[str, ...]], about: _About) -> None:
        self.pairs, self.lone, self.format = pairs, lone, about.format
        self._has_floor, self._order = about.has_floor, about.order

    @property
    def first(self) -> Judged | None:
        """The first weight, or else the first computed tensor, that roundings do not explain."""
        return next((each for each in self.pairs if each.is_beyond), None)

    @property
    def report(self) -> Report:
        first = self.first
        findings = () if first is None else (self._finding(first),)
        text = "" if findings else self._alike()
        return Report("compare_dumps", findings, self._about(), text, self._table())

    def to_pandas(self) -> pd.DataFrame:
        """A row per pair: name, counterpart, weight, relative_error, floor, limit, beyond. Raises ImportError without
        pandas."""
        rows = [
            [each.pair.name, each.pair.other, each.is_weight, each.pair.error, each.floor, each.limit, each.is_beyond]
            for each in self.pairs
        ]
        columns = ["name", "counterpart", "weight", "relative_error", "floor", "limit", "beyond"]
        return frame(rows, columns=columns).set_index("name")

    def _finding(self, judged: Judged) -> Finding:
        pair, kind = judged.pair, "weight" if judged.is_weight else "tensor"
        before = [each for each in self.pairs if each.is_weight == judged.is_weight]
        before = before[: before.index(judged)]
        counterpart = f" (there {pair.other})" if pair.other != pair.name else ""
        behind = f"; {before[-1].pair.name} before it is not" if not judged.is_weight and before else ""
        change = f"look at {pair.name}{counterpart} first: it is {_number(pair.error)} off{behind}"
        why = f"{_times(judged)} {self._explained(judged)}"
        why += f"; {_counted(len(before), kind)} within theirs before it" if before else "; nothing stands before it"
        if pair.is_by_place:
            why += "; its counterpart was found by its place and shape, not by its numbers"
        others = sum(each.is_beyond for each in self.pairs) - 1
        unjudged = "" if judged.is_weight else self._unjudged(pair.name)
        sure = f"{len(self.pairs)} pairs by their numbers; {others} more beyond, behind it{unjudged}"
        return Finding(kind, change, why, sure, judged)

    def _unjudged(self, name: str) -> str:
        """Computed tensors of the first dump before another one that have no counterpart, the nearest ones."""
        lone = [each for each in self._order[: self._order.index(name)] if each in self.lone[0]]
        return f"; not judged before it, without a counterpart: {', '.join(lone[-_NEAREST:])}" if lone else ""

    def _explained(self, judged: Judged) -> str:
        if judged.is_weight:
            return f"as one rounding to {self.format} makes"
        if self._has_floor:
            return "as the roundings of the first implementation make"
        return f"as {self.format} and the largest error before it let expect"

    def _alike(self) -> str:
        largest = max(self.pairs, key=lambda each: each.ratio, default=None)
        if largest is None:
            return "No tensor of one is one of the other: nothing was compared."
        if all(each.pair.error == 0 for each in self.pairs):
            return f"The {len(self.pairs)} pairs of tensors are equal."
        by = "the roundings of the first implementation" if self._has_floor else f"roundings to {self.format}"
        return (
            f"Nothing differs by more than {by} explain: {len(self.pairs)} pairs, the largest error is "
            f"{_number(largest.pair.error)}, of {largest.pair.name}, {largest.ratio:.2g} times what they make."
        )

    def _about(self) -> str:
        floor = "" if self._has_floor else " Without a floor (the first implementation once more, in the second's "
        floor += "" if self._has_floor else "format: floor=) errors are judged by their growth."
        lone = [f"{len(names)} of the {which}: {', '.join(names[:3])}" for which, names in
                zip(("first", "second"), self.lone) if names]  # fmt: skip
        without = f" Without a counterpart: {'; '.join(lone)}." if lone else ""
        return f"Compared: {sum(each.is_weight for each in self.pairs)} weights and " + (
            f"{sum(not each.is_weight for each in self.pairs)} computed tensors.{floor}{without}"
        )

    def _table(self) -> str:
        """The first that is beyond with those before and behind it, else those with the largest ratios."""
        first = self.first
        if first is None:
            shown = sorted(self.pairs, key=lambda each: -each.ratio)[:_SHOWN]
            shown = [each for each in self.pairs if each in shown]
        else:
            place = self.pairs.index(first)
            shown = list(self.pairs[max(0, place - _SHOWN // 2) : place + _SHOWN // 2])
        rows = [["tensor", "counterpart", "error", "floors", ""]]
        rows += [
            [each.pair.name, each.pair.other, _number(each.pair.error), f"{each.ratio:.2g}", "beyond" * each.is_beyond]
            for each in shown
        ]
        return aligned(rows, right=False) if len(rows) > 1 else ""


def compare_dumps(
    first: Mapping[str, Any] | FilePath | Sequence[FilePath],
    second: Mapping[str, Any] | FilePath | Sequence[FilePath],
    *,
    floor: Mapping[str, Any] | FilePath | Sequence[FilePath] | None = None,
    format: str | None = None,
) -> DumpComparison:
    """Finds the first tensor by which two implementations of one model differ more than roundings explain.

    Tensors are paired by their numbers, so that names may differ: fused q, k, v or gate and up are cut, heads and
    columns in another order, transposed weights and swapped axes are recognised, shards are joined. Weights are judged
    first, then computed tensors in the first dump's order.

    first, second: arrays by name in the order of computing, NumPy's or PyTorch's, or files of them as
        `halfscope.analyze` takes them; `halfscope.torch.dump` writes one. Both are of the same input.
    floor: the first implementation once more, under the same names, in the second's format: its difference from `first`
        is what roundings make, and 1.5 times as much is beyond. Without one, a computed tensor is beyond at 4 times the
        largest error before it.
    format: of the second's numbers; by default the narrowest that holds them.

    Raises TypeError for what is no dump, ValueError for a file that cannot be read, a dump without numbers, an unknown
    format, and a floor without the first one's names.
    """
    one, other = dump_of(first, "first"), dump_of(second, "second")
    rounded = None if floor is None else dump_of(floor, "floor")
    if rounded is not None and not set(rounded.computed) & set(one.computed):
        raise ValueError("compare_dumps: floor has none of the first dump's names; give the first implementation's")
    name = Format.of(format).name if format else format_of(other)
    weights, *lone = pairs_of(one.weights, other.weights)
    computed, *more = pairs_of(one.computed, other.computed)
    judged = [_judged_weight(pair, name) for pair in weights] + _judged(computed, name, rounded)
    without = (tuple(lone[0] + more[0]), tuple(lone[1] + more[1]))
    return DumpComparison(tuple(judged), without, _About(name, rounded is not None, tuple(one.computed)))


def format_of(dump: Dump) -> str:
    """The narrowest of the common formats that holds all computed numbers."""
    arrays = list((dump.computed or dump.weights).values())
    for name in _FORMATS[:-1]:
        if all(_holds(name, array) for array in arrays):
            return name
    return _FORMATS[-1]


def _holds(name: str, array: np.ndarray) -> bool:
    part = np.ascontiguousarray(array.reshape(-1)[: 1 << 16])
    return bool(np.array_equal(np.asarray(_core.round(part, name)), part, equal_nan=True))


def _judged_weight(pair: Pair, format: str) -> Judged:
    """A weight is rounded once at most."""
    unit = 2.0 ** -Format.of(format).precision
    return Judged(pair, unit, unit, is_weight=True)


def _judged(pairs: list[Pair], format: str, floor: Dump | None) -> list[Judged]:
    """Each by its floor, or where it has none by the largest error before it."""
    unit, largest, judgements = 2.0 ** -Format.of(format).precision, 0.0, []
    for pair in pairs:
        measured = None if floor is None else _measured(pair, floor, unit)
        terms = max(pair.expected.shape[-1] if pair.expected.ndim else 1, _FEWEST_TERMS)
        known = measured or max(unit * sqrt(terms) / _GROWTH, largest)
        judgements.append(Judged(pair, known, (_BEYOND if measured else _GROWTH) * known, is_weight=False))
        if not judgements[-1].is_beyond:
            largest = max(largest, pair.error)
    return judgements


def _measured(pair: Pair, floor: Dump, unit: float) -> float | None:
    """Error of the first implementation in the format; None below half a rounding, as of one in the same format."""
    rounded = floor.computed.get(pair.name)
    if rounded is None or rounded.shape != pair.expected.shape:
        return None
    error = relative_error(rounded, pair.expected)
    return error if error > unit / 2 else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s are' if number != 1 else ' is'}"


def _times(judged: Judged) -> str:
    return f"{judged.ratio:.2g} times as much" if judged.ratio < inf else "not finite, or where nothing is rounded, not"


def _number(error: float) -> str:
    return "not finite" if error == inf else f"{error:.2e}"

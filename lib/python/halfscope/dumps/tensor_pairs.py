"""Pairs of equal tensors in two dumps, found by their numbers: names, slices, axes and order of columns may differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd, inf
from typing import NamedTuple

import numpy as np

from halfscope.roundoff import relative_error

_ALIKE = 0.7  # relative error up to which two tensors are taken for one: others are off by 1 or more
_EQUAL = 2.0  # times the least error of a tensor's pairs: these are the same tensor under several names
_CLOSE = 1.2  # errors within this factor are as good; then the nearer place decides
_PROJECTIONS = 16
_SWAPPED, _MERGED, _TRANSPOSED = " (first two axes swapped)", " (heads merged)", " (transposed)"
_FEWEST_ROWS = 4  # by which columns are told apart


class View(NamedTuple):
    """A tensor as a matrix; words: how it was made one."""

    words: str
    matrix: np.ndarray


@dataclass(frozen=True)
class Pair:
    """A tensor of the first dump, and the same one in the second, in the first one's shape."""

    name: str
    other: str  # with its slice
    others: tuple[str, ...]  # names alone
    error: float  # norm of the difference over the norm of the first
    expected: np.ndarray
    actual: np.ndarray
    is_by_place: bool = False  # its numbers are others; its place and shape are the same


def pairs_of(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> tuple[list[Pair], list[str], list[str]]:
    """Pairs in the order of `first`; names of `first` and of `second` without one."""
    by_name = {name: _best(name, place, first, second) for place, name in enumerate(first)}
    _leave_one_each(by_name)
    used = {other for pair in by_name.values() if pair is not None for other in pair.others}
    _pair_by_place(first, second, by_name, used)
    pairs = [pair for pair in by_name.values() if pair is not None]
    lone = [name for name, pair in by_name.items() if pair is None]
    return pairs, lone, [name for name in second if name not in used]


def _leave_one_each(by_name: dict[str, Pair | None]) -> None:
    """A tensor is that of one pair, the nearest; of more where these are equal too, as a module's and its last part's.

    Tensors of neighbouring layers may be alike: where the counterpart of one is not in the dump, it has none.
    """
    least: dict[str, float] = {}
    for pair in by_name.values():
        if pair is not None:
            least[pair.other] = min(pair.error, least.get(pair.other, inf))
    for name, pair in by_name.items():
        if pair is not None and pair.error > _EQUAL * least[pair.other] and pair.error > least[pair.other] + 1e-6:
            by_name[name] = None


def _best(name: str, place: int, first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> Pair | None:
    expected = first[name]
    candidates: list[tuple[float, float, str, str, np.ndarray]] = []
    for other_place, (other, array) in enumerate(second.items()):
        far = abs(place / len(first) - other_place / len(second))
        for error, words, actual in _matches(expected, array):
            candidates.append((error, far, words, other, actual))
    least = min((error for error, *_ in candidates), default=inf)
    if not least <= _ALIKE:
        return _gathered(name, expected, second)
    near = [each for each in candidates if each[0] <= max(least * _CLOSE, least + 1e-12)]
    error, _, words, other, actual = min(near, key=lambda each: (each[1], each[0], len(each[2])))
    return Pair(name, other + words, (other,), error, expected, actual)


def _views(array: np.ndarray) -> Iterator[View]:
    """Matrices whose columns are the last axis, or the heads and the last axis."""
    yield View("", array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1))
    if array.ndim >= 3:
        swapped = np.swapaxes(array, 0, 1)
        yield View(_SWAPPED, swapped.reshape(-1, array.shape[-1]))
    if array.ndim == 4:
        merged = array.transpose(0, 2, 1, 3)
        yield View(_MERGED, merged.reshape(array.shape[0] * array.shape[2], -1))
    if array.ndim == 2 and min(array.shape) > 1:
        yield View(_TRANSPOSED, array.T)


def _matches(expected: np.ndarray, array: np.ndarray) -> Iterator[tuple[float, str, np.ndarray]]:
    """Errors of ways to take `expected` from `array`, their words, and the tensor so taken."""
    if expected.shape == array.shape:
        yield relative_error(array, expected), "", array
    if array.size < expected.size or not np.isfinite(expected).all():
        return
    for own in _views(expected):
        for other in _views(array):
            is_one = own.words == other.words and own.words not in ("", _TRANSPOSED)  # as without the change
            if is_one or own.matrix.shape[0] != other.matrix.shape[0]:
                continue
            for columns, words in _columns(own.matrix, other.matrix):
                actual = other.matrix[:, columns]
                if actual.shape == own.matrix.shape:
                    yield (
                        relative_error(actual, own.matrix),
                        _words(words, own, other, array.ndim == 1),
                        _as(expected, own, actual),
                    )


def _words(columns: str, own: View, other: View, is_vector: bool) -> str:
    """Two transposed matrices have rows for columns, and a vector has one axis."""
    if own.words == other.words == _TRANSPOSED or is_vector:
        return columns.replace("..., ", "")
    return columns + (other.words or own.words)


def _as(expected: np.ndarray, view: View, matrix: np.ndarray) -> np.ndarray:
    """The matrix in the shape of the tensor whose view it is like."""
    if view.words == _TRANSPOSED:
        return matrix.T
    if view.words == _MERGED:
        batch, heads, length, width = expected.shape
        return matrix.reshape(batch, length, heads, width).transpose(0, 2, 1, 3)
    if view.words:
        return np.swapaxes(matrix.reshape(np.swapaxes(expected, 0, 1).shape), 0, 1)
    return matrix.reshape(expected.shape)


def _columns(expected: np.ndarray, matrix: np.ndarray) -> Iterator[tuple[np.ndarray | slice, str]]:
    """Columns of `matrix` that may be those of `expected`: all, a slice, or each by its numbers."""
    width, whole = expected.shape[1], matrix.shape[1]
    if width > whole:
        return
    if width == whole:
        yield slice(None), ""
    own, other = _sketch(expected), _sketch(matrix)
    if width < whole:
        step = gcd(width, whole)
        starts = np.arange(0, whole - width + 1, step)
        errors = [float(np.linalg.norm(other[:, start : start + width] - own)) for start in starts]
        start = int(starts[int(np.argmin(errors))])
        yield slice(start, start + width), f"[..., {start}:{start + width}]"
    if expected.shape[0] >= _FEWEST_ROWS:
        nearest = _nearest(own, other)
        if len(np.unique(nearest)) == width and not _is_run(nearest):
            yield nearest, f"[..., {_words_of_columns(nearest)}]"


def _sketch(matrix: np.ndarray) -> np.ndarray:
    """Few numbers of each column: sums with random signs, the same ones for the same number of rows."""
    rows = matrix.shape[0]
    signs = np.random.default_rng(rows).choice([-1.0, 1.0], size=(min(_PROJECTIONS, rows), rows))
    if rows <= _PROJECTIONS:
        signs = np.eye(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.nan_to_num(signs @ matrix.astype(np.float64))


def _nearest(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """For each column of `own` the column of `other` at the least distance."""
    parts = []
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.square(other).sum(0)
        for begin in range(0, own.shape[1], 1024):
            part = own[:, begin : begin + 1024]
            parts.append(np.argmin(np.nan_to_num(size[None] - 2 * part.T @ other, nan=inf), axis=1))
    return np.concatenate(parts)


def _is_run(columns: np.ndarray) -> bool:
    return bool((np.diff(columns) == 1).all())


def _words_of_columns(columns: np.ndarray) -> str:
    """ "0, 2, 4, ...", as far as one reads."""
    return ", ".join(map(str, columns[:3])) + (", ..." if len(columns) > 3 else "")


def _gathered(name: str, expected: np.ndarray, second: dict[str, np.ndarray]) -> Pair | None:
    """A tensor whose columns lie in several of the second dump, as shards do: all columns of each of them."""
    if expected.ndim < 2 or not np.isfinite(expected).all():
        return None
    smaller = {other: array for other, array in second.items() if array.ndim >= 2 and array.size < expected.size}
    for own in _views(expected):
        for words in ("", _SWAPPED, _MERGED, _TRANSPOSED):
            parts = [
                (other, view.matrix)
                for other, array in smaller.items()
                for view in _views(array)
                if view.words == words and view.matrix.shape[0] == own.matrix.shape[0] >= _FEWEST_ROWS
            ]
            pair = _in_order(name, expected, own, parts) or _joined(name, expected, own, parts)
            if pair is not None:
                return pair
    return None


def _in_order(name: str, expected: np.ndarray, own: View, parts: list[tuple[str, np.ndarray]]) -> Pair | None:
    """Parts behind each other, as they stand in the second dump."""
    width = own.matrix.shape[1]
    for begin in range(len(parts)):
        ends = np.cumsum([matrix.shape[1] for _, matrix in parts[begin:]])
        count = int(np.searchsorted(ends, width)) + 1
        if count > len(ends) or count < 2 or ends[count - 1] != width:
            continue
        used = parts[begin : begin + count]
        actual = np.concatenate([matrix for _, matrix in used], axis=1)
        error, names = relative_error(actual, own.matrix), tuple(other for other, _ in used)
        if error <= _ALIKE and len(set(names)) == count:
            return Pair(name, " + ".join(names), names, error, expected, _as(expected, own, actual))
    return None


def _joined(name: str, expected: np.ndarray, own: View, parts: list[tuple[str, np.ndarray]]) -> Pair | None:
    """Parts found column by column."""
    if len(parts) < 2:
        return None
    whole = np.concatenate([matrix for _, matrix in parts], axis=1)
    owners = np.repeat(np.arange(len(parts)), [matrix.shape[1] for _, matrix in parts])
    columns = _nearest(_sketch(own.matrix), _sketch(whole))
    counts = np.bincount(owners[columns], minlength=len(parts))
    used = [place for place in np.unique(owners[columns]) if counts[place] == parts[place][1].shape[1]]
    if len(np.unique(columns)) < len(columns) or sum(counts[used]) < len(columns):
        return None
    error = relative_error(whole[:, columns], own.matrix)
    if not error <= _ALIKE:
        return None
    names = tuple(parts[place][0] for place in used)
    return Pair(name, " + ".join(names), names, error, expected, _as(expected, own, whole[:, columns]))


def _pair_by_place(
    first: dict[str, np.ndarray], second: dict[str, np.ndarray], by_name: dict[str, Pair | None], used: set[str]
) -> None:
    """Tensors whose numbers are in no other, with those of the same shape between the same neighbours, or by name."""
    free = [name for name in second if name not in used]
    for name, pair in by_name.items():
        if pair is not None:
            continue
        shaped = [each for each in free if second[each].shape == first[name].shape]
        other = name if name in shaped else _between(name, shaped, list(first), list(second), by_name)
        if other:
            free.remove(other)
            used.add(other)
            error = relative_error(second[other], first[name])
            by_name[name] = Pair(name, other, (other,), error, first[name], second[other], is_by_place=True)


def _between(
    name: str, shaped: Iterable[str], first: list[str], second: list[str], by_name: dict[str, Pair | None]
) -> str:
    """The first of `shaped` behind the counterpart of the tensor before, and in front of that of the next one."""
    place = first.index(name)
    before = [second.index(pair.others[-1]) for each in first[:place] if (pair := by_name[each]) is not None]
    behind = [second.index(pair.others[0]) for each in first[place + 1 :] if (pair := by_name[each]) is not None]
    low = max(before, default=-1)
    high = min((each for each in behind if each > low), default=inf)
    return next((each for each in shaped if low < second.index(each) < high), "")

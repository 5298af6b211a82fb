"""Integer program of exponents: the fewest binades moved that keep every tensor in its range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from halfscope.torch.rescale.exponents import Exponent, System

MOST = 60  # binades that one tensor is moved
SECONDS = 60.0
SMALL = 64.0  # cost of a binade that half of a tensor's numbers lie below the normal ones, beside 1 of a moved one


class ExponentProgram:
    """A system of equations and ranges, as rows of an integer program. share: which of the lower ends hold."""

    def __init__(self, system: System, share: int) -> None:
        self._system, self._share = system, share
        self._costs = np.array([unknown.cost for unknown in system.unknowns])

    def solve(self) -> list[int] | None:
        """An exponent for each unknown, their weighted magnitudes least; None without a solution.

        Raises ImportError without SciPy.
        """
        size = len(self._costs)
        if not size:
            return None if any(self._is_out(key) for key in self._system.ranges) else []
        rows, ends = self._rows(None)
        small = [(key, kept.wanted) for key, kept in self._system.ranges.items() if key and kept.wanted > -MOST]
        for place, (key, wanted) in enumerate(small):
            rows.append([*key, (2 * size + place, 1)])
            ends.append((wanted, np.inf))
        cost = np.concatenate([np.zeros(size), self._costs, np.full(len(small), SMALL)])
        found = _minimum(cost, rows, ends, size)
        return None if found is None else [round(value) for value in found[:size]]

    def out_of_range(self, without: Exponent | None = None) -> list[Exponent]:
        """Ranges that must be left, where there is no solution, those of earlier operations first.

        without: an equation that is left out. The binades beyond all ranges are the fewest.
        """
        empty = [key for key, kept in self._system.ranges.items() if kept.least(self._share) > kept.highest]
        if empty or not len(self._costs):
            return empty or [key for key in self._system.ranges if self._is_out(key)]
        size, count = len(self._costs), len(self._system.ranges)
        rows, ends = self._rows(without)
        slack = 2 * size
        for place, index in enumerate(range(len(rows) - 2 * size - count, len(rows) - 2 * size)):
            rows[index] = [*rows[index], (slack + 2 * place, 1), (slack + 2 * place + 1, -1)]
        cost = np.concatenate([np.zeros(size), self._costs * 1e-4, np.ones(2 * count)])
        found = _minimum(cost, rows, ends, size)
        if found is None:
            return []
        beyond = found[slack:].reshape(count, 2).sum(1)
        out = [key for key, value in zip(self._system.ranges, beyond) if value > 0.5]
        return sorted(out, key=lambda key: self._system.ranges[key].at)

    def _is_out(self, key: Exponent) -> bool:
        kept = self._system.ranges[key]
        return not key and not kept.least(self._share) <= 0 <= kept.highest

    def _rows(self, without: Exponent | None) -> tuple[list[Sequence[tuple[int, int]]], list[tuple[float, float]]]:
        """Equations, ranges, and two rows for the magnitude of each unknown."""
        zero = [key for key in self._system.zero if key != without]
        size = len(self._costs)
        rows: list[Sequence[tuple[int, int]]] = [*zero, *self._system.ranges]
        ends = [(0.0, 0.0)] * len(zero)
        ends += [(kept.least(self._share), kept.highest) for kept in self._system.ranges.values()]
        for unknown in range(size):
            rows += [((unknown, 1), (size + unknown, -1)), ((unknown, 1), (size + unknown, 1))]
            ends += [(-np.inf, 0.0), (0.0, np.inf)]
        return rows, ends


def _minimum(
    cost: Any, rows: Iterable[Sequence[tuple[int, int]]], ends: list[tuple[float, float]], whole: int
) -> Any | None:
    """whole: how many of the numbers, the first, are integers of either sign."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix
    except ImportError as error:
        raise ImportError("rescale: the integer program needs SciPy; pip install scipy") from error
    entries = [(row, column, number) for row, sums in enumerate(rows) for column, number in sums]
    places, columns, numbers = zip(*entries)
    matrix = csr_matrix((numbers, (places, columns)), shape=(len(ends), len(cost)))
    low, high = (np.array(each, dtype=float) for each in zip(*ends))
    is_whole = np.arange(len(cost)) < whole
    found = milp(
        cost, constraints=LinearConstraint(matrix, low, high), integrality=is_whole.astype(int),
        bounds=Bounds(np.where(is_whole, -MOST, 0), np.where(is_whole, MOST, np.inf)),
        options={"mip_rel_gap": 0.0, "time_limit": SECONDS},
    )  # fmt: skip
    return found.x

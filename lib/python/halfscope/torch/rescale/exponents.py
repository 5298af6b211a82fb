"""Exponents of tensors as sums of unknown integers, the equations between them, and the ranges that they keep to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

Exponent = tuple[tuple[int, int], ...]
"""A sum of unknowns, by number, times whole factors: the new tensor is 2 to this power times the old one."""
UNMOVED: Exponent = ()  # the exponent 0


def plus(left: Exponent | None, right: Exponent | None, factor: int = 1) -> Exponent | None:
    """left + factor * right; None is the exponent of a tensor that every power of two leaves as it is."""
    if right is None:
        return left
    found = dict(left or ())
    for unknown, number in right:
        found[unknown] = found.get(unknown, 0) + factor * number
    return tuple(sorted((unknown, number) for unknown, number in found.items() if number))


@dataclass(frozen=True)
class Unknown:
    """The exponent of a parameter or buffer, of a module's attribute, or half of an even one."""

    name: str
    cost: float  # one binade's


@dataclass
class Range:
    """Least and greatest exponent of tensors that share it, with the tensor that each end is of.

    lowest: with 1 % of a weight's numbers below FP16's normal ones, and with half of them; a weight that has more may
    stay. wanted: with half of the numbers normal, at a cost.
    """

    highest: float = float("inf")
    lowest: tuple[float, float] = (-float("inf"), -float("inf"))
    wanted: float = -float("inf")
    largest: str = ""
    smallest: str = ""
    at: int = 0  # number of the operation that the tensors at the ends are of

    def least(self, share: int) -> float:
        """The end that holds: a tensor that has more small numbers may stay."""
        return min(self.lowest[share], 0)

    def narrow(self, other: Range) -> None:
        if other.highest < self.highest:
            self.highest, self.largest, self.at = other.highest, other.largest, other.at
        if max(other.lowest[1], other.wanted) > max(self.lowest[1], self.wanted):
            self.smallest = other.smallest
        self.wanted = max(self.wanted, other.wanted)
        strict, loose = zip(self.lowest, other.lowest)
        self.lowest = max(strict), max(loose)


@dataclass
class System:
    """Unknowns, sums of them that are zero with the operation that asks for it, and ranges of sums."""

    unknowns: list[Unknown] = field(default_factory=list)
    zero: dict[Exponent, str] = field(default_factory=dict)
    ranges: dict[Exponent, Range] = field(default_factory=dict)
    operations: int = 0  # that have been entered

    def new(self, name: str, cost: float) -> Exponent:
        self.unknowns.append(Unknown(name, cost))
        return ((len(self.unknowns) - 1, 1),)

    def set_zero(self, exponent: Exponent | None, operation: str) -> None:
        if exponent:
            self.zero.setdefault(exponent, operation)

    def set_equal(self, exponents: Iterable[Exponent | None], operation: str) -> Exponent | None:
        """The exponent that all of them have."""
        known = [exponent for exponent in exponents if exponent is not None]
        for other in known[1:]:
            self.set_zero(plus(known[0], other, -1), operation)
        return known[0] if known else None

    def half(self, exponent: Exponent | None, operation: str) -> Exponent | None:
        """Half of an exponent, which is even."""
        if exponent is None:
            return None
        if all(number % 2 == 0 for _, number in exponent):
            return tuple((unknown, number // 2) for unknown, number in exponent)
        half = self.new(f"half of {operation}", 0.0)
        self.set_zero(plus(exponent, half, -2), operation)
        return half

    def keep(self, exponent: Exponent | None, range: Range) -> None:
        if exponent is not None:
            self.ranges.setdefault(exponent, Range(at=self.operations)).narrow(replace(range, at=self.operations))

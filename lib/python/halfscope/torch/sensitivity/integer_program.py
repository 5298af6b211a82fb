"""Integer program of a mixture: one format for each group, under a limit on prices, as bits, or on nats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from halfscope.torch.sensitivity.samples import Floats

SCALE = 1e3  # the largest number of a row; the solver's tolerances are absolute


@dataclass(frozen=True)
class Choices:
    """By group, its formats with their nats, and with their prices: bits, or time, of all its elements."""

    nats: Mapping[str, Mapping[str, float]]
    prices: Mapping[str, Mapping[str, float]]

    def solve(self, limit: float, on: str = "prices") -> dict[str, str] | None:
        """The format of each group whose sum of the other number is least; None where none is within the limit.

        on: "prices" or "nats", which of the two the limit is on. Raises ImportError without SciPy.
        """
        keys = [(group, format) for group, formats in self.nats.items() for format in formats]
        rows = {name: _row(getattr(self, name), keys) for name in ("nats", "prices")}
        other = "nats" if on == "prices" else "prices"
        chosen = _solved(rows[other], rows[on], limit, _one_of_each(keys))
        return None if chosen is None else dict(key for key, is_in in zip(keys, chosen) if is_in > 0.5)

    def total(self, mixture: Mapping[str, str], of: str) -> float:
        """Sum of a mixture's nats or prices."""
        numbers = getattr(self, of)
        return float(sum(numbers[group][format] for group, format in mixture.items()))


def _row(numbers: Mapping[str, Mapping[str, float]], keys: list[tuple[str, str]]) -> Floats:
    return np.array([numbers[group][format] for group, format in keys])


def _one_of_each(keys: list[tuple[str, str]]) -> Floats:
    """(groups, keys): 1 for each key of a group."""
    groups = list(dict.fromkeys(group for group, _ in keys))
    return np.array([[float(group == own) for own, _ in keys] for group in groups])


def _solved(aim: Floats, limited: Floats, limit: float, groups: Floats) -> Floats | None:
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError as error:
        raise ImportError("choose: the integer program needs SciPy; pip install scipy") from error
    largest = max(float(np.abs(limited).max()), abs(limit), 1e-300) / SCALE
    constraints = [
        LinearConstraint(groups, 1, 1),
        LinearConstraint(limited[None] / largest, -np.inf, limit / largest * (1 + 1e-12)),
    ]
    cost = aim / max(float(np.abs(aim).max()), 1e-300) * SCALE + limited / largest * 1e-7  # the cheaper among equals
    found = milp(cost, constraints=constraints, integrality=np.ones(len(aim)), bounds=Bounds(0, 1),
                 options={"mip_rel_gap": 0.0})  # fmt: skip
    return None if found.x is None else np.asarray(found.x)

"""Searches over generated answers: the smallest number that holds, and members that are needed."""

from __future__ import annotations

import random

import pytest

from halfscope.subset_search import smallest, without_needless


@pytest.mark.parametrize("seed", range(200))
def test_the_smallest_number_is_found_from_wherever_it_is_sought(seed: int) -> None:
    draw = random.Random(seed)
    low = draw.randint(-30, 30)
    high = low + draw.randint(0, 60)
    wanted, near = draw.randint(low, high), draw.choice([None, draw.randint(low, high)])
    asked: list[int] = []

    def holds(at: int) -> bool:
        asked.append(at)
        return at >= wanted

    assert smallest(low, high, holds, near) == wanted
    assert all(low <= at < high for at in asked)
    assert len(asked) <= 2 * (high - low).bit_length() + 3
    if near == wanted:
        assert len(asked) <= 2


@pytest.mark.parametrize("seed", range(200))
def test_needed_members_alone_are_left(seed: int) -> None:
    draw = random.Random(seed)
    members = list(range(draw.randint(1, 40)))
    needed = set(draw.sample(members, draw.randint(1, min(4, len(members)))))
    assert set(without_needless(members, lambda left: needed <= left, 1000)) == needed
    assert needed <= set(without_needless(members, lambda left: needed <= left, 5))

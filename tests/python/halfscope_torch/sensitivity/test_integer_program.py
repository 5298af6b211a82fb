"""The integer program of a mixture beside a search of all mixtures."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from halfscope.torch.sensitivity.integer_program import Choices

pytestmark = pytest.mark.torch

FORMATS = ("a", "b", "c")


def random_choices(seed: int) -> Choices:
    """Five groups whose scores span six decades, some of them 0, below 0, or of a format that is missing."""
    random = Random(seed)
    formats = {f"g{at}": random.sample(FORMATS, random.randint(1, 3)) for at in range(5)}
    nats = {group: {f: random.choice((0, 1, 1, 1, -0.1)) * 10 ** random.uniform(-6, 0) for f in own}
            for group, own in formats.items()}  # fmt: skip
    bits = {group: {f: random.randint(1, 9) * 64.0 for f in own} for group, own in formats.items()}
    return Choices(nats, bits)


def every_mixture(choices: Choices) -> list[dict[str, str]]:
    return [dict(zip(choices.nats, each)) for each in product(*(choices.nats[group] for group in choices.nats))]


@pytest.mark.parametrize("on", ["prices", "nats"])
def test_the_solution_is_the_best_of_all_mixtures(on: str) -> None:
    other = "nats" if on == "prices" else "prices"
    for seed in range(60):
        choices, random = random_choices(seed), Random(1000 + seed)
        every = every_mixture(choices)
        limit = choices.total(random.choice(every), on)
        best = min(choices.total(each, other) for each in every if choices.total(each, on) <= limit + 1e-12)
        found = choices.solve(limit, on)
        assert found is not None and choices.total(found, on) <= limit * (1 + 1e-9) + 1e-9
        assert choices.total(found, other) == pytest.approx(best, rel=1e-5, abs=1e-6)


def test_no_mixture_within_the_limit() -> None:
    choices = random_choices(0)
    least = min(choices.total(each, "prices") for each in every_mixture(choices))
    assert choices.solve(least) is not None and choices.solve(least - 1) is None


def equal_choices(seed: int, on: str) -> Choices:
    """Five groups whose formats have one of two numbers of what is least, so that many mixtures are equally good."""
    random, groups = Random(seed), [f"g{at}" for at in range(5)]
    equal = {group: {format: random.choice((1.0, 2.0)) for format in FORMATS} for group in groups}
    limited = {group: {format: float(random.randint(1, 9)) for format in FORMATS} for group in groups}
    return Choices(equal, limited) if on == "prices" else Choices(limited, equal)


@pytest.mark.parametrize("on", ["prices", "nats"])
def test_the_cheapest_of_equal_mixtures(on: str) -> None:
    other = "nats" if on == "prices" else "prices"
    for seed in range(40):
        choices = equal_choices(seed, on)
        every = every_mixture(choices)
        limit = choices.total(Random(1000 + seed).choice(every), on)
        within = [each for each in every if choices.total(each, on) <= limit]
        best = min(choices.total(each, other) for each in within)
        found = choices.solve(limit, on)
        assert found is not None and choices.total(found, other) == best
        assert choices.total(found, on) == min(choices.total(e, on) for e in within if choices.total(e, other) == best)

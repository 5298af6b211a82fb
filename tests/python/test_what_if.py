"""halfscope.WhatIf.of_binades beside NumPy's float16, element by element."""

from __future__ import annotations

import numpy as np
import pytest

import halfscope
from halfscope.results.histogram import PER_BINADE, RecordedHistogram, filled
from synthetic import unscaled

EDGES = [2.0**-25, 2.0**-24, 2.0**-15, 2.0**-14 * (1 - 2.0**-11), 2.0**-14, 1.0, 65504, 65520, 65536]


def samples() -> np.ndarray:
    """float64 of either sign from 2^-60 to 2^40, and the edges of FP16 with what lies beside them."""
    random = np.random.default_rng(7)
    spread = random.uniform(1, 2, 20_000) * np.exp2(random.integers(-60, 40, 20_000))
    beside = [np.nextafter(EDGES, side) for side in (0, np.inf)]
    values = np.concatenate([spread, EDGES, *beside])
    return values * random.choice([-1, 1], len(values))


def count(values: np.ndarray) -> tuple[int, np.ndarray]:
    """The first exponent, and the counts (binades, 4) from it on: all, 2^e alone, and what rounds up to 2^(e+1)."""
    fractions, exponents = np.frexp(np.abs(values))
    significands, exponents = 2 * fractions, exponents - 1
    rules = (significands >= 1, significands == 1, significands >= 2 - 2.0**-11, significands >= 2 - 2.0**-10)
    table = np.zeros((exponents.max() - exponents.min() + 1, 4), np.int64)
    for column, rule in enumerate(rules):
        np.add.at(table[:, column], exponents[rule] - exponents.min(), 1)
    return int(exponents.min()), table


@pytest.mark.parametrize("log2_scale", [-30, -3, 0, 1, 11, 24, 40])
def test_counts_of_binades_are_those_of_rounding(log2_scale: int) -> None:
    values = samples() * 2.0**-log2_scale
    for shift in (0, log2_scale, log2_scale - 1):
        with np.errstate(over="ignore"):
            halves = np.abs((values * 2.0**shift).astype(np.float16))
        found = halfscope.WhatIf.of_binades(*count(values), shift)
        assert (found.scale_log2, found.elements, found.nonzero) == (shift, len(values), len(values))
        assert found.flushed == (halves == 0).sum()
        assert found.subnormal == ((halves > 0) & (halves < 2.0**-14)).sum()
        assert found.overflow == np.isinf(halves).sum()


@pytest.mark.parametrize("format", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "e3m2"])
def test_binades_of_a_histogram_say_what_it_says(format: str) -> None:
    histogram = halfscope.Histogram(samples().astype(np.float32), format=format)
    for log2_scale in (-20, 0, 9):
        expected = histogram.what_if(2.0**log2_scale)
        assert halfscope.WhatIf.of_binades(-149, histogram.binades(), log2_scale, format=format) == expected


@pytest.mark.parametrize("moved", [-300, -100, 100, 300])
def test_binades_outside_of_float32(moved: int) -> None:
    first, table = count(samples())
    columns = {name: table[:, column] for column, name in enumerate(PER_BINADE)}
    recorded = RecordedHistogram(first, **columns, zeros=3, nans=1)
    assert recorded.shifted(moved).outcome(-moved) == recorded.outcome()
    assert recorded.outcome(-1000).flushed == recorded.outcome(1000).overflow == len(samples()) / recorded.elements


def test_a_record_has_the_counts_of_the_table() -> None:
    histogram = halfscope.Histogram(samples().astype(np.float32))
    record, (first, binades) = histogram.record(), filled(histogram)
    assert record["first_exponent"] == first
    assert [record[name] for name in PER_BINADE] == binades.T.tolist()
    recorded = unscaled({"step": 1, "scale": 1024.0, **record})
    assert recorded.first_exponent == first - 10 and recorded.elements == histogram.elements
    assert filled(halfscope.Histogram())[1].shape == (0, 4)
    with pytest.raises(ValueError, match="it lacks 'zeros'"):
        unscaled({key: value for key, value in record.items() if key != "zeros"})


def test_tables_that_are_none() -> None:
    good = np.array([[3, 1, 0, 0]])
    assert halfscope.WhatIf.of_binades(0, good[:0]).elements == 0
    for table, message in (
        (good[0], r"of shape \(binades, 4\)"),
        (np.zeros((1, 3), np.int64), r"of shape \(binades, 4\)"),
        (good.astype(np.float64), "give an int64 array"),
        (np.array([[3, 4, 0, 0]]), r"binades\[0, 1\]: 4 of 3 elements"),
        (np.array([[3, 0, 0, 0], [-1, 0, 0, 0]]), r"binades\[1, 0\]: -1 of -1"),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            halfscope.WhatIf.of_binades(0, table)
        assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="e9"):
        halfscope.WhatIf.of_binades(0, good, format="e9")

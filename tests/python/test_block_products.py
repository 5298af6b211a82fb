"""halfscope.matmul on block-scaled tensor cores, beside exact sums of fractions cut off as the units cut them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import halfscope

# A unit has products a step, products a term, and bits below the largest exponent.
UNITS = {"mxf8f6f4": (32, 1, 25), "mxf4": (64, 16, 35), "mxf4nvf4": (64, 16, 35)}
LEAST_EXPONENT = {"mxfp8_e4m3": -6, "mxfp8_e5m2": -14, "mxfp6_e2m3": 0, "mxfp4": 0, "nvfp4": 0}
CASES = [
    ("mxf8f6f4", "mxfp8_e4m3", "mxfp8_e4m3"), ("mxf8f6f4", "mxfp8_e5m2", "mxfp6_e2m3"), ("mxf8f6f4", "mxfp4", "mxfp4"),
    ("mxf4", "mxfp4", "mxfp4"), ("mxf4nvf4", "nvfp4", "nvfp4"), ("mxf4nvf4", "nvfp4/four_over_six_mae_448", "nvfp4"),
]  # fmt: skip


def exponent(x: float, least: int) -> int:
    return max(math.frexp(x)[1] - 1, least)


def cut(value: Fraction, bits: int) -> Fraction:
    """Toward zero, to a multiple of 2^bits."""
    unit = Fraction(2) ** bits
    return math.trunc(value / unit) * unit


def cut_to_fp32(value: Fraction) -> Fraction:
    return value if value == 0 else cut(value, exponent(float(value), -126) - 23)


class Row:
    """A row in a block format: elements and scales as numbers, and the exponents that they count as."""

    def __init__(self, encoded: halfscope.encoding.Encoded, name: str) -> None:
        """`encoded`: with the scales of this row alone."""
        self.format, self.tensor_scale = name.split("/")[0], encoded.tensor_scale or 1.0
        block = 16 if self.format == "nvfp4" else 32
        element = {"mxfp4": "fp4_e2m1", "nvfp4": "fp4_e2m1"}.get(self.format, self.format.replace("mx", ""))
        scale = "ue4m3" if self.format == "nvfp4" else "e8m0"
        codes = halfscope.decode(halfscope.encoding.Encoded(element, encoded.codes))
        self.elements = [float(x) for x in codes]
        scales = [2.0 ** (int(code) - 127) for code in encoded.scales]
        if scale == "ue4m3":
            scales = [float(x) for x in halfscope.decode(halfscope.encoding.Encoded("fp8_e4m3", encoded.scales))]
        self.scales = [scales[i // block] for i in range(len(self.elements))]
        self.exponents = [exponent(x, LEAST_EXPONENT[self.format]) for x in self.elements]
        least = -6 if scale == "ue4m3" else -127
        self.scale_exponents = [exponent(x, least) for x in self.scales]


def row_of(values: np.ndarray, name: str) -> Row:
    return Row(halfscope.encode(values, name), name)


def rows_of_tiles(matrix: np.ndarray) -> list[Row]:
    """Rows of a matrix in nvfp4_16x16, each with the scales of the tiles that it crosses."""
    encoded = halfscope.encode(matrix, "nvfp4_16x16")
    return [
        Row(replace(encoded, codes=encoded.codes[row], scales=encoded.scales[row // 16]), "nvfp4")
        for row in range(len(matrix))
    ]


def reference(a: Row, b: Row, unit: str) -> float:
    products, group, bits = UNITS[unit]
    total = Fraction(0)
    for first in range(0, len(a.elements), products):
        terms: list[tuple[Fraction, int]] = [(total, exponent(float(total), -126))] if total else []
        for start in range(first, min(first + products, len(a.elements)), group):
            places = range(start, min(start + group, len(a.elements)))
            value = sum(
                Fraction(a.elements[i]) * Fraction(b.elements[i]) * Fraction(a.scales[i]) * Fraction(b.scales[i])
                for i in places
            )
            at = a.scale_exponents[start] + b.scale_exponents[start]
            if value:
                terms.append((Fraction(value), at + (a.exponents[start] + b.exponents[start] if group == 1 else 0)))
        if terms:
            largest = max(at for _, at in terms)
            total = cut_to_fp32(sum((cut(value, largest - bits) for value, _ in terms), Fraction(0)))
    scale = np.float32(a.tensor_scale) * np.float32(b.tensor_scale)
    return float(np.float32(float(total)) * scale)


@pytest.mark.parametrize("unit, left, right", CASES)
def test_products_are_sums_that_are_cut_as_the_unit_cuts_them(unit: str, left: str, right: str) -> None:
    random = np.random.default_rng(3)
    a = (random.normal(size=(1, 200)) * 2.0 ** random.integers(-6, 6, (1, 200))).astype(np.float32)
    b = (random.normal(size=(1, 200)) * 2.0 ** random.integers(-6, 6, (1, 200))).astype(np.float32)
    product = halfscope.matmul(a, b.T, operands=(left, right), order=unit)
    assert product.shape == (1, 1) and product.dtype == np.float32
    assert product[0, 0] == reference(row_of(a[0], left), row_of(b[0], right), unit)


@pytest.mark.parametrize("rows, depth, columns", [(1, 16, 1), (3, 200, 17), (33, 70, 5)])
def test_tiles_give_each_row_the_scales_that_it_crosses(rows: int, depth: int, columns: int) -> None:
    random = np.random.default_rng(rows)
    a, b = (
        (random.normal(size=(count, depth)) * 2.0 ** random.integers(-6, 6, (count, depth))).astype(np.float32)
        for count in (rows, columns)
    )
    in_tiles = rows_of_tiles(b)
    both = halfscope.matmul(a, b.T, operands="nvfp4_16x16", order="mxf4nvf4")
    for i, left in enumerate(rows_of_tiles(a)):
        for j, right in enumerate(in_tiles):
            assert both[i, j] == reference(left, right, "mxf4nvf4")
    mixed = halfscope.matmul(a[:1], b.T, operands=("nvfp4", "nvfp4_16x16"), order="mxf4nvf4")
    for j, right in enumerate(in_tiles):
        assert mixed[0, j] == reference(row_of(a[0], "nvfp4"), right, "mxf4nvf4")


def test_sums_lose_bits_that_fp32_keeps() -> None:
    """A unit that kept every bit would pass the test above on short rows."""
    a, b = np.random.default_rng(0).normal(size=(2, 40, 512)).astype(np.float32)
    unit = halfscope.matmul(a, b.T, operands="mxfp8_e4m3", order="mxf8f6f4")
    exact = halfscope.round(a, "mxfp8_e4m3").astype(np.float64) @ halfscope.round(b, "mxfp8_e4m3").astype(np.float64).T
    error = np.abs(unit - exact)
    assert 0 < error.max() < 1e-3 * np.abs(exact).max()


def test_leading_axes_and_one_row() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 3, 64)).astype(np.float32), np.eye(64, 5, dtype=np.float32)
    product = halfscope.matmul(a, b, operands="mxfp4", order="mxf4")
    assert product.shape == (2, 3, 5)
    assert np.array_equal(product, halfscope.round(a, "mxfp4")[..., :5])
    assert np.array_equal(halfscope.matmul(a[1, 2], b, operands="mxfp4", order="mxf4"), product[1, 2])


@pytest.mark.parametrize(
    "options, says",
    [
        ({"order": "mxf4"}, "matmul: mxf4 multiplies blocks; give operands, as operands='mxfp4'"),
        ({"order": "mxf4", "operands": "nvfp4"}, "scale"),
        (
            {"order": "mxf4nvf4", "operands": "block(fp4_e2m1, 16x8, ue4m3/te, fp32)"},
            "for each 16 elements of a row, block(fp4_e2m1, 16x8, ue4m3/te, fp32) one for 16 x 8; give blocks",
        ),
        ({"order": "mxf4", "operands": "mxfp8_e4m3"}, "mxf4"),
        ({"order": "mxf8f6f4", "operands": "fp8_e4m3"}, "fp8_e4m3"),
        ({"order": "mxf9", "operands": "mxfp4"}, "mxf9"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(options: dict[str, str], says: str) -> None:
    a = np.ones((2, 64), np.float32)
    with pytest.raises(ValueError) as refusal:
        halfscope.matmul(a, a.T, **options)
    assert says in str(refusal.value) and "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match=r"shapes \(2, 64\) and \(2, 64\)"):
        halfscope.matmul(a, a, operands="mxfp4", order="mxf4")

"""Arrays of 8 bits an element and less: read as the numbers that their framework says they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halfscope

CODES = np.arange(256, dtype=np.uint8)
FUNCTIONS = {
    "round": lambda array: halfscope.round(array, "fp32"),
    "analyze": lambda array: halfscope.analyze({"x": array}).tensors[0].elements,
    "Histogram": lambda array: halfscope.Histogram(array),
    "sum": lambda array: halfscope.sum(array),
    "lost_updates": lambda array: halfscope.lost_updates(array, array),
}


class Framework:
    """An array whose elements nobody hands over, but which converts itself."""

    def __init__(self, dtype: str, values: np.ndarray | None) -> None:
        self.dtype, self.values = dtype, values

    def astype(self, dtype: str) -> np.ndarray:
        if self.values is None:
            raise NotImplementedError("packed")
        return self.values.astype(dtype)


def same(found: Any, expected: Any) -> bool:
    return bool(np.array_equal(found, expected, equal_nan=isinstance(found, (float, np.ndarray))))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_array_that_converts_itself_is_read(function: str) -> None:
    values = np.array([[1.5, -2.0], [448.0, 2.0**-9]], np.float32)
    for dtype in ("float8_e4m3fn", "torch.float8_e5m2", "float4_e2m1fn"):
        assert same(FUNCTIONS[function](Framework(dtype, values)), FUNCTIONS[function](values))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_that_cannot_be_read_is_named_with_its_type(function: str) -> None:
    with pytest.raises(TypeError, match="Framework of float4_e2m1fn_x2 cannot be converted to float32; if") as error:
        FUNCTIONS[function](Framework("float4_e2m1fn_x2", None))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16"]
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_of_ml_dtypes(function: str, name: str) -> None:
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    array = (CODES.view(np.uint16) if name == "bfloat16" else CODES).view(dtype)
    with np.errstate(invalid="ignore"):
        values = array.astype(np.float32)
    assert same(FUNCTIONS[function](array), FUNCTIONS[function](values))
    assert same(FUNCTIONS[function](array[::2]), FUNCTIONS[function](values[::2]))

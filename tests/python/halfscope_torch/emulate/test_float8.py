"""PyTorch's tensors of 8 bits an element: counted and rounded as the numbers that they hold."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope

NAMES = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


def typed(name: str) -> torch.dtype:
    if not hasattr(torch, name):
        pytest.skip(f"this PyTorch has no {name}")
    return getattr(torch, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_is_read(name: str) -> None:
    codes = torch.arange(256, dtype=torch.uint8).reshape(16, 16).view(typed(name))
    for array in (codes, codes.t(), codes[1::2, ::3]):
        values = array.float()
        assert halfscope.Histogram(array) == halfscope.Histogram(values)
        assert torch.equal(halfscope.round(array, "fp32").nan_to_num(7), values.nan_to_num(7))
        found = halfscope.analyze({"w": array}).to_dict()["tensors"]
        assert found == halfscope.analyze({"w": values}).to_dict()["tensors"]
        finite = values.nan_to_num(0, 0, 0).to(typed(name))
        assert halfscope.lost_updates(finite, finite) == halfscope.lost_updates(finite.float(), finite.float())


def test_packed_codes_are_named_with_what_reads_them() -> None:
    codes = torch.zeros(4, dtype=torch.uint8).view(typed("float4_e2m1fn_x2"))
    with pytest.raises(TypeError, match=r"Tensor of torch.float4_e2m1fn_x2 cannot be converted.*halfscope.decode"):
        halfscope.Histogram(codes)


def test_freed_storage_is_refused_and_not_read() -> None:
    tensor = torch.ones(1000).to(typed("float8_e4m3fn"))
    tensor.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory that holds them"):
        halfscope.Histogram(tensor)

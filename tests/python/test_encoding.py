"""halfscope.encode, decode and round of block formats beside tables of NumPy; packed FP4; products of operands."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import halfscope

BLOCKS = [
    "mxfp8_e4m3",
    "mxfp8_e5m2",
    "mxfp6_e2m3",
    "mxfp4/floor",
    "nvfp4",
    "nvfp4/torchao",
    "fp8_1x128",
    "mxfp4/stochastic(8)",
]
TILES = ["nvfp4_16x16", "fp8_128x128", "block(fp8_e4m3, 2x8, e8m0/even)"]
PLAIN = ["fp16", "bf16", "fp8_e4m3/saturate", "fp4_e2m1", "fp32"]


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def table(mantissa_bits: int, bias: int, count: int) -> np.ndarray:
    """The numbers of the first `count` codes, which have no sign."""
    codes = np.arange(count)
    field, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    return np.ldexp((field > 0) + mantissa / (1 << mantissa_bits), np.maximum(field, 1) - bias)


def nearest_codes(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Ties to the even code, saturating."""
    magnitude = np.minimum(np.abs(values.astype(np.float64)), numbers[-1])
    above = np.searchsorted(numbers, magnitude)
    below = np.maximum(above - 1, 0)
    low, high = magnitude - numbers[below], numbers[above] - magnitude
    return np.where((low < high) | ((low == high) & (below % 2 == 0)), below, above)


@pytest.mark.parametrize(
    ("form", "numbers", "sign"),
    [
        ("mxfp8_e4m3", table(3, 7, 127), 0x80),
        ("mxfp8_e5m2", table(2, 15, 124), 0x80),
        ("mxfp6_e2m3", table(3, 1, 32), 0x20),
        ("mxfp6_e3m2", table(2, 3, 32), 0x20),
        ("mxfp4", table(1, 1, 8), 8),
    ],
)
def test_codes_and_scales_of_mx(form: str, numbers: np.ndarray, sign: int) -> None:
    values = normal(6, 96) * np.exp2(np.random.default_rng(2).integers(-20, 20, (6, 96))).astype(np.float32)
    blocks = values.reshape(6, 3, 32)
    exponents = np.ceil(np.log2(np.abs(blocks).max(axis=-1).astype(np.float64) / numbers[-1]))
    codes = nearest_codes(blocks / np.exp2(exponents)[..., None], numbers) | np.where(blocks < 0, sign, 0)
    encoded = halfscope.encode(values, form)
    assert (encoded.scales == exponents + 127).all() and encoded.scales.dtype == np.uint8
    assert (encoded.codes == codes.reshape(6, 96)).all() and encoded.codes.dtype == np.uint8
    assert encoded.tensor_scale is None
    numbers_of = numbers[codes % sign] * np.where(codes >= sign, -1, 1) * np.exp2(exponents)[..., None]
    assert (halfscope.decode(encoded) == numbers_of.reshape(6, 96)).all()


@pytest.mark.parametrize("form", BLOCKS + TILES + PLAIN)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_decode_takes_encode_back(form: str, axis: int) -> None:
    values = normal(9, 40, 3)
    encoded = halfscope.encode(values, form, axis=axis)
    rounded = halfscope.round(values, form, axis=axis)
    assert encoded.codes.shape == values.shape
    assert np.array_equal(halfscope.decode(encoded), rounded)
    last = halfscope.round(np.ascontiguousarray(np.moveaxis(values, axis, -1)), form)
    if "stochastic" not in form:  # which draws by the order of the elements
        assert np.array_equal(np.moveaxis(rounded, axis, -1), last)
    assert (halfscope.round(rounded, "fp32") == rounded).all()


def test_shapes_of_scales() -> None:
    values = normal(5, 70, 3)
    assert halfscope.encode(values, "mxfp4", axis=1).scales.shape == (5, 3, 3)
    assert halfscope.encode(values, "nvfp4", axis=0).scales.shape == (1, 70, 3)
    assert halfscope.encode(values, "fp8_128x128", axis=1).scales.shape == (1, 1)
    assert halfscope.encode(normal(40, 70), "nvfp4_16x16").scales.shape == (3, 5)
    assert halfscope.encode(normal(40, 70), "nvfp4_16x16", axis=0).scales.shape == (5, 3)
    fp8 = halfscope.encode(values, "fp8_1x128")
    assert fp8.scales.dtype == np.float32
    assert (fp8.scales[..., 0] == np.abs(values).max(axis=-1) / np.float32(448)).all()
    assert halfscope.encode(values, "fp16").codes.dtype == np.uint16
    assert (halfscope.encode(values, "fp16").codes.view(np.float16) == values.astype(np.float16)).all()
    assert (halfscope.encode(values, "fp32").codes.view(np.float32) == values).all()


def test_a_tensor_scale_of_zeros_and_of_numbers() -> None:
    assert not halfscope.round(np.zeros((2, 32), np.float32), "nvfp4").any()
    for form in ("nvfp4", "nvfp4/torchao", "nvfp4/modelopt"):
        zeros = halfscope.encode(np.zeros((2, 32), np.float32), form)
        assert not halfscope.decode(zeros).any()
        assert np.isfinite(zeros.tensor_scale)
    values = normal(4, 64)
    assert halfscope.encode(values, "nvfp4/torchao").tensor_scale == np.abs(values).max() / np.float32(2688)


def test_fp4_is_packed_with_the_first_element_in_the_low_nibble() -> None:
    values = np.array([[0.5, -6, 1, 2, -0.5]], np.float32)  # codes 1, f, 2, 4, 9
    encoded = halfscope.encode(values, "fp4_e2m1")
    assert encoded.codes.tolist() == [[1, 15, 2, 4, 9]]
    assert encoded.packed().tolist() == [[0xF1, 0x42, 0x09]]
    packed = halfscope.Encoded("fp4_e2m1", encoded.packed())
    assert np.array_equal(packed.unpacked(5).codes, encoded.codes)
    assert packed.unpacked().codes.shape == (1, 6)
    for axis in (0, 1):
        blocks = halfscope.encode(normal(32, 64), "nvfp4", axis=axis)
        shorter = halfscope.Encoded("nvfp4", blocks.packed(), blocks.scales, blocks.tensor_scale, axis)
        assert shorter.codes.shape == ((16, 64) if axis == 0 else (32, 32))
        assert np.array_equal(halfscope.decode(shorter.unpacked()), halfscope.decode(blocks))
    with pytest.raises(ValueError, match="length 3 of 3 bytes; give 5 or 6"):
        packed.unpacked(3)
    with pytest.raises(ValueError, match="8 bits"):
        halfscope.encode(values, "mxfp8_e4m3").packed()


def test_products_of_operands_in_blocks_along_k() -> None:
    a, b = normal(5, 64), normal(64, 7, seed=2)
    for left, right in (("mxfp8_e4m3", "mxfp4"), ("nvfp4", "nvfp4_16x16"), ("fp8_1x128", "fp8_128x128")):
        rounded = halfscope.round(np.ascontiguousarray(b.T), right).T
        expected = halfscope.matmul(halfscope.round(a, left), rounded, order="fp32_sequential")
        assert np.array_equal(halfscope.matmul(a, b, order="fp32_sequential", operands=(left, right)), expected)
    both = halfscope.matmul(a, b, operands="mxfp8_e4m3")
    assert np.array_equal(both, halfscope.matmul(a, b, operands=("mxfp8_e4m3", "mxfp8_e4m3")))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert 0.005 < np.linalg.norm(both - exact) / np.linalg.norm(exact) < 0.08
    batch = halfscope.matmul(np.stack([a, 2 * a]), np.stack([b, b]), operands="mxfp4")
    assert np.array_equal(batch[0] * 2, batch[1])


def test_requests_that_are_wrong() -> None:
    values = normal(4, 64)
    for call, says in (
        (
            lambda: halfscope.round(values, "mxfp4", axis=2),
            "round: axis 2 of an array with 2 axes; give one from -2 to 1",
        ),
        (lambda: halfscope.encode(values, "mxfp4", axis=-3), "encode: axis -3"),
        (lambda: halfscope.round(values, "mxfp5"), "mxfp5"),
        (lambda: halfscope.round(values, "mxfp4/te"), "unknown rule of e8m0 scales: 'te'"),
        (lambda: halfscope.decode(halfscope.Encoded("mxfp4", np.zeros((4, 64), np.uint8))), "give scales"),
        (
            lambda: halfscope.decode(
                halfscope.Encoded("mxfp4", np.zeros((4, 64), np.uint8), np.zeros((4, 3), np.uint8))
            ),
            r"scales of shape \(4, 3\) for codes of shape \(4, 64\); give \(4, 2\)",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            call()
    with pytest.raises(TypeError, match="float64"):
        halfscope.encode(values.astype(np.float64), "mxfp4")


def test_look_alikes_are_told_apart_once_for_a_name() -> None:
    from halfscope.arithmetic import note_look_alike

    note_look_alike.cache_clear()
    values = normal(4, 64)
    for form, texts in (
        ("e4m3", ("240", "448")),
        ("e2m1", ("fp4_e2m1", "6")),
        ("block(e4m3, 1x32, e8m0/rceil)", ("448",)),
    ):
        with pytest.warns(UserWarning, match="OCP") as said:
            halfscope.round(values, form)
        assert len(said) == 1 and said[0].filename == __file__
        for text in texts:
            assert text in str(said[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            halfscope.round(values, form)
            halfscope.round(values, "fp8_e4m3")


@pytest.mark.torch
def test_tensors_of_pytorch() -> None:
    import torch

    values = torch.tensor(normal(32, 64))
    encoded = halfscope.encode(values, "nvfp4")
    assert isinstance(encoded.codes, torch.Tensor) and encoded.codes.dtype == torch.uint8
    assert isinstance(encoded.packed(), torch.Tensor)
    assert torch.equal(halfscope.decode(encoded), halfscope.round(values, "nvfp4"))
    if hasattr(torch, "float4_e2m1fn_x2"):
        packed = encoded.packed().view(torch.float4_e2m1fn_x2)
        scales = encoded.scales.view(torch.float8_e4m3fn)
        of_torch = halfscope.Encoded("nvfp4", packed, scales, encoded.tensor_scale)
        assert torch.equal(halfscope.decode(of_torch.unpacked()), halfscope.decode(encoded))
    if hasattr(torch, "float8_e8m0fnu"):
        mx = halfscope.encode(values, "mxfp8_e4m3")
        of_torch = halfscope.Encoded(
            "mxfp8_e4m3", mx.codes.view(torch.float8_e4m3fn), mx.scales.view(torch.float8_e8m0fnu)
        )
        assert torch.equal(halfscope.decode(of_torch), halfscope.decode(mx))
        product = mx.codes.view(torch.float8_e4m3fn).float() * torch.repeat_interleave(
            mx.scales.view(torch.float8_e8m0fnu).float(), 32, dim=1
        )
        assert torch.equal(halfscope.decode(mx), product)
    weight = values.clone().requires_grad_()
    with pytest.raises(ValueError, match="gradient"):
        halfscope.encode(weight, "mxfp4")
    halfscope.round(weight, "mxfp4", axis=0, straight_through=True).sum().backward()
    assert torch.equal(weight.grad, torch.ones_like(weight))

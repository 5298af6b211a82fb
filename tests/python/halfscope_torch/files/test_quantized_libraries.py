"""Quantized files beside the libraries that write them: gguf, bitsandbytes and compressed-tensors; equal bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from halfscope import _core

torch = pytest.importorskip("torch")


def numbers_of(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file as halfscope reads them."""
    files, lines = _core.read_tensor_files([str(path)], None)
    assert lines == []
    return files[0][1]


def same_bits(found: np.ndarray, truth: np.ndarray) -> bool:
    return found.shape == truth.shape and bool((found.view(np.uint32) == truth.view(np.uint32)).all())


GGUF_TYPES = [
    "Q4_0",
    "Q4_1",
    "Q5_0",
    "Q5_1",
    "Q8_0",
    "Q2_K",
    "Q3_K",
    "Q4_K",
    "Q5_K",
    "Q6_K",
    "IQ4_NL",
    "IQ4_XS",
    "MXFP4",
    "NVFP4",
]
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
}


@pytest.mark.parametrize("name", GGUF_TYPES)
def test_blocks_of_gguf(tmp_path: Path, name: str) -> None:
    """Bytes drawn at random, with scales in FP16 that are finite."""
    gguf = pytest.importorskip("gguf")
    kind = getattr(gguf.GGMLQuantizationType, name)
    if kind not in gguf.GGML_QUANT_SIZES:
        pytest.skip(f"this gguf has no {name}")
    _, size = gguf.GGML_QUANT_SIZES[kind]
    noise = np.random.default_rng(0)
    raw = noise.integers(0, 256, (64, 4 * size), dtype=np.uint8)
    blocks = raw.reshape(-1, size)
    for offset in HALVES.get(name, []):
        halves = noise.uniform(-0.1, 0.1, len(blocks)).astype(np.float16)
        blocks[:, offset : offset + 2] = halves.view(np.uint8).reshape(-1, 2)
    if name == "MXFP4":
        blocks[:, 0] = np.arange(len(blocks)) % 250
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tensor("blk.0.weight", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert same_bits(numbers_of(path)["blk.0.weight"], gguf.dequantize(raw, kind).astype(np.float32))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", ["nf4", "fp4"])
def test_four_bits_of_bitsandbytes(tmp_path: Path, kind: str, nested: bool) -> None:
    functional = pytest.importorskip("bitsandbytes.functional")
    save_file = pytest.importorskip("safetensors.torch").save_file
    torch.manual_seed(0)
    weight = torch.randn(96, 320) * 0.02
    codes, state = functional.quantize_4bit(weight, quant_type=kind, compress_statistics=nested, blocksize=64)
    parts = {f"w.weight.{name}": part.contiguous() for name, part in state.as_dict(packed=True).items()}
    path = tmp_path / "model.safetensors"
    save_file({"w.weight": codes, **parts}, str(path))
    truth = functional.dequantize_4bit(codes, state).numpy()
    # The library's FP4 gives code 8 a negative zero, the table in the file a positive one.
    assert same_bits(numbers_of(path)["w.weight"] + np.float32(0), truth + np.float32(0))


def test_bytes_of_bitsandbytes(tmp_path: Path) -> None:
    functional = pytest.importorskip("bitsandbytes.functional")
    save_file = pytest.importorskip("safetensors.torch").save_file
    torch.manual_seed(0)
    codes, largest, _ = functional.int8_vectorwise_quant(torch.randn(64, 128).half())
    path = tmp_path / "model.safetensors"
    save_file(
        {"w.weight": codes, "w.SCB": largest.float(), "w.weight_format": torch.zeros((), dtype=torch.uint8)}, str(path)
    )
    truth = functional.int8_vectorwise_dequant(codes, largest.float()).float().numpy()
    assert same_bits(numbers_of(path)["w.weight"], truth)


def compressed(tmp_path: Path, form: str, dtype: torch.dtype, **settings: object) -> tuple[np.ndarray, np.ndarray]:
    """A layer compressed by the library: the numbers here and there."""
    library = pytest.importorskip("compressed_tensors.compressors")
    quantization = pytest.importorskip("compressed_tensors.quantization")
    save_file = pytest.importorskip("safetensors.torch").save_file
    arguments = quantization.QuantizationArgs(**settings)
    scheme = quantization.QuantizationScheme(targets=["Linear"], weights=arguments)
    torch.manual_seed(0)
    rows, columns, group = 64, 256, settings.get("group_size") or 256
    weight = (torch.randn(rows, columns) * 0.02).to(dtype)
    state: dict[str, torch.Tensor] = {"weight": weight}
    if settings["type"] == "float":
        state["weight_global_scale"] = torch.tensor([448 * 6 / weight.abs().max().item()])
        blocks = weight.float().reshape(rows, -1, group).abs().amax(-1) / 6 * state["weight_global_scale"]
        state["weight_scale"] = blocks.to(torch.float8_e4m3fn).to(dtype)
    else:
        levels = 2 ** settings["num_bits"] - 1
        grouped = weight.float().reshape(rows, -1, group)
        low, high = grouped.amin(-1), grouped.amax(-1)
        symmetric = settings.get("symmetric", True)
        scale = (2 * grouped.abs().amax(-1) / levels if symmetric else (high - low) / levels).to(dtype)
        state["weight_scale"] = scale
        if not symmetric:
            zero = (-(levels + 1) // 2 - low / scale.float()).round().clamp(-(levels + 1) // 2, levels // 2)
            state["weight_zero_point"] = zero.to(torch.int8)
    compressor = library.BaseCompressor.get_value_from_registry(form)
    held = compressor.compress(dict(state), scheme)
    path = tmp_path / "model.safetensors"
    save_file({f"w.{name}": part.contiguous() for name, part in held.items()}, str(path))
    truth = compressor.decompress(dict(held), scheme)["weight"]
    found = torch.from_numpy(numbers_of(path)["w.weight"]).to(truth.dtype)
    return found.float().numpy(), truth.float().numpy()


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [3, 4, 8])
def test_integers_of_compressed_tensors(tmp_path: Path, bits: int, symmetric: bool) -> None:
    """In the type of the scales, to which the library rounds the product."""
    found, truth = compressed(
        tmp_path,
        "pack-quantized",
        torch.float32,
        num_bits=bits,
        type="int",
        symmetric=symmetric,
        strategy="group",
        group_size=64,
    )
    assert same_bits(found, truth)


def test_nvfp4_of_compressed_tensors(tmp_path: Path) -> None:
    found, truth = compressed(
        tmp_path,
        "nvfp4-pack-quantized",
        torch.float32,
        num_bits=4,
        type="float",
        symmetric=True,
        strategy="tensor_group",
        group_size=16,
    )
    assert same_bits(found, truth)


def test_the_form_of_gptq_is_that_of_its_configuration(tmp_path: Path) -> None:
    """Words unpacked here by NumPy: four bits along the inputs, zero points less one."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    noise = np.random.default_rng(1)
    codes, zeros = noise.integers(0, 16, (64, 32)), noise.integers(0, 16, (2, 32))
    scales = noise.uniform(0.001, 0.1, (2, 32)).astype(np.float16)
    shifts = 4 * np.arange(8)
    words = (codes.reshape(8, 8, 32) << shifts[None, :, None]).sum(1).astype(np.uint32).view(np.int32)
    stored = ((((zeros - 1) % 16).reshape(2, 4, 8)) << shifts).sum(-1).astype(np.uint32).view(np.int32)
    save_file({"q.qweight": words, "q.qzeros": stored, "q.scales": scales}, str(tmp_path / "model.safetensors"))
    (tmp_path / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 32}))
    truth = (codes - zeros.repeat(32, 0)).astype(np.float32) * scales.repeat(32, 0).astype(np.float32)
    assert same_bits(numbers_of(tmp_path / "model.safetensors")["q.weight"], np.ascontiguousarray(truth.T))

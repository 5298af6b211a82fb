"""Small quantized files of each kind, written by the public libraries: python quantized_samples.py FOLDER.

Each kind has a folder of its own, below 1 MB, with the file and with `truth.npz`, the numbers that the library reads.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

Numbers = dict[str, torch.Tensor]  # in the type to which the library rounds them

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


def gguf_blocks(folder: Path, name: str) -> Numbers:
    """Bytes drawn at random, with scales in FP16 that are finite."""
    import gguf

    kind = getattr(gguf.GGMLQuantizationType, name, None)
    if kind not in gguf.GGML_QUANT_SIZES:
        raise ImportError(f"this gguf has no {name}")
    _, size = gguf.GGML_QUANT_SIZES[kind]
    noise = np.random.default_rng(0)
    raw = noise.integers(0, 256, (64, 4 * size), dtype=np.uint8)
    blocks = raw.reshape(-1, size)
    for offset in HALVES.get(name, []):
        halves = noise.uniform(-0.1, 0.1, len(blocks)).astype(np.float16)
        blocks[:, offset : offset + 2] = halves.view(np.uint8).reshape(-1, 2)
    if name == "MXFP4":
        blocks[:, 0] = np.arange(len(blocks)) % 250
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), "llama")
    writer.add_tensor("blk.0.weight", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {"blk.0.weight": torch.from_numpy(gguf.dequantize(raw, kind).astype(np.float32))}


def save(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import save_file

    save_file(tensors, str(folder / "model.safetensors"))


def four_bits(folder: Path, kind: str, nested: bool) -> Numbers:
    from bitsandbytes import functional

    torch.manual_seed(0)
    weight = torch.randn(96, 320) * 0.02
    codes, state = functional.quantize_4bit(weight, quant_type=kind, compress_statistics=nested, blocksize=64)
    parts = {f"w.weight.{name}": part.contiguous() for name, part in state.as_dict(packed=True).items()}
    save(folder, {"w.weight": codes, **parts})
    return {"w.weight": functional.dequantize_4bit(codes, state)}


def eight_bits(folder: Path) -> Numbers:
    from bitsandbytes import functional

    torch.manual_seed(0)
    codes, largest, _ = functional.int8_vectorwise_quant(torch.randn(64, 128).half())
    scales = largest.float()
    save(folder, {"w.weight": codes, "w.SCB": scales, "w.weight_format": torch.zeros((), dtype=torch.uint8)})
    return {"w.weight": functional.int8_vectorwise_dequant(codes, scales).float()}


def compressed(folder: Path, form: str, **settings: object) -> Numbers:
    """A layer compressed by the library."""
    from compressed_tensors import quantization
    from compressed_tensors.compressors import BaseCompressor

    arguments = quantization.QuantizationArgs(**settings)
    scheme = quantization.QuantizationScheme(targets=["Linear"], weights=arguments)
    torch.manual_seed(0)
    rows, columns, group = 64, 256, settings["group_size"]
    weight = torch.randn(rows, columns) * 0.02
    state: dict[str, torch.Tensor] = {"weight": weight}
    if settings["type"] == "float":
        state["weight_global_scale"] = torch.tensor([448 * 6 / weight.abs().max().item()])
        blocks = weight.reshape(rows, -1, group).abs().amax(-1) / 6 * state["weight_global_scale"]
        state["weight_scale"] = blocks.to(torch.float8_e4m3fn).float()
    else:
        levels = 2 ** settings["num_bits"] - 1
        grouped = weight.reshape(rows, -1, group)
        low, high = grouped.amin(-1), grouped.amax(-1)
        scale = 2 * grouped.abs().amax(-1) / levels if settings["symmetric"] else (high - low) / levels
        state["weight_scale"] = scale
        if not settings["symmetric"]:
            zero = (-(levels + 1) // 2 - low / scale).round().clamp(-(levels + 1) // 2, levels // 2)
            state["weight_zero_point"] = zero.to(torch.int8)
    compressor = BaseCompressor.get_value_from_registry(form)
    held = compressor.compress(dict(state), scheme)
    save(folder, {f"w.{name}": part.contiguous() for name, part in held.items()})
    return {"w.weight": compressor.decompress(dict(held), scheme)["weight"]}


def gptq(folder: Path) -> Numbers:
    """Words packed here by NumPy: four bits along the inputs, zero points less one."""
    noise = np.random.default_rng(1)
    codes, zeros = noise.integers(0, 16, (64, 32)), noise.integers(0, 16, (2, 32))
    scales = noise.uniform(0.001, 0.1, (2, 32)).astype(np.float16)
    shifts = 4 * np.arange(8)
    words = (codes.reshape(8, 8, 32) << shifts[None, :, None]).sum(1).astype(np.uint32).view(np.int32)
    stored = ((((zeros - 1) % 16).reshape(2, 4, 8)) << shifts).sum(-1).astype(np.uint32).view(np.int32)
    parts = {"q.qweight": words, "q.qzeros": stored, "q.scales": scales}
    save(folder, {name: torch.from_numpy(part) for name, part in parts.items()})
    (folder / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 32}))
    truth = (codes - zeros.repeat(32, 0)).astype(np.float32) * scales.repeat(32, 0).astype(np.float32)
    return {"q.weight": torch.from_numpy(truth.T.copy())}


INTEGERS = partial(compressed, form="pack-quantized", type="int", strategy="group", group_size=64)
KINDS: dict[str, Callable[[Path], Numbers]] = {
    **{f"gguf-{name}": partial(gguf_blocks, name=name) for name in GGUF_TYPES},
    **{
        f"bitsandbytes-{kind}{'-nested' if nested else ''}": partial(four_bits, kind=kind, nested=nested)
        for kind in ("nf4", "fp4")
        for nested in (False, True)
    },
    "bitsandbytes-int8": eight_bits,
    **{
        f"compressed-tensors-int{bits}{'' if symmetric else '-zero-points'}": partial(
            INTEGERS, num_bits=bits, symmetric=symmetric
        )
        for bits in (3, 4, 8)
        for symmetric in (True, False)
    },
    "compressed-tensors-nvfp4": partial(
        compressed,
        form="nvfp4-pack-quantized",
        type="float",
        num_bits=4,
        symmetric=True,
        strategy="tensor_group",
        group_size=16,
    ),
    "gptq-4-bits": gptq,
}


def main(out: Path) -> None:
    for name, write in KINDS.items():
        folder = out / name
        folder.mkdir(parents=True)
        try:
            numbers = {key: tensor.float().numpy() for key, tensor in write(folder).items()}
            np.savez(folder / "truth.npz", **numbers)
        except ImportError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
            folder.rmdir()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

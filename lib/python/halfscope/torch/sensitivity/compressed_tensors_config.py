"""A mixture as a quantization config of compressed-tensors."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

FLOAT: dict[str, Any] = {"type": "float", "symmetric": True}
GLOBAL: dict[str, Any] = {"strategy": "tensor_group", "group_size": 16, "scale_dtype": "torch.float8_e4m3fn"}
MX: dict[str, Any] = {"strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}

WEIGHTS: dict[str, dict[str, Any]] = {
    name: {"weights": {"num_bits": bits, **FLOAT, **scales, "dynamic": False}}
    for name, bits, scales in (
        ("nvfp4", 4, GLOBAL),
        ("mxfp4", 4, MX),
        ("mxfp6_e2m3", 6, MX),
        ("mxfp8_e4m3", 8, MX),
        ("fp8_e4m3+current", 8, {"strategy": "tensor"}),
    )
}
# The scale of a whole NVFP4 input is calibrated; blocks have scales of their own numbers.
LOCAL: dict[str, Any] = {"dynamic": "local", "observer": "static_minmax"}
BOTH: dict[str, dict[str, Any]] = {
    name: {**entry, "input_activations": {**entry["weights"], **(LOCAL if name == "nvfp4" else {"dynamic": True})}}
    for name, entry in WEIGHTS.items()
    if name != "mxfp6_e2m3"  # none of its presets has inputs of 6 bits
}
FP8 = WEIGHTS["fp8_e4m3+current"]
BOTH |= {"nvfp4+static": BOTH["nvfp4"], "fp8_e4m3+static": {**FP8, "input_activations": FP8["weights"]}}


def write(layers: Mapping[str, Mapping[str, Any]], kept: Sequence[str]) -> dict[str, Any]:
    """JSON for `QuantizationConfig.model_validate`; its layers are to be quantized, not yet compressed.

    Checked with compressed-tensors 0.20.0: `apply_quantization_config` gives these layers their schemes, and no other
    layer one. They are those of its presets NVFP4, MXFP4, MXFP8 and NVFP4A16, MXFP4A16, MXFP6A16, MXFP8A16; FP8's is
    no preset, since the presets have a calibrated input, or a scale for each row.
    """
    schemes: list[Mapping[str, Any]] = []
    targets: list[list[str]] = []
    for name, layer in layers.items():
        if layer not in schemes:
            schemes.append(layer)
            targets.append([])
        targets[schemes.index(layer)].append(_target(name))
    groups = {
        f"group_{at}": {"targets": names, **copy.deepcopy(dict(layer))}
        for at, (layer, names) in enumerate(zip(schemes, targets))
    }
    ignored = [_target(name) for name in kept]
    return {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ignored}


def _target(name: str) -> str:
    """Matches one module's name; a plain one without a dot matches a class of that name too."""
    return name if "." in name else f"re:{re.escape(name)}$"

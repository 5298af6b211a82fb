"""A mixture as the `quant_cfg` of NVIDIA's ModelOpt."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from typing import Any

E8M0, E4M3 = (8, 0), (4, 3)  # formats of scales: bits of exponent and mantissa


def _blocks(element: tuple[int, int], size: int, scale: tuple[int, int]) -> dict[str, Any]:
    return {"num_bits": element, "block_sizes": {-1: size, "type": "dynamic", "scale_bits": scale}}


WEIGHTS: dict[str, dict[str, Any]] = {
    name: {"weight_quantizer": quantizer}
    for name, quantizer in {
        "nvfp4": _blocks((2, 1), 16, E4M3),
        "mxfp4": _blocks((2, 1), 32, E8M0),
        "mxfp6_e2m3": _blocks((2, 3), 32, E8M0),
        "mxfp6_e3m2": _blocks((3, 2), 32, E8M0),
        "mxfp8_e4m3": _blocks((4, 3), 32, E8M0),
        "mxfp8_e5m2": _blocks((5, 2), 32, E8M0),
        "fp8_e4m3+current": {"num_bits": (4, 3), "axis": None},
    }.items()
}
BOTH = {name: {**entry, "input_quantizer": entry["weight_quantizer"]} for name, entry in WEIGHTS.items()}
STATIC = {f"{name}+static": BOTH[plain] for name, plain in (("nvfp4", "nvfp4"), ("fp8_e4m3", "fp8_e4m3+current"))}
BOTH |= STATIC  # scales of whole inputs are calibrated, whatever the format is called


def write(layers: Mapping[str, Mapping[str, Any]], kept: Sequence[str]) -> dict[str, Any]:
    """For `mtq.quantize(model, config, forward_loop)`; Python's tuples and whole keys, which JSON has not.

    Checked with nvidia-modelopt 0.47.0: `QuantizeConfig` parses it, and `mtq.quantize` gives every layer these
    quantizers and no other layer one. The forward loop calibrates the scales of whole inputs.
    """
    del kept  # the first entry turns every quantizer off
    entries = [
        {"quantizer_name": f"{glob.escape(name)}.{quantizer}", "cfg": dict(attributes)}
        for name, layer in layers.items()
        for quantizer, attributes in layer.items()
    ]
    return {"quant_cfg": [{"quantizer_name": "*", "enable": False}, *entries], "algorithm": "max"}

"""A mixture as a serialized `FqnToConfig` of torchao."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any


def _config(name: str, version: int = 1, **fields: Any) -> dict[str, Any]:
    return {"_type": name, "_version": version, "_data": fields}


def _mx(element: str) -> dict[str, Any]:
    dtype = {"_type": "torch.dtype", "_data": element}
    rule = {"_type": "ScaleCalculationMode", "_data": "RCEIL"}
    return _config("MXDynamicActivationMXWeightConfig", activation_dtype=dtype, weight_dtype=dtype, scaling_mode=rule)


WEIGHTS: dict[str, dict[str, Any]] = {"nvfp4": _config("NVFP4WeightOnlyConfig")}
BOTH: dict[str, dict[str, Any]] = {
    "nvfp4": _config("NVFP4DynamicActivationNVFP4WeightConfig"),
    "mxfp4": _mx("float4_e2m1fn_x2"),
    "mxfp8_e4m3": _mx("float8_e4m3fn"),
    "fp8_e4m3+current": _config(
        "Float8DynamicActivationFloat8WeightConfig", 2, granularity=[_config("PerTensor"), _config("PerTensor")]
    ),
}


def write(layers: Mapping[str, Mapping[str, Any]], kept: Sequence[str]) -> dict[str, Any]:
    """JSON for `torchao.core.config.config_from_dict`, whose result `quantize_(model, config, filter_fn=None)` takes.

    In a checkpoint's config.json it stands as {"quant_method": "torchao", "quant_type": {"default": ...}}. Checked
    with torchao 0.18.0: `config_from_dict` gives a config for each of these layers and for no other.
    """
    del kept  # modules that are not named stay
    return _config("FqnToConfig", fqn_to_config={name: copy.deepcopy(dict(each)) for name, each in layers.items()})

"""Configs of a mixture for the runtimes that quantize a model: which formats each of them has, and how it writes them.

A new runtime is one file and one line of `RUNTIMES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from halfscope.torch.sensitivity import compressed_tensors_config, modelopt_config, torchao_config
from halfscope.torch.sensitivity.operand_images import SIDES, OperandFormat
from halfscope.torch.words import called

Layer = Mapping[str, Any]
"""A format in a runtime's own words."""

KEPT = "bf16"  # layers that a runtime leaves in the type of a BF16 model


class Runtime(NamedTuple):
    """Layers by format, where both operands are rounded and where the weight alone is; and the config of layers.

    write: of layers by name, and of the names of linear layers that are kept.
    """

    both: Mapping[str, Layer]
    weights: Mapping[str, Layer]
    write: Callable[[Mapping[str, Layer], Sequence[str]], dict[str, Any]]


RUNTIMES = {
    "modelopt": Runtime(modelopt_config.BOTH, modelopt_config.WEIGHTS, modelopt_config.write),
    "compressed-tensors": Runtime(
        compressed_tensors_config.BOTH, compressed_tensors_config.WEIGHTS, compressed_tensors_config.write
    ),
    "torchao": Runtime(torchao_config.BOTH, torchao_config.WEIGHTS, torchao_config.write),
}


def runtime_config(model: torch.nn.Module, formats: Mapping[str, OperandFormat], runtime: str) -> dict[str, Any]:
    """The config of a model whose units have formats, by name; as `FormatMixture.config` has it."""
    if runtime not in RUNTIMES:
        raise ValueError(f"config: runtime {runtime!r}; give one of {', '.join(RUNTIMES)}")
    modules = dict(model.named_modules())
    layers = {
        name: _layer(name, modules.get(name), format, runtime)
        for name, format in formats.items()
        if format.name != KEPT
    }
    kept = [name for name, module in modules.items() if isinstance(module, torch.nn.Linear) and name not in layers]
    return RUNTIMES[runtime].write(layers, kept)


def _layer(name: str, module: torch.nn.Module | None, format: OperandFormat, runtime: str) -> Layer:
    """A unit in the runtime's words. Raises ValueError for a format that it has not, and for other layers."""
    both, weights, _ = RUNTIMES[runtime]
    is_both = len(format.sides) == len(SIDES)
    known = both if is_both else weights
    if format.name not in known:
        alone = "" if is_both else " for weights alone"
        raise ValueError(
            f"config: '{called(name)}' has {format.name}{alone}; {runtime} has {', '.join((*known, KEPT))}{alone}"
        )
    if not isinstance(module, torch.nn.Linear) or not name:
        kind = "the model itself" if module is not None and not name else f"a {type(module).__name__}"
        raise ValueError(
            f"config: '{called(name)}' is {kind} in {format.name}; {runtime} is told formats of linear layers in a "
            f"model, and {KEPT} of others"
        )
    return known[format.name]

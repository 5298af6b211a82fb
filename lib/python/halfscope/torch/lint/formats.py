"""Formats of what a lint looks at, by role: all alike of a format, different ones of a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from halfscope import _core
from halfscope.formats import Format
from halfscope.torch.policy import FP32, Policy
from halfscope.torch.tensors.elements import HALF

_AUTOCAST = {"autocast": "fp16", "autocast_bf16": "bf16"}


@dataclass(frozen=True)
class LintFormats:
    """weights: as they are stored; state: the optimizer's; operations: of activations and buffers.

    constants: of numbers in the source of modules. has_powers: whether powers are computed in the format.
    """

    weights: Format
    state: Format
    operations: Format
    gradients: Format
    constants: Format
    has_powers: bool = True

    @classmethod
    def of_model(cls, model: torch.nn.Module) -> LintFormats:
        """The 16-bit format of a model's weights; of others, torch.autocast in FP16."""
        types = {parameter.dtype for parameter in model.parameters()}
        return cls.of(next((name for type_, name in HALF.items() if type_ in types), "autocast"))

    @classmethod
    def of(cls, given: str | Mapping[str, str]) -> LintFormats:
        """A format holds everything, as `model.to` a 16-bit type does; a policy says what each role has.

        torch.autocast keeps weights, state and buffers in FP32, and computes powers there; a constant may meet the
        16-bit result of a product.
        """
        if isinstance(given, str) and given in _AUTOCAST:
            wide = Format.of(FP32)
            return cls(wide, wide, wide, wide, Format.of(_AUTOCAST[given]), False)
        names = {row["policy"] for row in _core.policy_table()}
        if isinstance(given, str) and given not in names:
            format = Format.of(str(_core.describe_quantizer(given)["quantizer"]))
            return cls(format, format, format, format, format)
        policy = Policy(given, None, {})
        base = policy.base
        operations = FP32 if policy.fp32_parameters else base.activation  # autocast leaves constants and buffers alone
        roles = (base.master_weight, base.optimizer_state, operations, base.weight_gradient, operations)
        weights, state, activations, gradients, constants = map(Format.of, roles)
        return cls(weights, state, activations, gradients, constants)

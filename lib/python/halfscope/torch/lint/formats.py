"""Formats of what a lint looks at, by role: all alike of a format, different ones of a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halfscope import _core
from halfscope.formats import Format
from halfscope.torch.policy import FP32, Policy


@dataclass(frozen=True)
class LintFormats:
    """weights: as they are stored; state: the optimizer's; operations: of activations, constants and buffers."""

    weights: Format
    state: Format
    operations: Format
    gradients: Format

    @classmethod
    def of(cls, given: str | Mapping[str, str]) -> LintFormats:
        """A format holds everything, as `model.to` a 16-bit type does; a policy says what each role has."""
        names = {row["policy"] for row in _core.policy_table()}
        if isinstance(given, str) and given not in names:
            format = Format.of(str(_core.describe_quantizer(given)["quantizer"]))
            return cls(format, format, format, format)
        policy = Policy(given, None, {})
        base = policy.base
        operations = FP32 if policy.fp32_parameters else base.activation  # autocast leaves constants and buffers alone
        roles = (base.master_weight, base.optimizer_state, operations, base.weight_gradient)
        return cls(*map(Format.of, roles))

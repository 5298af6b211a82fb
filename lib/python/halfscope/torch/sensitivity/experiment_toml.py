"""A mixture as an experiment of `halfscope run`: arms that train a network of the simulator in its formats."""

from __future__ import annotations

import json
from collections.abc import Mapping

from halfscope.torch.sensitivity.operand_images import OperandFormat

FP32, MIXTURE, UNIFORM = "fp32", "mixture", "uniform"


def experiment_toml(
    formats: Mapping[str, OperandFormat], uniform: OperandFormat | None, base: str, layers: Mapping[str, str] | None
) -> str:
    """As `FormatMixture.experiment` has it; uniform: a format for all units, as an arm of its own."""
    names = _names(formats, layers)
    rules = {MIXTURE: operand_rules({names[unit]: format for unit, format in formats.items()})}
    lines = [
        'summary = "a mixture of formats of layers, as sensitivity(...).choose(...) has it"',
        f"base = {json.dumps(base)}", 'baseline = "fp32"', 'varied = ["operands"]', "",
    ]  # fmt: skip
    if uniform is not None:
        rules[UNIFORM] = operand_rules(dict.fromkeys(names.values(), uniform))
    arms = [f"[arm.{FP32}]", 'summary = "FP32"', ""]
    for arm, text in rules.items():
        summary = "the mixture" if arm == MIXTURE else f"{uniform.name if uniform else ''} for all of these layers"
        arms += [f"[arm.{arm}]", f"summary = {json.dumps(summary)}", f"operands = {json.dumps(text)}", ""]
    return "\n".join([*lines, "[settings]", 'policy = "fp32"', "", *arms]).rstrip() + "\n"


def _names(formats: Mapping[str, OperandFormat], layers: Mapping[str, str] | None) -> dict[str, str]:
    """The simulator's name of each unit.

    Raises ValueError for a name that a rule cannot have, a unit without one, and a format with static scales.
    """
    static = next((format.name for format in formats.values() if format.is_static), None)
    if static is not None:
        raise ValueError(f"experiment: {static} has static scales, which the simulator has not")
    names = {unit: unit for unit in formats} if layers is None else dict(layers)
    for unit in formats:
        name = names.get(unit)
        if name is None:
            raise ValueError(f"experiment: layers has no name of the unit '{unit}'; give layers={{'{unit}': 'layer1'}}")
        if not name or set(name) & set(", =@"):
            raise ValueError(f"experiment: layer {name!r} of the unit '{unit}'; give a name of the simulator's layers")
    return {unit: names[unit] for unit in formats}


def operand_rules(formats: Mapping[str, OperandFormat]) -> str:
    """Rules of the setting `operands`, a layer each."""
    return ", ".join(f"{format.rule}@{layer}" for layer, format in formats.items())

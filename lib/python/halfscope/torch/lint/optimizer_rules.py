"""Rules on an optimizer: its epsilon, averages, learning rate and weight decay, and its counters of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from halfscope import lost_updates
from halfscope.formats import Format
from halfscope.torch.findings.finding import Finding
from halfscope.torch.lint.formats import LintFormats
from halfscope.torch.lint.numbers import CheckedNumber, Number, check, finding
from halfscope.torch.tensors.elements import floats_on_host

_FP32_STATE = "keep the optimizer's state in FP32 (FP32 weights under torch.autocast)"
_MASTER = "keep an FP32 master copy of the weights (FP32 weights under torch.autocast)"
_EXACT = "computed from the optimizer's settings, for a state in {format}; no step was made"
_COUNTED = "counted over the weights as they are now"
_LOST = 0.05  # share of the weights from which on a rate or a decay is told


def optimizer_findings(optimizer: Any, formats: LintFormats) -> Iterator[Finding]:
    """Findings on all groups of parameters; equal settings of several groups give one."""
    name, told = type(optimizer).__name__, set()
    for group in optimizer.param_groups:
        for asked in _settings(name, group, formats.state):
            if (asked.kind, asked.value) not in told:
                told.add((asked.kind, asked.value))
                yield from check(asked, formats.state)
    yield from _spacing(optimizer, formats.weights)
    yield from _counters(optimizer)


def _settings(name: str, group: dict[str, Any], state: Format) -> Iterator[CheckedNumber]:
    sure = _EXACT.format(format=state.label)
    yield CheckedNumber("learning_rate", f"lr of {name}", float(group["lr"]), "step 1", _FP32_STATE, sure)
    if group.get("eps"):
        change = f"{_FP32_STATE}; {name}(..., eps={{limit}}) only avoids the NaN"
        yield CheckedNumber("optimizer_epsilon", f"eps of {name}", float(group["eps"]), "step 1", change, sure)
    betas = [float(beta) for beta in group.get("betas", ())]
    averages = [
        *((f"beta{i + 1}", beta) for i, beta in enumerate(betas)),
        ("momentum", float(group.get("momentum", 0))),
    ]
    if "alpha" in group and "betas" not in group:
        averages.append(("alpha", float(group["alpha"])))
    for key, value in averages:
        yield CheckedNumber(
            "decay", f"{key} of {name}", value, "step 1", f"{_FP32_STATE}; else {key}={{limit}} or less", sure
        )
    if betas:
        yield CheckedNumber("one_minus_decay", f"1 - beta2 of {name}", 1 - betas[-1], "step 1", _FP32_STATE, sure)
    if betas or "alpha" in group:
        square = state.smallest_normal**2
        yield CheckedNumber("square", f"a squared gradient of {name}", square, "step 1", _FP32_STATE, sure)


def _spacing(optimizer: Any, weights: Format) -> Iterator[Finding]:
    """Learning rate and weight decay against the spacing of the weights."""
    name = type(optimizer).__name__
    if weights.is_stochastic:  # which makes up for lost updates on average
        return
    rate, decay = _Share(), _Share()
    for group in optimizer.param_groups:
        lr = float(group["lr"])
        factor = lr * float(group.get("weight_decay", 0)) if _is_decoupled(optimizer, group) else 0.0
        for parameter in group["params"]:
            values = floats_on_host(parameter)
            if values is None:
                continue
            rate.add(values, _updates(group, lr, values, parameter.grad), weights)
            decay.add(values, -factor * values, weights)
    rates = {float(group["lr"]) for group in optimizer.param_groups}
    step = (
        "an update of lr, as Adam's are"
        if "betas" in optimizer.param_groups[0]
        else "an update by the gradient there is"
    )
    yield from rate.finding(
        CheckedNumber("update", f"lr of {name}", max(rates), "step 1", _MASTER, _COUNTED),
        f"{step}, leaves {{share}} of the weights as they are", weights,
    )  # fmt: skip
    decays = {float(group["lr"]) * float(group.get("weight_decay", 0)) for group in optimizer.param_groups}
    yield from decay.finding(
        CheckedNumber("weight_decay", f"lr * weight_decay of {name}", max(decays), "step 1",
              f"{_MASTER}, or stochastic rounding", _COUNTED),
        "this decay, alone, leaves {share} of the weights as they are", weights,
    )  # fmt: skip


def _updates(group: dict[str, Any], rate: float, values: torch.Tensor, gradient: Any) -> torch.Tensor:
    """About those of a step: of the learning rate's size where it divides by the gradient's, else by the gradient."""
    if "betas" in group or "alpha" in group:
        return torch.full_like(values, -rate)
    known = None if gradient is None or gradient.layout is not torch.strided else floats_on_host(gradient)
    return torch.zeros_like(values) if known is None else -rate * known


def _is_decoupled(optimizer: Any, group: dict[str, Any]) -> bool:
    """Whether weights are multiplied by 1 - lr * decay, apart from the gradient."""
    return bool(group.get("decoupled_weight_decay", isinstance(optimizer, torch.optim.AdamW)))


class _Share:
    """Counts updates that are not zero, and those that a format loses."""

    def __init__(self) -> None:
        self.nonzero = self.lost = 0

    def add(self, weights: torch.Tensor, updates: torch.Tensor, format: Format) -> None:
        found = lost_updates(weights, updates.contiguous(), format.name)
        self.nonzero, self.lost = self.nonzero + found.nonzero, self.lost + found.lost

    def finding(self, asked: CheckedNumber, words: str, format: Format) -> Iterator[Finding]:
        if not self.nonzero or self.lost < _LOST * self.nonzero:
            return
        share = f"{100 * self.lost / self.nonzero:.1f} %"
        why = (
            f"{asked.name} = {asked.value:g}: {words.format(share=share)} in {format.label}, whose half step is "
            f"{2.0**-format.precision:.3g} at a weight of 1."
        )
        yield finding(asked, why, Number(asked.name, asked.value, format.round(asked.value), format.name, asked.first))


def _counters(optimizer: Any) -> Iterator[Finding]:
    """Counters of steps that are kept in 16 bits."""
    for state in getattr(optimizer, "state", {}).values():
        step = state.get("step")
        if isinstance(step, torch.Tensor) and step.dtype in (torch.float16, torch.bfloat16):
            format = Format.of("fp16" if step.dtype is torch.float16 else "bf16")
            last = 2**format.precision
            number = Number("step", float(last + 1), float(last), format.name, f"step {last + 1}")
            yield Finding(
                "count",
                'keep the counter of steps in FP32: state["step"] = state["step"].float()',
                f"step of {type(optimizer).__name__} is kept in {format.label}: adding 1 stops at {last}, from step "
                f"{last + 1} on.",
                "seen in the optimizer's state",
                number,
            )
            return

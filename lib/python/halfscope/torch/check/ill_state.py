"""Weights, buffers and optimizer states that are ill before the step: infinite, NaN, or beyond the format."""

from __future__ import annotations

import torch

from halfscope.reporting import Finding
from halfscope.torch.check.subject import Subject
from halfscope.torch.findings.finding import digits
from halfscope.torch.findings.words import ill_words


def ill_state(subject: Subject) -> tuple[list[Finding], int]:
    """A finding for each ill tensor, and how many were looked at."""
    findings, looked = [], 0
    for name, tensor in subject.state():
        if not tensor.is_floating_point() or tensor.device.type == "meta":
            continue
        looked += 1
        found = _not_finite(name, tensor.detach()) or _beyond(name, tensor.detach(), subject)
        findings += [found] if found else []
    return findings, looked


def _not_finite(name: str, tensor: torch.Tensor) -> Finding | None:
    why = ill_words(name, tensor)
    if not why:
        return None
    change = f"restore {name} from a checkpoint before that: no format is to blame"
    return Finding("state before", change, why, "counted; no step was made", about=name)


def _beyond(name: str, tensor: torch.Tensor, subject: Subject) -> Finding | None:
    """Finite elements that the format, where it holds the state, makes infinite."""
    if not subject.stores_format or not tensor.numel():
        return None
    largest, format = float(tensor.abs().max()), subject.format
    if largest <= format.largest:
        return None
    why = f"{name} holds up to {digits(largest)}; {format.label}'s largest number is {format.largest:g}"
    return Finding(
        "state before", f"keep {name} in FP32, or scale it down", why, "counted; neither was tried", about=name
    )  # fmt: skip

"""Updates of a step that weights in the format would lose."""

from __future__ import annotations

from dataclasses import dataclass

from halfscope import lost_updates
from halfscope.reporting import Finding
from halfscope.torch.check.subject import Subject
from halfscope.torch.findings.finding import in_percent
from halfscope.torch.tensors.elements import on_host

_TOLD = 0.05  # share of the updates


@dataclass(frozen=True)
class Updates:
    """Elements that a step changed, and those of them that stay in the format."""

    nonzero: int
    lost: int

    @property
    def share(self) -> float:
        return self.lost / self.nonzero if self.nonzero else 0.0


def count_updates(subject: Subject, changes: dict, format: str) -> Updates:
    """changes: by weight, what a step in FP32 added."""
    nonzero = lost = 0
    weights = dict(subject.model.named_parameters())
    for name, change in changes.items():
        weight = on_host(weights[name].detach()).float().reshape(-1).contiguous()
        found = lost_updates(weight, on_host(change).float().contiguous(), format)
        nonzero, lost = nonzero + found.nonzero, lost + found.lost
    return Updates(nonzero, lost)


def update_findings(subject: Subject, changes: dict, updates: Updates) -> list[Finding]:
    """One, where weights are stored in the format and it loses a share that trainings feel."""
    if not subject.stores_format or updates.share < _TOLD:
        return []
    label = subject.format.label
    rates = sorted({float(group["lr"]) for optimizer in subject.optimizers for group in optimizer.param_groups})
    wide = count_updates(subject, changes, "fp32")
    why = (
        f"{label} weights lose {updates.lost} of the {updates.nonzero} updates of this step "
        f"({in_percent(updates.share)}): an update below half a step of {label}, "
        f"{2.0**-subject.format.precision:.3g} of a weight of 1, is lost"
    )
    if rates:
        why += f"; learning rate {', '.join(f'{rate:g}' for rate in rates)}"
    return [
        Finding(
            "lost updates", "keep an FP32 master copy of the weights (FP32 weights under torch.autocast)", why,
            f"counted over one step; FP32 weights lose {in_percent(wide.share)}", about=updates,
        )
    ]  # fmt: skip

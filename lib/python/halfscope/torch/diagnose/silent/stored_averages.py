"""Buffers that a step moves by less than half a step of the format, which autocast leaves in FP32."""

from __future__ import annotations

from dataclasses import dataclass

from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.diagnose.silent.silent import Silent, Steps, seen_alone
from halfscope.torch.findings.finding import Finding, digits


@dataclass(frozen=True)
class _Average:
    name: str
    change: float  # the largest that is lost
    lost: int  # elements
    moved: int


def _look(steps: Steps) -> list[_Average]:
    buffers = {} if steps.session.policy.fp32_parameters else steps.exact.buffers
    found = []
    for name, after in buffers.items():
        before = steps.session.before.model.get(name)
        if before is None or not after.is_floating_point():
            continue
        changes = after.float() - before.float()
        # Changes that another rounding of the step undoes are round-off about an average that does not move.
        moved = (changes != 0) & ((after.float() - steps.outcome.buffers[name].float()).abs() < changes.abs() / 2)
        if 2 * int(moved.sum()) < int((changes != 0).sum()):
            continue
        stored = device_of(before).round(before, steps.session.format.name)
        stays = device_of(stored).round(stored + changes, steps.session.format.name) == stored
        lost = stays & moved
        if bool(lost.any()) and int(lost.sum()) * 2 >= int(moved.sum()):
            found.append(_Average(name, float(changes[lost].abs().max()), int(lost.sum()), int(moved.sum())))
    return found


def _words(steps: Steps, average: _Average, sure: str) -> Finding:
    label = steps.session.format.label
    return Finding(
        "average",
        f"keep {average.name} in FP32",
        f"{average.name}: the step changes it by up to {digits(average.change)}, which {label} loses in "
        f"{average.lost} of {average.moved} elements: stored in {label} it never moves.",
        sure,
        average.name,
    )


STORED_AVERAGES = Silent(
    "average", _look,
    seen_alone("computed from the FP32 step; the emulation itself keeps buffers that are updated in place in FP32"),
    _words,
)  # fmt: skip

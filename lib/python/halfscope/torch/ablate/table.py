"""Table and verdict of an ablation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from halfscope._core import confidence_95
from halfscope.text_tables import aligned
from halfscope.torch.policy import Policy

if TYPE_CHECKING:
    from halfscope.torch.emulate.emulation import Emulation

SMALL = 0.01  # share of the metric: a difference that seeds agree on and nobody minds


@dataclass
class AblationArm:
    """A policy at a loss scale: the metric of every seed, and what was rounded in the first of them."""

    name: str
    policy: Policy
    scale: str | float
    metrics: list[float] = field(default_factory=list)
    lost_updates: list[float] = field(default_factory=list)
    flushed: float = 0.0  # share of the gradients that were not zero, first seed
    overflow: str = ""  # the first, of the first seed that has one

    def add(self, metric: float, emulation: Emulation | None) -> None:
        """Enters a training with the next seed; one in FP32 is not emulated."""
        self.metrics.append(metric)
        if emulation is None:
            self.lost_updates.append(0.0)
            return
        counts = emulation.counts()
        gradients = counts["gradients"]
        if len(self.metrics) == 1 and gradients["nonzero"]:
            self.flushed = gradients["flushed"] / gradients["nonzero"]
        self.lost_updates.append(counts["lost_updates"])
        first = emulation.first_overflow
        if first is not None and not self.overflow:
            self.overflow = f"step {first.step}, {first.role.replace('_', ' ')} {first.tensor}"

    @property
    def loss_scale(self) -> str:
        """Loss scale as a setting of `halfscope run`."""
        return "none" if self.scale == 1 else str(self.scale)

    def settings(self) -> dict[str, str]:
        """Settings of the arm in experiment.toml: a policy that has a name, and the loss scale."""
        settings = {"summary": f"{self.policy.name}, loss scale {self.scale}", "loss_scale": self.loss_scale}
        return {**settings, "policy": self.policy.name} if self.policy.lists else settings

    @property
    def diverged(self) -> int:
        """Seeds that ended in an infinite or NaN metric."""
        return sum(not math.isfinite(metric) for metric in self.metrics)

    @property
    def mean(self) -> float:
        """Over the seeds; NaN where one has diverged."""
        return math.nan if self.diverged else fmean(self.metrics)

    @property
    def half_width(self) -> float:
        """Half width of the 95 % interval of the mean; NaN for one seed, or if one has diverged."""
        if self.diverged or len(self.metrics) < 2:
            return math.nan
        return confidence_95(self.metrics)

    @property
    def mean_lost_updates(self) -> float:
        return fmean(self.lost_updates)


def fp32_arm(arms: list[AblationArm]) -> AblationArm | None:
    """The arm that the others are compared with."""
    return next((arm for arm in arms if not arm.policy.base.rounds), None)


def detectable(arm: AblationArm, baseline: AblationArm | None) -> float:
    """The smallest difference from the baseline that the seeds tell from none: the half width of the 95 % interval of
    the paired difference. NaN without a second seed, and where a seed diverged."""
    if baseline is None or arm is baseline or arm.diverged or baseline.diverged:
        return math.nan
    if len(arm.metrics) < 2 or len(arm.metrics) != len(baseline.metrics):
        return math.nan
    return confidence_95([ours - theirs for ours, theirs in zip(arm.metrics, baseline.metrics)])


def table_text(arms: list[AblationArm], metric: str) -> str:
    """Aligned columns."""
    rows = [
        ("arm", "seeds", metric, "95 % interval", "detectable", "gradients flushed", "updates lost", "first overflow")
    ]
    baseline = fp32_arm(arms)
    for arm in arms:
        interval = "-" if math.isnan(arm.half_width) else f"± {arm.half_width:.2g}"
        least = detectable(arm, baseline)
        mean = f"diverged in {arm.diverged}" if arm.diverged else f"{arm.mean:.5g}"
        rows.append((
            arm.name, str(len(arm.metrics)), mean, interval, "-" if math.isnan(least) else f"{least:.2g}",
            f"{100 * arm.flushed:.1f} %", f"{100 * arm.mean_lost_updates:.1f} %", arm.overflow or "-",
        ))  # fmt: skip
    return aligned(rows, right=False)


def verdict_text(arms: list[AblationArm], metric: str, lower_is_better: bool) -> str:
    baseline = fp32_arm(arms)
    others = [arm for arm in arms if arm is not baseline]
    if baseline is None or not others:
        return "No verdict: an ablation compares arms with the policy fp32."
    if baseline.diverged:
        return f"No verdict: {baseline.name} itself diverged in {baseline.diverged} of {len(baseline.metrics)} seeds."
    return "\n".join(_judged(arm, baseline, metric, lower_is_better) for arm in others)


def _share(difference: float, of: float) -> str:
    """A difference in percent of a metric that is not 0."""
    return f"{100 * difference / abs(of):.2g} %" if of else f"{difference:.2g}"


def _judged(arm: AblationArm, baseline: AblationArm, metric: str, lower_is_better: bool) -> str:
    if arm.diverged:
        return f"{arm.name} diverges in {arm.diverged} of {len(arm.metrics)} seeds."
    difference = arm.mean - baseline.mean
    numbers = f"{metric} {arm.mean:.5g} beside {baseline.mean:.5g} of {baseline.name}"
    least = detectable(arm, baseline)
    if math.isnan(least):
        return f"{arm.name}: {numbers} (one seed: no interval)."
    change = _share(abs(difference), baseline.mean)
    if abs(difference) + least <= SMALL * abs(baseline.mean):
        most = _share(abs(difference) + least, baseline.mean)
        return f"{arm.name} ends as {baseline.name} does, within {most}: {numbers}."
    if abs(difference) <= least:
        return (
            f"{arm.name} is not told from {baseline.name} by {len(arm.metrics)} seeds: {numbers}; "
            f"they tell a difference of {_share(least, baseline.mean)} or more."
        )
    kind = "worse" if (difference > 0) == lower_is_better else "better"
    if abs(difference) < SMALL * abs(baseline.mean):
        return f"{arm.name} ends as {baseline.name} does: {numbers}, {change} {kind}."
    return f"{arm.name} ends {kind} than {baseline.name}, by {change}: {numbers}."

"""The loss-scale explorer of an experiment: the gradients of its FP32 arm, and the scales at which its arms ended."""

from __future__ import annotations

from html import escape
from math import log2
from statistics import fmean

from halfscope import _core
from halfscope.results import Experiment
from halfscope.results.arms import WATCHED
from halfscope.results.loss_scales import GRADIENTS, advice, baseline, gradient_name, same_task


def explorer_section(experiment: Experiment) -> str:
    """The advice in words and the explorer, as HTML; empty where no gradients were recorded."""
    arm = explored_arm(experiment)
    found = advice(experiment, arm)
    if arm is None or found is None:
        return ""
    data = explorer_data(experiment, arm)
    of_whom = "the model" if arm == WATCHED else arm
    data.advise(found.fits, found.advice)
    return (
        f"<h3>Loss scales for the gradients of {escape(of_whom)}</h3>\n{data.answer()}\n"
        f'<div class="explorer" id="{escape(experiment.name)}-scales">\n'
        f'<script type="application/json">{data.json()}</script>\n</div>'
    )


def explored_arm(experiment: Experiment) -> str | None:
    """FP32's, whose gradients no cast has flushed; else that of a watched training."""
    if experiment.runs.get(WATCHED):
        return WATCHED
    return baseline(experiment)


def explorer_data(experiment: Experiment, arm: str) -> _core.ExplorerData:
    """The gradients of `arm` over all seeds, without the loss scale, with a mark per arm that has a loss scale."""
    data = _core.ExplorerData(experiment.format_of(arm))

    def add(step: int, role: str, tensor: str, scale_log2: int, histogram: _core.Histogram) -> None:
        if role in GRADIENTS:
            data.add(gradient_name(role, tensor), role, step, histogram, -scale_log2)

    for run in experiment.runs[arm]:
        run.each_histogram(add)
    for other, runs in experiment.runs.items():
        ends = [run.final_scale for run in runs if run.final_scale is not None]
        if other != arm and ends and min(ends) > 0 and _is_scaled(experiment, other, arm):
            data.mark(other, fmean(map(log2, ends)))
    return data


def _is_scaled(experiment: Experiment, arm: str, base: str) -> bool:
    """Whether it trains what `base` trains, with a loss scale that means something."""
    return bool(experiment.runs[arm]) and not experiment.arm(arm).in_fp32 and same_task(experiment, arm, base)

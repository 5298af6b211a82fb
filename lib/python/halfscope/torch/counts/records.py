"""Lines of a run's records from the observations of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfscope import Histogram
from halfscope.torch.counts.histogram_sums import power_of_two, together

if TYPE_CHECKING:
    from halfscope.torch.counts.histograms import Observations


def histogram_records(seen: Observations, step: int) -> list[dict]:
    """Lines of histograms.jsonl; each names its format unless that is fp16."""
    return [
        {"step": step, "tensor": tensor, "role": role, "scale": seen.scales[role, tensor], **_counts(found)}
        for (role, tensor), found in seen.histograms.items()
    ]


def tensor_records(seen: Observations) -> list[dict]:
    """The `tensors` of a line of metrics.jsonl: effects of the format on each tensor, with the loss scale in it."""
    return [
        _tensor_record(role, tensor, seen.scales[role, tensor], found)
        for (role, tensor), found in seen.histograms.items()
        if role != "update_ratio"
    ]


def update_records(seen: Observations) -> list[dict]:
    """The `updates` of a line of metrics.jsonl."""
    return [
        {
            "tensor": tensor, "elements": found.elements, "nonzero": found.nonzero, "lost": found.lost,
            "applied_over_intended": found.applied_over_intended,
        }
        for tensor, found in seen.updates.items()
    ]  # fmt: skip


def gradient_record(seen: Observations, scale: float) -> dict:
    """The `gradients` of a line of metrics.jsonl, for `halfscope replay`: all weight gradients, `scale` in them.

    finite: in their own type, as the run's scaler saw them, or, where they were rounded to the format, in that.
    """
    found = together(seen.unscaled("weight_gradient").values(), seen.format).scaled(power_of_two(scale))
    beyond = found.what_if(1.0).overflow
    finite = found.infinities + found.nans + (beyond if seen.is_emulated else 0) == 0
    record = {"finite": finite, "max_abs": found.max_abs if finite else None, "histogram": _counts(found)}
    return {**record, "would_overflow": beyond} if finite and beyond else record


def _counts(histogram: Histogram) -> dict:
    """Counts as histograms.jsonl has them, which leaves max_abs out."""
    record = histogram.record()
    del record["max_abs"]
    return record


def _tensor_record(role: str, tensor: str, scale: float, histogram: Histogram) -> dict:
    cast = histogram.what_if(1.0)
    return {
        "tensor": tensor, "role": role, "scale": scale, "elements": cast.elements, "zeros": histogram.zeros,
        "flushed": cast.flushed, "subnormal": cast.subnormal, "overflow": cast.overflow,
        "nonfinite": histogram.infinities + histogram.nans, "max_abs": histogram.max_abs,
    }  # fmt: skip

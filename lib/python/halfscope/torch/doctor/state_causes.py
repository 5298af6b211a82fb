"""Causes of a step whose state in the format is at fault: updates that are lost, an eps that is 0, an infinity."""

from __future__ import annotations

from collections.abc import Collection

import torch

from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.local_causes import causes_of
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.words import listed


def state_words(about: Examination) -> str:
    """An optimizer's eps, the first call that is not finite, and elements that FP32 moves and the format does not."""
    log, origins = about.narrow.log, about.first.origins
    call = origins[0].call(log) if origins and not origins[0].is_backward else None
    causes = [] if call is None else causes_of([call], about.program.format)
    words = [cause.words for cause in causes[:1]] or [origin.words(log) for origin in origins[:1]]
    return "; ".join(filter(None, [_eps_words(about) if origins else "", *words, _lost_words(about)]))


def last_write(about: Examination, storages: Collection[int]) -> CallPlace | None:
    """Place at which the step writes to one of these storages last."""
    places = [place for storage, place in about.narrow.log.writes.items() if storage in storages]
    return places[-1] if places else None


def _lost_words(about: Examination) -> str:
    """Counts over the weights and buffers whose change is told."""
    names = {alarm.distance.name for alarm in about.alarms if alarm.distance.group == "change"}
    moved = stays = explained = 0
    state = dict(about.program.state())
    for name, exact in about.exact.outcome.changes.items():
        if name not in names or name not in state:
            continue
        narrow = about.narrow.outcome.changes.get(name, torch.zeros_like(exact))
        lost = (exact != 0) & (narrow == 0)
        moved, stays = moved + int((exact != 0).sum()), stays + int(lost.sum())
        explained += int((lost & (exact.abs() <= _half_step(about, state[name]))).sum())
    if not stays:
        return ""
    found = f"{stays} of {moved} elements that FP32 moves stay ({100 * stays / moved:.1f} %)"
    if explained < stays:
        return found
    format = about.program.format
    return f"{found}: each change is below half a step of {format.label}, {2.0**-format.precision:.3g} of a number of 1"


def _half_step(about: Examination, tensor: torch.Tensor) -> torch.Tensor:
    """Half a step of the format at each element."""
    format = about.program.format
    size = tensor.detach().float().reshape(-1).abs().clamp(min=format.smallest_normal)
    return torch.ldexp(torch.ones_like(size), torch.frexp(size).exponent - format.precision - 1)


def _eps_words(about: Examination) -> str:
    """An eps that the format does not hold."""
    format = about.program.format
    lost = {
        f"{type(optimizer).__name__} divides by a root plus eps, and eps {group['eps']:g} is 0 in {format.label}"
        for optimizer in about.program.optimizers
        for group in optimizer.param_groups
        if group.get("eps") and format.round(group["eps"]) == 0
    }
    return listed(sorted(lost))

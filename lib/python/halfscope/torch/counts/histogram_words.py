"""Verdict of the watched steps, as lines: faults that no loss scale helps, the loss scale to type, then the counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from halfscope import Histogram
from halfscope.formats import Format, label
from halfscope.reporting import Finding
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.counts.histogram_sums import together
from halfscope.torch.counts.histograms import AT_OPTIMIZER, OPTIMIZER_STATE
from halfscope.torch.counts.totals import Totals
from halfscope.torch.words import called, counted, listed, number, percent

_LOST = 0.01  # share of the updates that a master copy is for


@dataclass(frozen=True)
class Circumstances:
    """Circumstances of a watch: which parts of the model and of the training it does not see."""

    layers: int = 0
    unseen: list[str] = field(default_factory=list)  # layers
    compiled: bool = False
    unowned: list[str] = field(default_factory=list)  # parameters of no optimizer that was given
    unknown_scale: float | None = None  # scale of a GradScaler that was not given
    optimizer_steps: int = 0
    ended_steps: int = 0
    ranks: int = 1


def verdict(totals: Totals, about: Circumstances) -> str:
    gradients = totals.gradients()
    sentences = [*_overflow(totals), *_scaler(about)]
    if not any(counts.nonzero for counts in gradients.values()):
        sentences.append(_without_gradients(gradients, about))
    else:
        if about.unknown_scale is None:
            sentences.append(_loss_scale(totals))
        sentences += [_flushed(totals, about), *_flushed_before(totals), *_infinite(gradients), *_changed(totals)]
        sentences += [*_updates(totals), *_optimizer_state(totals)]
    return "\n".join([*sentences, *gaps(totals.steps, totals.unreadable, about)])


def histogram_findings(totals: Totals, about: Circumstances) -> Iterator[Finding]:
    """The loss scale to type, and updates that weights in the format lose."""
    if about.unknown_scale is None and any(counts.nonzero for counts in totals.gradients().values()):
        yield from totals.advise_scale().report.findings
    if totals.nonzero_updates and totals.lost_updates / totals.nonzero_updates >= _LOST:
        share = percent(totals.lost_updates / totals.nonzero_updates)
        why = f"{label(totals.format)} weights would lose {share} of the updates"
        yield Finding("lost updates", "keep an FP32 master copy", why, f"counted over {_watched(totals.steps)}")


def _watched(steps: int) -> str:
    return counted(steps, "watched step")


def _overflow(totals: Totals) -> list[str]:
    activations = totals.of["activation"]
    beyond = {name: _beyond(counts, totals.flushed_before("activation", name)) for name, counts in activations.items()}
    worst = sorted(
        (name for name in beyond if beyond[name]), key=lambda name: -beyond[name] / activations[name].elements
    )
    if not worst:
        return _not_finite(totals)
    shares = [f"{called(name)} ({beyond[name]} of {activations[name].elements} elements)" for name in worst]
    return [
        f"{label(totals.format)} overflows in the outputs of {len(worst)} of {len(activations)} layers, which no loss "
        f"scale helps: {listed(shares)}. Keep these layers in {_wider(totals.format)}.",
        *_not_finite(totals),
    ]


def _not_finite(totals: Totals) -> list[str]:
    """Outputs that are infinite or NaN in a type that is wider than the format: no fault of the format's."""
    broken = {
        name: counts.infinities + counts.nans
        for name, counts in totals.of["activation"].items()
        if not totals.flushed_before("activation", name) and counts.infinities + counts.nans
    }
    if not broken:
        return []
    shares = [f"{called(name)} ({count} of {totals.of['activation'][name].elements})" for name, count in broken.items()]
    return [
        f"Outputs are infinite or NaN in the run's own format, before any cast to {label(totals.format)}: "
        f"{listed(shares)}. Look at the inputs and the loss first."
    ]


def _wider(format: str) -> str:
    """Formats of PyTorch's that hold more."""
    return "FP32" if Format.of(format).has_range_of_fp32 else "FP32 or BF16"


def _beyond(histogram: Histogram, narrow: str | None) -> int:
    """Elements that the format makes infinite; narrow: the format of the tensor, where that has done so already."""
    own = histogram.infinities + histogram.nans if narrow else 0
    return histogram.what_if(1.0).overflow + own


def _scaler(about: Circumstances) -> list[str]:
    if about.unknown_scale is not None:
        return [
            f"A GradScaler that was not given scales the loss, by {about.unknown_scale:g} when last seen: all "
            "gradients below carry its scale. Give it: watch(..., scaler=scaler)."
        ]
    return []


def _without_gradients(gradients: dict[tuple[str, str], Histogram], about: Circumstances) -> str:
    if about.optimizer_steps and not about.ended_steps:
        return (
            f"No step has ended: the optimizer made {about.optimizer_steps}, and the scaler that was given was never "
            "updated. Call scaler.update() after each step, or leave scaler= out."
        )
    if any(counts.infinities + counts.nans for counts in gradients.values()):
        return "All gradients are infinite or NaN: the loss scale is too large, or the loss itself is not finite."
    if any(counts.elements for counts in gradients.values()):
        return "All gradients are zero."
    return "No gradient has been seen: train a step first."


def _flushed(totals: Totals, about: Circumstances) -> str:
    ranks = f", over {about.ranks} ranks" if about.ranks > 1 else ""
    opening = f"Over {totals.steps} watched step{'s' * (totals.steps != 1)}{ranks}"
    parts = []
    for role in GRADIENTS:
        kept = (counts for name, counts in totals.of[role].items() if not totals.flushed_before(role, name))
        whole = together(kept, totals.format)
        if whole.nonzero:
            parts.append(f"{percent(whole.what_if(1.0).flushed_fraction)} of the {role.replace('_', ' ')}s")
    if not parts:
        return f"{opening}: what {label(totals.format)} flushes of the gradients is unknown."
    return f"{opening}: without loss scaling {label(totals.format)} flushes {' and '.join(parts)}."


def _flushed_before(totals: Totals) -> list[str]:
    """Lines on gradients that came in a format that has flushed them already."""
    return _narrow(totals, totals.gradients(), "The gradients of {} were")


def _narrow(totals: Totals, tensors: dict[tuple[str, str], Histogram], subject: str) -> list[str]:
    """A sentence per format; subject: "The gradients of {} were", with "4 tensors" put in."""
    by_format: dict[str, dict[str, Histogram]] = {}
    for (role, name), counts in tensors.items():
        format = totals.flushed_before(role, name)
        if format:
            by_format.setdefault(format, {})[name] = counts
    sentences = []
    for format, narrow in by_format.items():
        whole = together(narrow.values(), totals.format)
        sentences.append(
            f"{subject.format(number(narrow, 'tensor'))} {label(format)} already "
            f"({listed(map(called, narrow))}): {whole.zeros} of {whole.elements} elements are exact zeros, and "
            f"{label(format)} may have flushed them. Watch a run in {_wider(totals.format)} to know."
        )
    return sentences


def _infinite(gradients: dict[tuple[str, str], Histogram]) -> list[str]:
    only = [name for (_, name), counts in gradients.items() if counts.infinities + counts.nans and not counts.nonzero]
    if not only:
        return []
    return [f"All gradients of {number(only, 'tensor')} were infinite or NaN: {listed(map(called, only))}."]


def _changed(totals: Totals) -> list[str]:
    if not totals.changed_steps:
        return []
    changed = totals.of[AT_OPTIMIZER]
    before = max(totals.of["weight_gradient"][name].max_abs for name in changed)
    after = max(counts.max_abs for counts in changed.values())
    return [
        f"In {totals.changed_steps} of {totals.steps} watched steps weight gradients changed between the backward pass "
        f"and the optimizer, as clipping does: the largest was {before:.3g}, then {after:.3g}. "
        f"{label(totals.format)} meets the former, and the loss scale is for these."
    ]


def _loss_scale(totals: Totals) -> str:
    before = {format for key in totals.gradients() if (format := totals.flushed_before(*key))}
    left = f"From what {' and '.join(sorted(map(label, before)))} has left: " if before else ""
    return f"{left}{totals.advise_scale().verdict}"


def _updates(totals: Totals) -> list[str]:
    sentences = []
    if totals.nonzero_updates:
        share = totals.lost_updates / totals.nonzero_updates
        sentences.append(
            f"{label(totals.format)} weights would lose {percent(share)} of the updates{_master_copy(share)}."
        )
    for format, counts in totals.stalled.items():
        if counts.with_gradient:
            share = counts.unmoved / counts.with_gradient
            sentences.append(
                f"{label(format)} weights: {counts.unmoved} of {counts.with_gradient} with a gradient did not move "
                f"({percent(share)}){_master_copy(share)}."
            )
    return sentences


def _optimizer_state(totals: Totals) -> list[str]:
    """Lines on the optimizer's state of all parameters together, by the state's own name."""
    states = {(OPTIMIZER_STATE, tensor): counts for tensor, counts in totals.of[OPTIMIZER_STATE].items()}
    by_name: dict[str, list[Histogram]] = {}
    for key, counts in states.items():
        if not totals.flushed_before(*key):
            by_name.setdefault(key[1].rpartition(".")[2], []).append(counts)
    return [*_narrow(totals, states, "Optimizer state: {} came as"), *_cast_of_state(totals, by_name)]


def _cast_of_state(totals: Totals, by_name: dict[str, list[Histogram]]) -> list[str]:
    casts = {name: together(counts, totals.format).what_if(1.0) for name, counts in by_name.items()}
    flushed = [f"{percent(cast.flushed_fraction)} of {name}" for name, cast in casts.items() if cast.nonzero]
    if not flushed:
        return []
    beyond = [f"{cast.overflow} elements of {name}" for name, cast in casts.items() if cast.overflow]
    overflow = f" and overflow in {listed(beyond)}" if beyond else ""
    harmed = beyond or any(cast.flushed_fraction >= 0.01 for cast in casts.values())
    return [
        f"{label(totals.format)} optimizer state would flush {' and '.join(flushed)}{overflow}"
        f"{': keep it in FP32' if harmed else ''}."
    ]


def _master_copy(share: float) -> str:
    return "" if share < _LOST else ": keep an FP32 master copy"


def gaps(watched: int, unreadable: dict[str, str], about: Circumstances) -> list[str]:
    """Lines on what was not seen; watched: steps; unreadable: reasons by tensor."""
    sentences = []
    if about.unseen and watched:
        hint = (
            " torch.compile ignores hooks on what it compiled before: watch first, or call torch._dynamo.reset()."
            if about.compiled
            else ""
        )
        names = listed(map(called, about.unseen))
        sentences.append(f"{len(about.unseen)} of {about.layers} layers were never called: {names}.{hint}")
    if about.unowned:
        sentences.append(
            f"{number(about.unowned, 'parameter')} of the model in no optimizer that was given, updates not counted: "
            f"{listed(about.unowned)}."
        )
    if unreadable:
        reasons = [f"{called(name)} ({reason})" for name, reason in unreadable.items()]
        sentences.append(f"{number(reasons, 'tensor')} could not be read: {listed(reasons)}.")
    return sentences

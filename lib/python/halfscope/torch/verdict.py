"""Verdict of the watched steps in words: first of all, sentences on what no loss scale helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from halfscope import Histogram
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.observations import AT_OPTIMIZER
from halfscope.torch.totals import Totals, together


@dataclass(frozen=True)
class Circumstances:
    """Of a watch: which parts of the model and of the training it does not see."""

    layers: int = 0
    unseen: list[str] = field(default_factory=list)  # layers
    compiled: bool = False
    unowned: list[str] = field(default_factory=list)  # parameters of no optimizer that was given
    unknown_scale: float | None = None  # of a GradScaler that was not given
    optimizer_steps: int = 0
    ended_steps: int = 0
    ranks: int = 1


def verdict(totals: Totals, about: Circumstances) -> str:
    gradients = totals.gradients()
    sentences = [*_overflow(totals.of["activation"]), *_scaler(about)]
    if not any(found.nonzero for found in gradients.values()):
        sentences.append(_without_gradients(gradients, about))
    else:
        sentences += [_flushed(totals, about), *_already_fp16(totals), *_infinite(gradients), *_changed(totals)]
        if about.unknown_scale is None:
            sentences.append(_loss_scale(totals))
        sentences += _updates(totals)
    return " ".join([*sentences, *_gaps(totals, about)])


def _overflow(activations: dict[str, Histogram]) -> list[str]:
    beyond = {name: _beyond_fp16(found) for name, found in activations.items()}
    worst = sorted(
        (name for name in beyond if beyond[name]), key=lambda name: -beyond[name] / activations[name].elements
    )
    if not worst:
        return []
    shares = [f"{_called(name)} ({beyond[name]} of {activations[name].elements} elements)" for name in worst]
    return [
        f"FP16 overflows in the outputs of {len(worst)} of {len(activations)} layers, which no loss scale helps: "
        f"{_listed(shares)}. Keep these layers in FP32 or BF16."
    ]


def _beyond_fp16(histogram: Histogram) -> int:
    return histogram.what_if(1.0).overflow + histogram.infinities + histogram.nans


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
    if any(found.infinities + found.nans for found in gradients.values()):
        return "All gradients are infinite or NaN: the loss scale is too large, or the loss itself is not finite."
    if any(found.elements for found in gradients.values()):
        return "All gradients are zero."
    return "No gradient has been seen: train a step first."


def _flushed(totals: Totals, about: Circumstances) -> str:
    ranks = f", over {about.ranks} ranks" if about.ranks > 1 else ""
    opening = f"Over {totals.steps} watched step{'s' * (totals.steps != 1)}{ranks}"
    parts = []
    for role in GRADIENTS:
        whole = together(found for name, found in totals.of[role].items() if not totals.was_fp16(role, name))
        if whole.nonzero:
            parts.append(f"{_percent(whole.what_if(1.0).flushed_fraction)} of the {role.replace('_', ' ')}s")
    if not parts:
        return f"{opening}: what FP16 flushes of the gradients is unknown."
    return f"{opening}: without loss scaling FP16 flushes {' and '.join(parts)}."


def _already_fp16(totals: Totals) -> list[str]:
    narrow = {name: found for (role, name), found in totals.gradients().items() if totals.was_fp16(role, name)}
    if not narrow:
        return []
    whole = together(narrow.values())
    return [
        f"The gradients of {_number(narrow, 'tensor')} were FP16 already ({_listed(map(_called, narrow))}): "
        f"{whole.zeros} of {whole.elements} elements are exact zeros, and FP16 may have flushed them. "
        "Watch a run in FP32 or BF16 to know."
    ]


def _infinite(gradients: dict[tuple[str, str], Histogram]) -> list[str]:
    only = [name for (_, name), found in gradients.items() if found.infinities + found.nans and not found.nonzero]
    if not only:
        return []
    return [f"All gradients of {_number(only, 'tensor')} were infinite or NaN: {_listed(map(_called, only))}."]


def _changed(totals: Totals) -> list[str]:
    if not totals.changed_steps:
        return []
    changed = totals.of[AT_OPTIMIZER]
    before = max(totals.of["weight_gradient"][name].max_abs for name in changed)
    after = max(found.max_abs for found in changed.values())
    return [
        f"In {totals.changed_steps} of {totals.steps} watched steps weight gradients changed between the backward pass "
        f"and the optimizer, as clipping does: the largest was {before:.3g}, then {after:.3g}. FP16 meets the "
        "former, and the loss scale is for these."
    ]


def _loss_scale(totals: Totals) -> str:
    left = ", from what FP16 has left" if any(totals.was_fp16(*key) for key in totals.gradients()) else ""
    return f"Loss scale{left}: {totals.advise_scale().verdict}."


def _updates(totals: Totals) -> list[str]:
    sentences = []
    if totals.nonzero_updates:
        share = totals.lost_updates / totals.nonzero_updates
        sentences.append(f"FP16 weights would lose {_percent(share)} of the updates{_master_copy(share)}.")
    for format, found in totals.stalled.items():
        if found.with_gradient:
            share = found.unmoved / found.with_gradient
            sentences.append(
                f"{format.upper()} weights: {found.unmoved} of {found.with_gradient} with a gradient did not move "
                f"({_percent(share)}){_master_copy(share)}."
            )
    return sentences


def _master_copy(share: float) -> str:
    return "" if share < 0.01 else ": keep an FP32 master copy"


def _gaps(totals: Totals, about: Circumstances) -> list[str]:
    sentences = []
    if about.unseen and totals.steps:
        hint = (
            " torch.compile ignores hooks on what it compiled before: watch first, or call torch._dynamo.reset()."
            if about.compiled
            else ""
        )
        names = _listed(map(_called, about.unseen))
        sentences.append(f"{len(about.unseen)} of {about.layers} layers were never called: {names}.{hint}")
    if about.unowned:
        sentences.append(
            f"{_number(about.unowned, 'parameter')} of the model in no optimizer that was given, updates not counted: "
            f"{_listed(about.unowned)}."
        )
    if totals.unreadable:
        reasons = [f"{_called(name)} ({reason})" for name, reason in totals.unreadable.items()]
        sentences.append(f"{_number(reasons, 'tensor')} could not be read: {_listed(reasons)}.")
    return sentences


def _listed(names: Iterable[str]) -> str:
    """At most four of them."""
    every = list(names)
    return ", ".join(every) if len(every) <= 4 else f"{', '.join(every[:3])} and {len(every) - 3} more"


def _number(things: object, noun: str) -> str:
    size = len(things)  # type: ignore[arg-type]
    return f"{size} {noun}{'s' * (size != 1)}"


def _called(name: str) -> str:
    """The model itself has no name where it is a layer."""
    return name or "the model"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

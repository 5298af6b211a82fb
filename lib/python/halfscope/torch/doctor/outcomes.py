"""Outcome of a step, and how far two outcomes are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from halfscope._core import DistanceSums
from halfscope.torch.doctor.decisions import Decision, changed_in
from halfscope.torch.doctor.rounding_mode import Outer
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.operations.counterparts import view_of
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.distance import distance_sums
from halfscope.torch.tensors.storages import covers_storage, place_of_elements

_SHARE = 0.01  # a gradient's norm is at least so much of its share of all gradients together
ALL_GRADIENTS = "all gradients together"
FROM_OUTSIDE = "from outside"  # end of the name of a tensor that is neither the model's nor an optimizer's


@dataclass
class Outcome:
    """Everything that a step leaves."""

    loss: float | None = None
    numbers: dict[str, torch.Tensor] = field(default_factory=dict)  # loss, results, outputs of the model
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    changes: dict[str, torch.Tensor] = field(default_factory=dict)  # weights, buffers and tensors from outside
    decisions: dict[str, torch.Tensor] = field(default_factory=dict)  # integers and booleans that are returned
    choices: dict[CallPlace, list[Decision]] = field(default_factory=dict)  # decisions within the step, by place


@dataclass(frozen=True)
class Ending:
    """A step as it ended.

    start: weights and buffers before it. unscale: factor of the gradients. names: of tensors that are not the model's,
    by storage, the same in all runs; new ones are entered.
    """

    loss: torch.Tensor | None
    result: Any
    outputs: list[torch.Tensor]  # results of the model
    start: dict[str, torch.Tensor]
    unscale: float
    names: dict[int, str]


def outcome_of(ended: Ending, model: torch.nn.Module, outer: dict[int, Outer]) -> Outcome:
    """outer: storages from outside of the run that it touched."""
    loss = ended.loss
    found = Outcome(None if loss is None else float(loss.detach().sum()))
    parts = {"result": _returned(ended.result, loss), "output": ended.outputs}
    named = [(f"{kind} {index + 1}", each) for kind, tensors in parts.items() for index, each in enumerate(tensors)]
    for name, tensor in [*([] if loss is None else [("loss", loss)]), *named]:
        target = found.numbers if tensor.is_floating_point() else found.decisions
        target[name] = tensor.detach().clone()
    for name, weight in model.named_parameters():
        if weight.grad is not None:
            gradient = weight.grad.detach()
            gradient = gradient.to_dense() if gradient.is_sparse else gradient
            found.gradients[name] = gradient if ended.unscale == 1 else gradient.mul_(ended.unscale)
    found.changes = _changes(ended, {**dict(model.named_parameters()), **dict(model.named_buffers())}, outer)
    return found


def _changes(ended: Ending, state: dict[str, torch.Tensor], outer: dict[int, Outer]) -> dict[str, torch.Tensor]:
    """After minus before, of what the step wrote to; it takes the memory of what was before."""
    found, known = {}, set()
    for name, tensor in state.items():
        start = ended.start.get(name)
        if start is None or not tensor.is_floating_point() or start.numel() != tensor.numel():
            known.add(storage_key(tensor))
            continue
        before = _before(start, outer.get(storage_key(start)), known)
        known |= {storage_key(start), storage_key(tensor)}
        if before is None and place_of_elements(start) == place_of_elements(tensor):
            continue  # nothing was written to it
        after = tensor.detach().reshape(start.shape)
        before = start.clone() if before is None else before
        if not torch.equal(before, after):
            found[name] = torch.sub(after, before, out=before).reshape(-1)
    for key, kept in outer.items():
        if key not in known and kept.adopted is not None and kept.flat.is_floating_point():
            name = ended.names.setdefault(key, f"tensor {len(ended.names) + 1} {FROM_OUTSIDE}")
            found[name] = torch.sub(kept.flat, kept.adopted, out=kept.adopted)
    return found


def _before(start: torch.Tensor, kept: Outer | None, known: set[int]) -> torch.Tensor | None:
    """Elements of a tensor before the step, for the caller to overwrite; None of one whose memory stayed as it is.

    known: storages that were asked for before.
    """
    if kept is None or kept.adopted is None:
        return None
    before = view_of(kept.adopted, start)
    return before if covers_storage(start) and storage_key(start) not in known else before.clone()


def loss_in(result: Any) -> torch.Tensor | None:
    """The loss in what a step returns: `loss` of a mapping or an object, else the first number of a sequence."""
    if isinstance(result, torch.Tensor):
        return result if result.is_floating_point() else None
    named = result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)
    if isinstance(named, torch.Tensor):
        return named
    values = result.values() if isinstance(result, Mapping) else result if isinstance(result, (tuple, list)) else ()
    floats = [value for value in values if isinstance(value, torch.Tensor) and value.is_floating_point()]
    single = [value for value in floats if value.numel() == 1]
    return next((value for value in single if value.requires_grad), next(iter(single), None))


def _returned(result: Any, loss: torch.Tensor | None) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [] if result is loss else [result]
    parts = result.values() if isinstance(result, Mapping) else result if isinstance(result, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _returned(part, loss)]


@dataclass(frozen=True)
class Distance:
    """How far a tensor of an outcome is from FP32's."""

    group: str  # "number", "gradient", "gradients", "change", "decision", "choice"
    name: str
    error: float  # norm of the difference over the norm of FP32's; share of changed decisions
    is_finite: bool  # where FP32's is
    place: CallPlace | None = None  # where a decision within the step stands
    lost: float = 0.0  # relative error of the numbers that it is made of
    stays: float = 0.0  # share of the elements that FP32 changes, and this run does not
    share: float = 1.0  # norm of a gradient over that of all, as if each had the same


def distances(found: Outcome, exact: Outcome) -> list[Distance]:
    """Every tensor of FP32's outcome, in the order of the step; a tensor that is missing is infinitely far."""
    result = [_distance("number", name, found.numbers.get(name), tensor) for name, tensor in exact.numbers.items()]
    result += [_decision(name, found.decisions.get(name), tensor) for name, tensor in exact.decisions.items()]
    result += _of_gradients(found.gradients, exact.gradients)
    result += [_change(name, found.changes.get(name), tensor) for name, tensor in exact.changes.items()]
    return result + _choices(found, exact)


def changed_decisions(found: Outcome, exact: Outcome) -> list[Distance]:
    """Decisions within the step of which some are made otherwise."""
    return [each for each in _choices(found, exact) if each.error]


def _choices(found: Outcome, exact: Outcome) -> list[Distance]:
    return [_choice(place, found.choices.get(place), turns) for place, turns in exact.choices.items()]


def _of_gradients(found: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> list[Distance]:
    if not exact:
        return []
    sums = {name: _sums(found.get(name), tensor) for name, tensor in exact.items()}
    sizes = {
        name: norm(exact[name]) if between is None else math.sqrt(between.squared_size)
        for name, between in sums.items()
    }
    total = math.hypot(*sizes.values())
    least = _SHARE * total / len(exact) ** 0.5
    result = [
        replace(_judged("gradient", name, between, least), share=_SHARE * sizes[name] / (least or 1))
        for name, between in sums.items()
    ]
    if all(each.is_finite for each in result):
        error = math.sqrt(sum(between.squared_error for between in sums.values() if between is not None))
        result.append(Distance("gradients", ALL_GRADIENTS, error / total if total else 0.0, True))
    return result


def _decision(name: str, found: torch.Tensor | None, exact: torch.Tensor) -> Distance:
    if found is None or found.shape != exact.shape:
        return Distance("decision", name, 1.0, True)
    share = float((found != exact).double().mean()) if exact.numel() else 0.0
    return Distance("decision", name, share, True)


def _choice(place: CallPlace, found: list[Decision] | None, exact: list[Decision]) -> Distance:
    """A call that a change has taken away decides nothing otherwise."""
    changed, every, lost = changed_in(found or (), exact)
    return Distance("choice", f"{place.called} ({place})", changed / every if every else 0.0, True, place, lost)


def _change(name: str, found: torch.Tensor | None, exact: torch.Tensor) -> Distance:
    if found is None:
        return Distance("change", name, 1.0, True, stays=1.0)
    between = _sums(found, exact)
    stays = 1.0 if between is None else between.still / max(between.moved, 1)
    return replace(_judged("change", name, between), stays=stays)


def _distance(group: str, name: str, found: torch.Tensor | None, exact: torch.Tensor) -> Distance:
    return _judged(group, name, _sums(found, exact))


def _sums(found: torch.Tensor | None, exact: torch.Tensor) -> DistanceSums | None:
    """None of a tensor that is missing, or has another shape."""
    return None if found is None or found.shape != exact.shape else distance_sums(found, exact)


def _judged(group: str, name: str, between: DistanceSums | None, least: float = 0.0) -> Distance:
    """least: norm that FP32's tensor has at least, for the relative error."""
    if between is None or between.spoiled:
        return Distance(group, name, math.inf, False)
    difference, size = math.sqrt(between.squared_error), max(math.sqrt(between.squared_size), least)
    return Distance(group, name, difference / size if size else (0.0 if difference == 0 else math.inf), True)


def norm(tensor: torch.Tensor) -> float:
    """Norm of a tensor over its finite elements."""
    return math.sqrt(distance_sums(tensor, tensor).squared_size)

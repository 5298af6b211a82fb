"""Powers of two moved between layers: weights that FP16's range holds, with the same outputs in FP32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.kept_state import kept_state
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.doctor.outcomes import Outcome
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.rescale.rescale import rescale
from halfscope.torch.rescale.rescaled import Rescaled, set_attributes
from halfscope.torch.tensors.elements import all_finite
from halfscope.torch.words import listed

FAMILY = "moved powers of two"
_PASSES = 4  # forward passes that `rescale` makes, in runs of the step


def moved_powers(group: Group) -> Iterator[Candidate]:
    """Weights as `rescale` has them, where a call near the group overflows in FP16 and the step updates none of them.

    A search that is narrowed to modules changes no other ones.
    An update of a weight that is 2^k times as large is another one, so that FP32's own step would not stay.
    """
    about = group.about
    if about.program.format.name != "fp16" or about.program.only is not None:
        return
    place = next((call.place for call in group.near() if _overflows(call)), None)
    if place is None or not about.progress.has_time(_PASSES):
        return
    found = _rescaled(about)
    if found is None or not found.moved or found.moved.keys() & about.exact.outcome.changes.keys():
        return
    words, moved = _words(about, found), MovedState(about.program.model, found)
    del found  # its weights have no memory beside the runs that follow
    trial = replace(group.base, moved=moved)
    if group.base.lifts_weights:  # weights that overflow may be among the moved ones
        yield Candidate(FAMILY, words, replace(trial, lifts_weights=False, keeps_state=False), place=place)
    yield Candidate(FAMILY, words, trial, place=place)


def _overflows(call: Call) -> bool:
    """Whether the call's result in the format is not finite; it is not computed again, which may change buffers."""
    return not all(map(all_finite, floats_in(call.result)))


def _rescaled(about: Examination) -> Rescaled | None:
    """None where no powers fit, and of a step that does more than a forward pass in FP32 can."""
    program = about.program
    state = [*program.model.parameters(), *program.model.buffers()]
    try:
        with kept_state(program.model, state, program.optimizers, program.copies):
            return rescale(program.model, [None], call=lambda model, _: program.step())
    except Exception:  # a backward pass, which has no gradients here; a layer that nothing moves past; no SciPy
        return None


class MovedState:
    """A model with weights multiplied and attributes set as `rescale` found, while a run is under way."""

    def __init__(self, model: torch.nn.Module, found: Rescaled) -> None:
        self._model, self._moved, self._attributes = model, found.moved, found.attributes

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within `kept_state`, which brings the weights back."""
        own = self._model.state_dict(keep_vars=True)
        tensors = {id(own[name]): (own[name], power) for name, power in self._moved.items()}
        for tensor, power in tensors.values():
            tensor.data.mul_(2.0**power)
        before = set_attributes(self._model, self._attributes)
        try:
            yield
        finally:
            set_attributes(self._model, before)

    def undo(self, outcome: Outcome) -> None:
        """Gradients become those of the weights as they were."""
        for name, power in self._moved.items():
            if name in outcome.gradients:
                outcome.gradients[name] = outcome.gradients[name] * 2.0**power


def _words(about: Examination, found: Rescaled) -> str:
    moved = [f"{name} by 2^{power}" for name, power in found.moved.items()]
    words = f"type rescale(model, [None], call=lambda model, _: loss()).apply(model): it multiplies {listed(moved)}"
    if found.attributes:
        words += f", and sets {listed(f'{name} to {number:.4g}' for name, number in found.attributes.items())}"
    if about.exact.outcome.gradients.keys() & found.moved.keys():
        words += "; their gradients change by the inverse powers, so begin an optimizer anew"
    return words

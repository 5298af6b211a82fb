"""`rescale`: powers of two moved between layers until every tensor is within FP16's range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.emulate.emulation import check_model
from halfscope.torch.events.running_modules import RunningModules
from halfscope.torch.private import storage_key
from halfscope.torch.rescale.exponent_program import ExponentProgram
from halfscope.torch.rescale.exponents import Exponent, System
from halfscope.torch.rescale.ranges import SHARES
from halfscope.torch.rescale.rescaled import Rescaled, set_attributes
from halfscope.torch.rescale.traced_exponents import Stored, TracedExponents
from halfscope.torch.steps.evaluation import batches_of, evaluating, kind_of, output_of
from halfscope.torch.steps.snapshot import RandomNumbers
from halfscope.torch.tensors.elements import floating

REASONS = 100  # equations that are left out in turn, in search of the one that blocks

Outputs = list[list[torch.Tensor]]


def rescale(
    model: torch.nn.Module,
    batches: Iterable[Any],
    *,
    call: Callable[[torch.nn.Module, Any], Any] | None = None,
    headroom: int = 1,
) -> Rescaled:
    """Moves powers of two between layers, so that no tensor leaves FP16's range and FP32 outputs keep their bits.

    Each stored tensor has a whole exponent: the new one is 2 to this power times the old one. Each operation of the
    forward pass has an equation: exponents of a product's operands add up, those of a sum are equal, a norm takes any
    if its eps goes with it, and what is neither linear nor a norm takes its operands as they are. The fewest binades
    that keep every tensor in range are moved. Squares, and what comes of them alone, are taken to be FP32, as
    libraries and autocast have norms.

    batches: of data that the model is to run on; a tensor, a tuple of arguments, or a mapping of arguments by name.
    call: the model's output for a batch, where that is not model(batch).
    headroom: binades that activations keep below FP16's largest number, for other data.

    The model is as before afterwards: `.apply(model)` or `.state_dict` changes one. Raises ValueError, with the tensor
    that blocks, where no powers of two fit, and for outputs that differ from run to run; TypeError for models and
    batches of other types; ImportError without SciPy.
    """
    _check(model, headroom)
    runs = _Runs(model, batches_of(batches, "rescale: batches", "one or more"), call)
    with evaluating(model), torch.no_grad():
        plain = runs.outputs()
        system = System()
        stored = runs.trace(system, headroom)
        found = _Solution(model, stored, *_solved(system))
        if not runs.keeps_bits(found, plain) and stored.attributes:
            for exponent, _ in stored.attributes.values():  # a number of another meaning may have been taken for an eps
                system.set_zero(exponent, "a module's attribute")
            found = _Solution(model, stored, *_solved(system))
        if not runs.keeps_bits(found, plain):
            raise ValueError(_unequal(runs, plain))
    ranges = [kept for key, kept in system.ranges.items() if key]
    beyond = [kept.largest for kept in ranges if kept.highest < 0]
    beyond += [kept.smallest for kept in ranges if kept.wanted > 0]
    return Rescaled(found.state_dict(), found.moved, found.attributes, tuple(beyond), len(plain), found.share == 0)


def _check(model: torch.nn.Module, headroom: int) -> None:
    check_model(model, "rescale")
    if isinstance(headroom, bool) or not isinstance(headroom, int) or not 0 <= headroom <= 15:
        raise ValueError(f"rescale: headroom={headroom!r}; give whole binades from 0 to 15")
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dtype is not torch.float32:
            raise TypeError(f"rescale: '{name}' is {tensor.dtype}; give model.float(), whose outputs are compared")


def _solved(system: System) -> tuple[list[int], int]:
    """The exponents, and which share of a weight's numbers had to be let below the normal ones."""
    for share in range(len(SHARES)):
        found = ExponentProgram(system, share).solve()
        if found is not None:
            return found, share
    raise ValueError(f"rescale: no powers of two fit: {_blocked(system)}")


def _blocked(system: System) -> str:
    """The first tensor that cannot be in range, and the operation that holds it."""
    share = len(SHARES) - 1
    program = ExponentProgram(system, share)
    out = program.out_of_range()
    if not out:
        return "the program found no tensor to name"
    kept = system.ranges[out[0]]
    words = kept.largest if kept.highest < 0 or not kept.smallest else kept.smallest
    if not out[0]:
        return f"{words}, stays as it is"
    touched = {unknown for unknown, _ in out[0]}
    near = sorted(system.zero, key=lambda key: touched.isdisjoint(unknown for unknown, _ in key))
    for key in near[:REASONS]:
        if out[0] not in program.out_of_range(without=key):
            return f"{words}, is held by {system.zero[key]}"
    return f"{words}, is held by more than one operation"


def _unequal(runs: _Runs, plain: Outputs) -> str:
    if any(not _same(*each) for each in zip(runs.outputs(), plain)):
        return "rescale: two runs of one batch differ in FP32, so that bits cannot be compared"
    return "rescale: FP32 outputs would differ, in numbers below FP32's normal ones or in code not seen as an operation"


@dataclass(frozen=True)
class _Solution:
    """Exponents of a model's tensors and attributes."""

    model: torch.nn.Module
    stored: Stored
    exponents: list[int]
    share: int

    def _value(self, exponent: Exponent) -> int:
        return sum(number * self.exponents[unknown] for unknown, number in exponent)

    @property
    def moved(self) -> dict[str, int]:
        """Exponents by name of the model's state."""
        powers = {key: self._value(exponent) for key, exponent in self.stored.unknowns.items()}
        return {name: powers[key] for key, names in self.stored.names.items() if powers.get(key) for name in names}

    @property
    def attributes(self) -> dict[str, float]:
        powers = {key: (self._value(exponent), number) for key, (exponent, number) in self.stored.attributes.items()}
        return {".".join(filter(None, key)): number * 2.0**power for key, (power, number) in powers.items() if power}

    def state_dict(self) -> dict[str, Any]:
        own: dict[str, Any] = self.model.state_dict()
        made: dict[tuple, torch.Tensor] = {}  # tied weights are one tensor
        for name, power in self.moved.items():
            key = storage_key(own[name]), own[name].storage_offset(), own[name].shape
            own[name] = made.setdefault(key, own[name] * 2.0**power)
        return own

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with these exponents, and as it was afterwards."""
        own, new = self.model.state_dict(keep_vars=True), self.state_dict()
        tensors = {id(own[name]): (own[name], own[name].data, new[name]) for name in self.moved}
        before = set_attributes(self.model, self.attributes)
        try:
            for tensor, _, moved in tensors.values():
                tensor.data = moved
            yield
        finally:
            for tensor, original, _ in tensors.values():
                tensor.data = original
            set_attributes(self.model, before)


class _Runs:
    """Forward passes of all batches, each with the random numbers that the first one had."""

    def __init__(self, model: torch.nn.Module, batches: tuple[Any, ...], call: Callable[..., Any] | None) -> None:
        self._model, self._batches, self._call, self._random = model, batches, call, RandomNumbers.now()

    def outputs(self) -> Outputs:
        self._random.restore()
        return [self._output(batch) for batch in self._batches]

    def _output(self, batch: Any) -> list[torch.Tensor]:
        """Copies of the floating-point tensors of the output."""
        result = output_of(self._model, batch, "rescale") if self._call is None else self._call(self._model, batch)
        found = list(floating(result))
        if not found:
            raise TypeError(f"rescale: the model returns {kind_of(result)}; give call=lambda model, batch: ... that "
                            "returns tensors")  # fmt: skip
        return [tensor.detach().clone() for tensor in found]

    def trace(self, system: System, headroom: int) -> Stored:
        """Enters all batches into a system of equations."""
        running, stored = RunningModules(self._model), Stored(self._model, system)
        self._random.restore()
        was = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # it has layers of several operations as one
        try:
            for batch in self._batches:
                trace = TracedExponents(running, stored, system, headroom)
                trace.enter_inputs(batch)
                with running.followed(), trace:
                    output = self._output(batch)
                trace.enter_output(output)
        finally:
            torch.backends.mha.set_fastpath_enabled(was)
        return stored

    def keeps_bits(self, found: _Solution, plain: Outputs) -> bool:
        with found.applied():
            return all(map(_same, self.outputs(), plain))


def _same(outputs: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Whether tensors have the same bits."""
    return len(outputs) == len(others) and all(map(_same_bits, outputs, others))


def _same_bits(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if tensor.shape != other.shape or tensor.dtype != other.dtype:
        return False
    return torch.equal(*(each.contiguous().flatten().view(torch.uint8) for each in (tensor, other)))

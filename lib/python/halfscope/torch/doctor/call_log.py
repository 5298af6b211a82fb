"""Notes of a run's modes: places in their order, casts of trials, calls that are kept, tensors of 16 bits."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.decisions import Decision, decision_of
from halfscope.torch.doctor.nested_tensors import tensors_in
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.private import storage_key, without_modes

_MOST_TURNS = 64  # calls at one place whose decisions a run keeps


class CallLog:
    """Notes of one run."""

    def __init__(self, keeps: int | None, state: frozenset[int], names: dict[int, str]) -> None:
        """keeps: calls, the last ones, with operands and results; None: all. state: storages of weights, buffers and
        optimizers. names: of modules by their id.
        """
        self.places: dict[CallPlace, int] = {}  # number of calls, in the order of the first ones
        self.casts: dict[tuple[CallPlace, int | str], Numbers] = {}
        # Arguments by which calls that a trial lifts ask for 16 bits; 0 of `half`.
        self.types: dict[CallPlace, int | str] = {}
        self.calls: deque[Call] = deque(maxlen=keeps)
        self.in_update = False
        self.of_updates: set[CallPlace] = set()
        self.latest_place: CallPlace
        self.decisions: dict[CallPlace, list[Decision]] = {}
        self.modules: list[torch.nn.Module] = []
        self._makers: dict[tuple, Call] = {}
        self._state, self._names, self._calls = state, names, 0
        self._narrow: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.origins: dict[int, torch.Tensor] = {}  # tensors of 16 bits, by the storage of their float32 numbers

    def count(self, place: CallPlace) -> int:
        """The number of calls up to this one."""
        self.places[place] = self.places.get(place, 0) + 1
        self.latest_place = place
        if self.in_update:
            self.of_updates.add(place)
        self._calls += 1
        return self._calls

    def add(self, call: Call) -> None:
        if self.calls and len(self.calls) == self.calls.maxlen:
            oldest = self.calls[0]
            for key in [_identity(tensor) for tensor in _tensors(oldest.result)]:
                if self._makers.get(key) is oldest:
                    del self._makers[key]
        self.calls.append(call)
        self.add_view(call)

    def note_decision(self, call: Call) -> None:
        turns = self.decisions.get(call.place, [])
        decision = decision_of(call) if len(turns) < _MOST_TURNS else None
        if decision is not None:
            self.decisions[call.place] = [*turns, decision]

    def add_view(self, call: Call) -> None:
        if self.calls.maxlen == 0:
            return
        for tensor in _tensors(call.result):
            self._makers[_identity(tensor)] = call

    def maker(self, tensor: Any) -> Call | None:
        """The call that made a tensor; None of one from outside, and of one that is too far back."""
        return self._makers.get(_identity(tensor)) if isinstance(tensor, torch.Tensor) else None

    def ancestors(self, call: Call, most: int | None = None) -> list[Call]:
        """Calls that made what a call takes, the nearest first; None: all of them."""
        found: list[Call] = []
        queue, seen = deque([call]), {id(call)}
        while queue and (most is None or len(found) < most):
            nearest = queue.popleft()
            for tensor in tensors_in((nearest.args, nearest.kwargs)):
                maker = self.maker(tensor)
                if maker is not None and id(maker) not in seen:
                    seen.add(id(maker))
                    found.append(maker)
                    queue.append(maker)
        return found

    def layer(self) -> tuple[str, bool]:
        """The layer of PyTorch's that is at work, and whether it stands in another one; empty in a user's module."""
        if not self.modules or not _is_layer(self.modules[-1]):
            return "", False
        module = self.modules[-1]
        is_inside = len(self.modules) > 1 and _is_layer(self.modules[-2])
        return self._names.get(id(module)) or type(module).__name__, is_inside

    def is_state(self, tensor: torch.Tensor) -> bool:
        return self.origin(storage_key(tensor)) in self._state

    def origin(self, storage: int) -> int:
        """The storage that a tensor from outside has outside of a run, the same in all runs."""
        narrow = self.origins.get(storage)
        return storage if narrow is None else storage_key(narrow)

    def widen(self, tensor: torch.Tensor) -> None:
        """A tensor of 16 bits from outside of the run becomes float32 until `narrow_again`."""
        narrow = tensor.data
        self._narrow.append((tensor, narrow))
        with without_modes():  # to the run it comes from outside
            tensor.data = narrow.float()
        self.origins[storage_key(tensor)] = narrow

    def narrow_again(self) -> None:
        for tensor, narrow in self._narrow:
            tensor.grad = None
            tensor.data = narrow
        self._narrow.clear()


def _is_layer(module: torch.nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")


def _identity(tensor: torch.Tensor) -> tuple:
    if tensor.layout is not torch.strided:
        return storage_key(tensor), tuple(tensor.shape)
    return storage_key(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [part for part in value if isinstance(part, torch.Tensor)] if isinstance(value, (tuple, list)) else []

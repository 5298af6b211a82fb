"""Notes of a run's modes: places in their order, casts of trials, calls that are kept, tensors of 16 bits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.doctor.call_names import is_in_place
from halfscope.torch.doctor.calls import Call, Kept
from halfscope.torch.doctor.decisions import Decision, decision_of
from halfscope.torch.doctor.nested_tensors import floats_in, tensors_in
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.private import storage_key, without_modes
from halfscope.torch.tensors.storages import place_of_elements, storage_of

_MOST_TURNS = 64  # calls at one place whose decisions, or operands and results, a run keeps
_NEAR = 64  # calls in front of one that a change may ask for


class CallLog:
    """Notes of one run."""

    def __init__(
        self,
        state: frozenset[int],
        names: dict[int, str],
        asked: frozenset[CallPlace] = frozenset(),
        kept: Kept | None = None,
        chosen: frozenset[int] = frozenset(),
    ) -> None:
        """state: storages of weights, buffers and optimizers. names: of modules by their id.

        asked: places whose calls have operands and results at hand for a while. kept: calls that keep theirs; None: no
        call is noted. chosen: modules, by their id, whose calls are told apart.
        """
        self.places: dict[CallPlace, int] = {}  # number of calls, in the order of the first ones
        self.casts: dict[tuple[CallPlace, int | str], Numbers] = {}
        # Arguments by which calls that a trial lifts ask for 16 bits; 0 of `half`.
        self.types: dict[CallPlace, int | str] = {}
        self.mixed: set[CallPlace] = set()  # calls that took FP32 and 16 bits together, which PyTorch refuses
        self.of_chosen: set[CallPlace] = set()  # noted calls of chosen modules, and of modules in them
        self.asked: dict[CallPlace, set[Numbers]] = {}  # numbers that the script's casts ask for
        self.answers: set[CallPlace] = set()  # `x.dtype` of a tensor in FP32 for a trial that says the format's type
        self.calls: list[Call] = []  # noted ones
        self._at: dict[CallPlace, list[Call]] = {}
        self.writes: dict[int, CallPlace] = {}  # the last one to each storage by a noted call
        self.in_update = False
        self.of_updates: set[CallPlace] = set()
        self.latest_place: CallPlace
        self.decisions: dict[CallPlace, list[Decision]] = {}
        self.modules: list[torch.nn.Module] = []
        # With a storage's reference: while it is held no other storage has its identity.
        self._makers: dict[tuple, tuple[Call, StorageWeakRef]] = {}
        self._state, self._names, self._asked, self._kept = state, names, asked, kept
        self._chosen = chosen
        self._count, self._keeps_latest = 0, False
        self._turns: Counter[CallPlace] = Counter()
        self._latest: deque[Call] = deque()  # calls that a change may ask for; operands go with the calls behind
        self._narrow: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.origins: dict[int, torch.Tensor] = {}  # tensors of 16 bits, by the storage of their float32 numbers

    def count(self, place: CallPlace) -> int:
        """The number of calls up to this one."""
        self.places[place] = self.places.get(place, 0) + 1
        self.latest_place = place
        if self.in_update:
            self.of_updates.add(place)
        self._count += 1
        return self._count

    def keep_latest(self) -> int:
        """Keeps operands and result of the call that is at work, and returns its number."""
        self._keeps_latest = True
        return self._count

    def add(self, call: Call, is_view: bool = False) -> None:
        """A call that has its result."""
        if self._kept is None and not self._asked:
            return
        call.number = self._count
        if self._kept is not None:
            self._note(call, is_view)
        for tensor in _tensors(call.result):
            self._makers[place_of_elements(tensor)] = (call, StorageWeakRef(storage_of(tensor)))
        if not self._is_kept(call, is_view):
            self._keep_for_now(call)

    def _note(self, call: Call, is_view: bool) -> None:
        given = tensors_in((call.args, call.kwargs))
        makers = {id(entry[0]): entry[0] for tensor in given if (entry := self._makers.get(place_of_elements(tensor)))}
        call.makers = tuple(makers.values())
        call.size = sum(tensor.nbytes for tensor in _tensors(call.result) if tensor.layout is torch.strided)
        if any(id(module) in self._chosen for module in self.modules):
            self.of_chosen.add(call.place)
        if is_view:
            return
        call.has_floats = bool(floats_in((given, call.result)))
        self.calls.append(call)
        self._at.setdefault(call.place, []).append(call)
        for tensor in tensors_in(call.args[:1] if is_in_place(call) else call.kwargs.get("out")):
            self.writes.pop(storage_key(tensor), None)  # the last write stands last
            self.writes[storage_key(tensor)] = call.place

    def _is_kept(self, call: Call, is_view: bool) -> bool:
        if self._keeps_latest and not is_view:
            self._keeps_latest = False
            return True
        if self._kept is None:
            return False
        if call.place in self._kept.places:
            self._turns[call.place] += 1
            if self._turns[call.place] <= _MOST_TURNS:
                return True
        return call.number in self._kept.numbers

    def _keep_for_now(self, call: Call) -> None:
        if call.place in self._asked:
            self._latest.append(call)
        else:
            self._let_go(call)
        while self._latest and self._latest[0].number <= self._count - _NEAR:
            self._let_go(self._latest.popleft())

    def _let_go(self, call: Call) -> None:
        for key in [place_of_elements(tensor) for tensor in _tensors(call.result)] if self._kept is None else []:
            if self._makers.get(key, (None,))[0] is call:
                del self._makers[key]
        call.forget()

    @property
    def rounds(self) -> frozenset[CallPlace]:
        """Casts of the script's that ask for 16 bits in each turn."""
        return frozenset(place for place, kinds in self.asked.items() if kinds == {Numbers.NARROW})

    def note_decision(self, call: Call) -> None:
        turns = self.decisions.get(call.place, [])
        decision = decision_of(call) if len(turns) < _MOST_TURNS else None
        if decision is not None:
            self.decisions[call.place] = [*turns, decision]

    def first_within(self, calls: Iterable[Call], least: int) -> frozenset[int]:
        """Numbers of the first of these calls that fit into half of the bytes that all results of the run take.

        least: bytes that they may take in any case.
        """
        room = max(least, sum(call.size for call in self.calls) // 2)
        numbers: set[int] = set()
        held: set[int] = set()  # calls, by identity
        for call in calls:
            taken = {id(each): each.size for each in (call, *call.makers) if id(each) not in held}
            if sum(taken.values()) <= room:
                room -= sum(taken.values())
                held.update(taken)
                numbers.add(call.number)
        return frozenset(numbers)

    def turns(self, place: CallPlace) -> list[Call]:
        """The noted calls at a place."""
        return self._at.get(place, [])

    def maker(self, tensor: Any) -> Call | None:
        """The call that made a tensor; None of one from outside, and of one whose operands are not at hand."""
        entry = self._makers.get(place_of_elements(tensor)) if isinstance(tensor, torch.Tensor) else None
        return None if entry is None or entry[0].is_forgotten else entry[0]

    def ancestors(self, call: Call, most: int | None = None) -> list[Call]:
        """Calls that made what a call takes, the nearest first; None: all of them."""
        found: list[Call] = []
        queue, seen = deque([call]), {id(call)}
        while queue and (most is None or len(found) < most):
            for maker in queue.popleft().makers:
                if id(maker) not in seen:
                    seen.add(id(maker))
                    found.append(maker)
                    queue.append(maker)
        return found

    def upstream(self, place: CallPlace) -> frozenset[CallPlace]:
        """Places of the calls on whose results a decision depends."""
        return self._upstream.get(place, frozenset())

    @cached_property
    def _upstream(self) -> dict[CallPlace, frozenset[CallPlace]]:
        return {
            place: frozenset(made.place for call in self.turns(place) for made in self.ancestors(call)) - {place}
            for place in self.decisions
        }

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
        """A tensor of 16 bits from outside of the run becomes float32 until `end`."""
        narrow = tensor.data
        self._narrow.append((tensor, narrow))
        with without_modes():  # to the run it comes from outside
            tensor.data = narrow.float()
        self.origins[storage_key(tensor)] = narrow

    def end(self) -> None:
        """The run is over: what only its changes ask for goes, and tensors from outside have 16 bits again."""
        for call in self._latest:
            call.forget()
        self._latest.clear()
        for tensor, narrow in self._narrow:
            tensor.grad = None
            tensor.data = narrow
        self._narrow.clear()


def _is_layer(module: torch.nn.Module) -> bool:
    return type(module).__module__.startswith("torch.")


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [part for part in value if isinstance(part, torch.Tensor)] if isinstance(value, (tuple, list)) else []

"""Mode below autograd: each result of a run is rounded to the format, forward and backward, where it lies.

All storages are float32. The mode of `emulate` chooses formats by module and counts every cast; this one asks for each
storage alone whether it holds numbers of the format, so that a mode above it can cast and change single calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from halfscope import _core
from halfscope.torch.doctor.nested_tensors import lies_in_memory
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.operations.operators import operation_of, writes
from halfscope.torch.operations.table import Kind
from halfscope.torch.private import TorchDispatchMode, schema_of, storage_key, without_function_modes
from halfscope.torch.tensors.elements import address_of_floats, lies_without_gaps
from halfscope.torch.tensors.storages import StorageMap, storage_of, stored
from halfscope.torch.tensors.trees import floats

_WITH_SCALARS_NAMES = """
    _to_copy copy scatter hardtanh hardtanh_backward threshold threshold_backward masked_scatter
"""
_WITH_SCALARS = frozenset(_WITH_SCALARS_NAMES.split())
# Operations that compare with a constant: a kernel of the format compares with the constant's own number there.
_NOISELESS_NAMES = """
    masked_fill where full fill index_fill full_like new_full scalar_tensor
"""
_NOISELESS = frozenset(_NOISELESS_NAMES.split())
_COMPARES_NAMES = """
    clamp clamp_min clamp_max eq ne lt le gt ge
"""
_COMPARES = frozenset(_COMPARES_NAMES.split())


_BETWEEN_TWO_RANKS = ("send", "recv_", "recv_any_source_")
_PIPELINE = (
    "the step sends tensors from one rank to another, as a pipeline does, and the search runs it another number of "
    "times on each; give it the whole model in one process"
)


@dataclass(frozen=True)
class _Rule:
    """Rounding of one operator."""

    name: str
    is_untouched: bool  # nothing to round, and nothing to adopt
    is_exact: bool  # numbers of the format in, numbers of the format out
    is_view: bool
    writes: tuple[int | str, ...]
    statistics: tuple[int, ...]
    typed: tuple[int, ...]
    compares: bool
    raises: bool  # a constant, which a kernel of the format takes as the format's number


@cache
def _rule(func: Any) -> _Rule:
    if str(func).partition(".")[0] == "c10d" and str(func).split(".")[1] in _BETWEEN_TWO_RANKS:
        raise TypeError(_PIPELINE)
    line, schema = operation_of(func), schema_of(func)
    name = func.overloadpacket.__name__.rstrip("_") if hasattr(func, "overloadpacket") else str(func)
    returns = [] if schema is None else [result.alias_info for result in schema.returns]
    is_view = any(info is not None and not info.is_write for info in returns)
    kind = None if line is None else line.kind
    return _Rule(
        name, kind is Kind.UNTOUCHED, kind is Kind.EXACT and name not in _WITH_SCALARS, is_view or kind is Kind.VIEW,
        writes(func), () if line is None else line.statistics, () if line is None else line.typed,
        name in _COMPARES, str(func) == "aten.pow.Scalar",
    )  # fmt: skip


@dataclass
class Outer:
    """A tensor from outside of the run: its storage as a flat tensor, and its elements before the run."""

    flat: torch.Tensor
    before: torch.Tensor | None  # None of what the caller brings back
    is_written: bool = False
    adopted: torch.Tensor | None = None  # elements as the run began with them, of a storage that it wrote to


class Rounder:
    """Rounds float32 tensors in place to a format by name; None leaves them. noise: relative, added before."""

    def __init__(self, format: str | None, noise: float = 0.0, seed: int = 0) -> None:
        self._cast = None if format is None else _core.Cast(format, "activation")
        self._noise, self._seed = noise, seed << 32

    def __call__(self, tensor: torch.Tensor, operation: str = "") -> None:
        self._change(stored(tensor), self._noise if operation not in _NOISELESS else 0.0)

    def add_noise(self, tensor: torch.Tensor, held: str) -> None:
        """Noise in the numbers that a format, by name, does not hold."""
        self._change(stored(tensor), self._noise, held.partition("/")[0])

    def _change(self, tensor: torch.Tensor, noise: float, held: str | None = None) -> None:
        if not (noise or self._cast is not None) or not tensor.numel() or not lies_in_memory(tensor):
            return
        near = tensor
        if not tensor.is_cpu or not lies_without_gaps(tensor):
            near = tensor.cpu().clone(memory_format=torch.contiguous_format)
        if noise:
            self._seed += 1  # each tensor has numbers of its own
            _core.add_noise(address_of_floats(near), near.numel(), amount=noise, seed=self._seed, held=held)
        if self._cast is not None:
            self._cast.round(address_of_floats(near), near.numel(), "", detail="none")
        if near is not tensor:
            tensor.copy_(near)

    def number(self, value: Any) -> Any:
        """A constant as the format holds it."""
        if self._cast is None or isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        one = torch.tensor([float(value)], dtype=torch.float32)
        self._cast.round(address_of_floats(one), 1, "", detail="none")
        return float(one[0])


class RoundingMode(TorchDispatchMode):
    """Rounds what operations make, by the kind of the numbers that they take."""

    def __init__(
        self,
        rounder: Rounder,
        default: Numbers,
        adopt: Callable[[torch.Tensor, RoundingMode], Numbers],
        restored: frozenset[int] = frozenset(),
    ) -> None:
        """default: kind of a tensor that is made of no other one. adopt: kind of a tensor from outside of the run.

        restored: storages from outside that the caller brings back after the run.
        """
        super().__init__()
        self._restored = restored
        self.rounder, self.kinds, self.default, self._adopt = rounder, StorageMap[Numbers](), default, adopt
        self.outer: dict[int, Outer] = {}
        self.shrunk = 0  # tensors from outside that are smaller in this run
        self._outsiders: set[int] = set()
        self._kept: list[torch.Tensor] = []  # so that no storage of the run has the address of one from outside
        self.see: Callable[[str, tuple, Any], None] | None = None  # after each operation

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        with without_function_modes():  # before PyTorch 2.5 a backward pass has them on
            return self._dispatch(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        rule = _rule(func)
        if rule.is_untouched:
            return func(*args, **kwargs)
        if rule.name == "lift_fresh":  # torch.tensor: the step's own numbers, which no operation made
            self._begin_with(args[0])
        kinds = [(self.kind_of(tensor), tensor.dim()) for tensor in floats((args, kwargs))]
        if rule.writes:
            self._note_writes(rule, args, kwargs)
        if rule.compares and kinds and kinds[0][0] is Numbers.NARROW:
            args = (args[0], *(self.rounder.number(value) for value in args[1:]))
            kwargs = {key: self.rounder.number(value) for key, value in kwargs.items()}
        if rule.raises and kinds and kinds[0][0] is Numbers.NARROW:
            args = (self.rounder.number(args[0]), *args[1:])
        result = func(*args, **kwargs)
        if rule.writes:
            self._settle_targets(rule, args, kwargs, result)
        if not rule.is_view:
            self._settle(rule, (args, kwargs), kinds, result)
            if self.see is not None:
                self.see(rule.name, args, result)
        return result

    @contextmanager
    def making(self, kind: Numbers) -> Iterator[None]:
        """Tensors that are made of no other one, or of integers, hold these numbers meanwhile."""
        before, self.default = self.default, kind
        try:
            yield
        finally:
            self.default = before

    def _begin_with(self, tensor: torch.Tensor) -> None:
        is_float = tensor.dtype is torch.float32
        self.kinds.set(tensor, self.default if is_float else Numbers.WIDE)
        if is_float and self.default is Numbers.NARROW:
            self.rounder(tensor)

    def kind_of(self, tensor: torch.Tensor) -> Numbers:
        kind = self.kinds.get(tensor)
        if kind is None:
            self.kinds.set(tensor, Numbers.WIDE)
            self._outsiders.add(storage_key(tensor))
            self._kept.append(tensor)
            kind = self._adopt(tensor, self) if tensor.dtype is torch.float32 else Numbers.WIDE
            self.kinds.set(tensor, kind)
        return kind

    def back_up(self, tensor: torch.Tensor) -> Outer:
        """Keeps the elements of a storage from outside of the run before they change."""
        outer = self.outer.get(storage_key(tensor))
        if outer is None:
            with torch.inference_mode(False):  # the run ends outside of the script's
                flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                flat.set_(storage_of(tensor))
                before = None if storage_key(tensor) in self._restored else flat.clone()
                outer = self.outer[storage_key(tensor)] = Outer(flat, before)
        return outer

    def end(self) -> None:
        """Brings back the storages from outside, and lets go of all tensors."""
        for outer in self.outer.values():
            if outer.before is not None:
                outer.flat.copy_(outer.before)
        self.outer.clear()
        self._kept.clear()

    def _note_writes(self, rule: _Rule, args: tuple, kwargs: dict) -> None:
        for tensor in _targets(rule, args, kwargs):
            if self._is_outside(tensor):
                outer = self.back_up(tensor)
                if not outer.is_written:
                    outer.is_written, outer.adopted = True, outer.flat.clone()

    def _settle_targets(self, rule: _Rule, args: tuple, kwargs: dict, result: Any) -> None:
        """Rounds what an operation writes to without returning it, as running statistics."""
        returned = {storage_key(tensor) for tensor in floats(result)}
        for tensor in _targets(rule, args, kwargs):
            is_left = tensor.dtype is torch.float32 and storage_key(tensor) not in returned
            if is_left and self.kinds.get(tensor) is Numbers.NARROW:
                self.rounder(tensor, rule.name)

    def _is_outside(self, tensor: torch.Tensor) -> bool:
        self.kind_of(tensor)
        return storage_key(tensor) in self._outsiders

    def _settle(self, rule: _Rule, given: tuple, kinds: list[tuple[Numbers, int]], result: Any) -> None:
        every = result if isinstance(result, (tuple, list)) else (result,)
        widest = _promoted(kinds) or self.default
        for index, tensor in enumerate(every):
            if not isinstance(tensor, torch.Tensor):
                continue
            if tensor.dtype is not torch.float32:
                if self.kinds.get(tensor) is None:
                    self.kinds.set(tensor, Numbers.WIDE)
                continue
            known = self.kinds.get(tensor) if rule.writes else None
            kind = known or self._kind_of_result(rule, given, index, widest)
            if known is None:
                self.kinds.set(tensor, kind)
            if kind is Numbers.NARROW and not (rule.is_exact and kinds and known is None):
                self.rounder(tensor, rule.name)

    def _kind_of_result(self, rule: _Rule, given: tuple, index: int, widest: Numbers) -> Numbers:
        if index in rule.statistics:
            return Numbers.WIDE
        if index < len(rule.typed) and rule.typed[index] < len(given[0]):
            like = given[0][rule.typed[index]]
            if isinstance(like, torch.Tensor) and like.dtype is torch.float32:
                return self.kind_of(like)
        return widest


def _targets(rule: _Rule, args: tuple, kwargs: dict) -> Iterator[torch.Tensor]:
    """The tensors that an operation writes to."""
    for place in rule.writes:
        target = kwargs.get(place) if isinstance(place, str) else args[place] if place < len(args) else None
        for tensor in target if isinstance(target, (list, tuple)) else (target,):
            if isinstance(tensor, torch.Tensor):
                yield tensor


def _promoted(kinds: list[tuple[Numbers, int]]) -> Numbers | None:
    """Type to which PyTorch promotes: tensors without axes count only among themselves. None without tensors."""
    found = [kind for kind, axes in kinds if axes] or [kind for kind, _ in kinds]
    if not found:
        return None
    wide = [kind for kind in found if kind is not Numbers.NARROW]
    if not wide:
        return Numbers.NARROW
    return Numbers.WIDE if Numbers.WIDE in wide else Numbers.LIFTED

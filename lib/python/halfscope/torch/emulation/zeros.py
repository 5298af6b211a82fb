"""Causes of the zeros of weight gradients: each backward operation asked again with fewer casts.

The stages are in the order of the data: 0 no cast, 1 casts of the forward pass, 2 casts of later layers' gradients, 3
the cast of the operand gradient. The cause of a zero is the first stage from which on all terms of its sum are zero; a
zero with other terms is a flushed product or sum, or cancelled. So causes sum to the zeros. Products, sums and
scattered sums are judged by their terms, other operations by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.emulation import backends
from halfscope.torch.emulation.counterparts import flat_beside, view_of
from halfscope.torch.emulation.half_tensors import has_half
from halfscope.torch.emulation.marks import storage_key, storage_of
from halfscope.torch.emulation.operations import Kind, Operation, target_of
from halfscope.torch.emulation.places import Places, Region
from halfscope.torch.emulation.shadows import Comparison, Shadows
from halfscope.torch.emulation.trees import floats, map_floats, results
from halfscope.torch.emulation.zero_counts import (
    CANCELLED,
    FORWARD,
    GRADIENT,
    PRODUCT,
    RESULT,
    TRUE,
    UPSTREAM,
    ZeroTable,
)  # fmt: skip

_SUMS = """
    sum mean mul embedding_dense_backward index_put _index_put_impl _unsafe_index_put index_add scatter_add
"""
_UNPURGED = 64  # so many tensors without a search for those that are gone
_NATIVE = (Kind.VIEW, Kind.UNTOUCHED, Kind.SOURCE)


class _Flats:
    """A tensor beside each storage, of the same layout; views share it."""

    def __init__(self) -> None:
        self._flats: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._purge_at = _UNPURGED

    def get(self, tensor: torch.Tensor) -> torch.Tensor | None:
        found = self._flats.get(storage_key(tensor))
        if found is None or found[0].expired():
            return None
        return view_of(found[1], tensor)

    def set(self, tensor: torch.Tensor, beside: torch.Tensor) -> None:
        if len(self._flats) >= self._purge_at:
            self._flats = {key: found for key, found in self._flats.items() if not found[0].expired()}
            self._purge_at = max(_UNPURGED, 2 * len(self._flats))
        self._flats[storage_key(tensor)] = (StorageWeakRef(storage_of(tensor)), flat_beside(tensor, beside))

    def forget(self, tensor: torch.Tensor) -> None:
        self._flats.pop(storage_key(tensor), None)


class ZeroCauses:
    """The causes of one step's zeros."""

    def __init__(self, table: ZeroTable, places: Places, arithmetic: Any) -> None:
        self._table, self._places, self._marks = table, places, arithmetic.marks
        self._exact = arithmetic.shadows  # stage 0
        if self._exact is None:
            self._exact = Shadows(Comparison(), 1, places, arithmetic)
            self._exact.compares = False
        self._forward = _Flats()  # gradients at stage 1
        self._made = _Flats()  # gradients at stage 2: as they were made, before the first use rounds them
        self._codes = _Flats()  # of the zeros of gradients, before these are rounded
        self._casts: dict[int, str] = {}  # by storage of a gradient: the tensor whose gradient made it
        self._operands: tuple | None = None  # of the operation, in their formats
        self._is_counting = False  # with operations of its own, which are not the training's
        arithmetic.operands.see_operands = self._see_operands

    def around(self, run: Callable, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """Runs an operation; of a backward pass, it notes the causes of the result's zeros."""
        if self._is_counting:
            return func(*args, **kwargs)
        if not self._places.in_backward or line.kind in _NATIVE or has_half(args, kwargs):
            return self._exact.around(run, func, line, args, kwargs)
        self._operands = None
        before = [self._before_cast(tensor) for tensor in floats(args)]
        stages = [self._at(args, before, self._exact.counterpart), self._at(args, before, self._forward.get)]
        result = self._exact.around(run, func, line, args, kwargs)
        if target_of(func, args, kwargs) is not None:
            self._forget(result)
            return result
        cast = list(floats(args if self._operands is None else self._operands))
        # Forward operands have their casts from stage 1 on.
        stages[1] = [known if old is not None else own for known, old, own in zip(stages[1], before, cast)]
        stages += [[own if old is None else old for old, own in zip(before, cast)], cast]
        at_forward = func(*_filled(args, stages[1]), **kwargs)
        for tensor, kept in _pairs(result, at_forward):
            self._forward.set(tensor, kept)
            self._made.set(tensor, tensor)
        if any(bool((tensor == 0).any()) for tensor in floats(results(result))):
            self._explain(result, func, line, args, kwargs, stages)
        return result

    def count(self, name: str, gradient: torch.Tensor, rounded: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Rounds the gradient of a weight by `rounded`, and counts the causes of its zeros."""
        if gradient.dtype is not torch.float32 or gradient.layout is not torch.strided:
            return rounded()
        with self._counting():
            codes = torch.where(gradient == 0, self._codes_of(gradient), RESULT)
            cast = self._casts.get(storage_key(gradient), "")
        result = rounded()
        with self._counting():
            self._table.of(name).add(codes[result == 0], result.numel(), cast)
        return result

    @contextmanager
    def _counting(self) -> Iterator[None]:
        self._is_counting = True
        try:
            yield
        finally:
            self._is_counting = False

    def _see_operands(self, operands: tuple) -> None:
        self._operands = operands

    def _before_cast(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A copy of a gradient as it was made; None of another operand."""
        mark = self._marks.get(tensor)
        if mark is None or not mark.is_gradient:
            return None
        made = self._made.get(tensor)
        return tensor.clone() if made is None else made.clone()

    @staticmethod
    def _at(args: tuple, before: list[Any], stage: Callable) -> list[torch.Tensor]:
        """Operands at a stage; what it does not know is the same in all."""
        found = []
        for tensor, old in zip(floats(args), before):
            known = stage(tensor)
            found.append((tensor if old is None else old) if known is None else known.clone())
        return found

    def _forget(self, result: Any) -> None:
        for tensor in floats(results(result)):
            for flats in (self._forward, self._made, self._codes):
                flats.forget(tensor)

    def _explain(
        self, result: Any, func: Any, line: Operation, args: tuple, kwargs: dict, stages: list[list[torch.Tensor]]
    ) -> None:
        place = self._places.now()
        if place is None:
            return
        if place.region is Region.FAN_IN:
            codes = [self._codes_of(tensor) for tensor in floats(args)]
            is_zero = [tensor == 0 for tensor in floats(args)]
            for tensor in floats(results(result)):
                self._codes.set(tensor, _of_sum(codes, is_zero))
        elif line.kind is not Kind.EXACT:
            self._note(result, func, _judge(line), [_filled(args, stage) for stage in stages], kwargs)

    def _note(self, result: Any, func: Any, judge: Callable, stages: list[tuple], kwargs: dict) -> None:
        forward = self._places.forward()
        with backends.own_products():
            nonzero = [judge(func, stage, kwargs) for stage in stages]
            total = results(func(*map_floats(stages[-1], torch.Tensor.double), **kwargs))
        for position, tensor in enumerate(results(result)):
            if not isinstance(tensor, torch.Tensor) or tensor.dtype is not torch.float32:
                continue
            codes = torch.where(total[position] == 0, CANCELLED, PRODUCT).to(torch.uint8)
            stays = torch.ones_like(codes, dtype=torch.bool)
            for code, found in zip((GRADIENT, UPSTREAM, FORWARD, TRUE), reversed(nonzero)):
                stays &= found[position] == 0
                codes[stays] = code
            self._codes.set(tensor, codes)
            if forward is not None:
                self._casts[storage_key(tensor)] = forward.tensor

    def _codes_of(self, gradient: torch.Tensor) -> torch.Tensor:
        """Noted causes; by values where an exact operation has moved the gradient."""
        noted = self._codes.get(gradient)
        if noted is not None:
            return noted.clone()
        codes = torch.full_like(gradient, UPSTREAM, dtype=torch.uint8)
        at_forward, exact = self._forward.get(gradient), self._exact.counterpart(gradient)
        stays = torch.ones_like(codes, dtype=torch.bool) if at_forward is None else at_forward == 0
        codes[stays] = FORWARD
        codes[stays if exact is None else stays & (exact == 0)] = TRUE
        return codes


def _judge(line: Operation) -> Callable:
    """Tells which results of an operation have a term, or are not zero: sums of products by their terms."""

    def by_terms(func: Any, args: tuple, kwargs: dict) -> list[Any]:
        return results(func(*map_floats(args, lambda tensor: (tensor != 0).float()), **kwargs))

    def by_values(func: Any, args: tuple, kwargs: dict) -> list[Any]:
        return results(func(*map_floats(args, torch.Tensor.double), **kwargs))

    return by_terms if line.kind is Kind.PRODUCT or line.name in _SUMS.split() else by_values


def _of_sum(codes: list[torch.Tensor], is_zero: list[torch.Tensor]) -> torch.Tensor:
    """A sum of zeros is zero from the last stage of its terms on; other zeros are cancelled."""
    latest, all_zero = codes[0], is_zero[0]
    for code, zero in zip(codes[1:], is_zero[1:]):
        latest, all_zero = torch.maximum(latest, code), all_zero & zero
    return torch.where(all_zero, latest, torch.full_like(latest, CANCELLED))


def _filled(args: tuple, tensors: list[torch.Tensor]) -> tuple:
    """The arguments with these in place of their float32 tensors."""
    following = iter(tensors)
    filled: tuple = map_floats(args, lambda _: next(following))
    return filled


def _pairs(result: Any, other: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [
        (tensor, kept)
        for tensor, kept in zip(results(result), results(other))
        if isinstance(tensor, torch.Tensor) and tensor.dtype is torch.float32
    ]

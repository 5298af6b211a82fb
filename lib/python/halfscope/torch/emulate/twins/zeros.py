"""Causes of the zeros of weight gradients: each backward operation is computed again with fewer casts.

The stages are in the order of the data: 0 no cast, 1 casts of the forward pass, 2 casts of later layers' gradients, 3
the cast of the operand gradient, 4 the formats of the product's operands, where they have any. The cause of a zero is
the first stage from which on all terms of its sum are zero; a zero with other terms is a flushed product or sum, or
cancelled. So causes sum to the zeros. Products, sums and scattered sums are judged by their terms, other operations by
their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.emulate.arithmetic import backends
from halfscope.torch.emulate.places import Places
from halfscope.torch.emulate.twins.exact import Exact
from halfscope.torch.emulate.twins.product_zeros import ProductZeros
from halfscope.torch.emulate.twins.zero_counts import (
    CANCELLED,
    FORWARD,
    GRADIENT,
    OPERAND,
    PRODUCT,
    RESULT,
    TRUE,
    UPSTREAM,
    ZeroTable,
)  # fmt: skip
from halfscope.torch.events.observer import Twin, Wants
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Call, Ran
from halfscope.torch.operations.counterparts import Flats, without_writes
from halfscope.torch.operations.operators import is_random, target_of
from halfscope.torch.operations.table import Kind, Operation, Trait
from halfscope.torch.policy import FP32
from halfscope.torch.private import storage_key
from halfscope.torch.tensors.elements import HALF
from halfscope.torch.tensors.trees import map_floats, map_numbers, numbers, results


class Zeros(Twin):
    """The causes of one step's zeros."""

    wants = Wants.OPERANDS | Wants.ARRIVALS | Wants.NODES

    def __init__(self, table: ZeroTable, exact: Exact, places: Places, arithmetic: Any) -> None:
        """exact: stage 0, which runs behind this twin."""
        self._table, self._exact, self._places, self._marks = table, exact, places, arithmetic.marks
        self._forward = Flats()  # gradients at stage 1
        self._made = Flats()  # gradients at stage 2: as they were made, before the first use rounds them
        self._codes = Flats()  # codes of the zeros of gradients, before these are rounded
        self._casts: dict[int, str] = {}  # by storage of a gradient: the tensor whose gradient made it
        self._products = ProductZeros(arithmetic.owner_of)
        self._before: list[Any] = []  # operands of the operation under way, of a gradient as it was made
        self._stages: list[list[torch.Tensor]] = []  # and at the first two stages
        self._arriving: tuple[torch.Tensor, str] | None = None  # codes of a weight's gradient, and its cast

    def before(self, call: Call) -> None:
        if call.is_backward and not is_random(call.func):
            self._before = [self._before_cast(tensor) for tensor in numbers(call.args)]
            stages = self._exact.counterpart, self._forward.get
            self._stages = [self._at(call.args, self._before, stage) for stage in stages]

    def ran(self, ran: Ran) -> None:
        """Notes the causes of the zeros that an operation of a backward pass has made."""
        if not ran.is_backward:
            self._products.see(ran.line, ran.args, ran.forward)
        elif target_of(ran.func, ran.args, ran.kwargs) is not None and not is_random(ran.func):
            self._forget(ran.result)
        elif not is_random(ran.func):
            self._follow(ran)

    def _follow(self, ran: Ran) -> None:
        func, args, before, stages = ran.func, ran.args, self._before, self._stages
        cast = list(numbers(args if ran.operands is None else ran.operands))
        # Forward operands have their casts from stage 1 on.
        stages[1] = [known if old is not None else own for known, old, own in zip(stages[1], before, cast)]
        stages += [[own if old is None else old for old, own in zip(before, cast)], cast]
        if ran.images is not None:
            stages.append(list(numbers(ran.images)))
        options = {key: map_numbers(value, torch.Tensor.float) for key, value in ran.kwargs.items()}
        again, own_options = without_writes(func, _filled(args, stages[1]), options)
        at_forward = results(func(*again, **own_options))
        made = [_as_made(tensor, ran) for tensor in results(ran.result)]
        for tensor, own, kept in zip(results(ran.result), made, at_forward):
            if own is not None:
                self._forward.set(tensor, kept)
                self._made.set(tensor, own)
        if any(bool((own == 0).any()) for own in made if own is not None):
            self._explain(list(zip(results(ran.result), made)), ran, options, stages)

    def arrives(self, owned: Any, gradient: torch.Tensor) -> None:
        self._arriving = None
        if _is_number(gradient) and gradient.layout is torch.strided:
            codes = torch.where(gradient == 0, self._codes_of(gradient), RESULT)
            self._arriving = codes, self._casts.get(storage_key(gradient), "")

    def arrived(self, owned: Any, gradient: torch.Tensor, rounded: torch.Tensor) -> None:
        if self._arriving is not None:
            codes, cast = self._arriving
            self._table.of(owned.name).add(codes[rounded == 0], rounded.numel(), cast)

    def left_node(self, gradients: tuple) -> None:
        """Gradients of a product of two activations have rows."""
        for row, gradient in zip(self._products.rows(self._places.forward()), gradients):
            if row and isinstance(gradient, torch.Tensor) and _is_number(gradient):
                self._count_operand(row, gradient)

    def _count_operand(self, row: str, gradient: torch.Tensor) -> None:
        """The operation that uses the gradient rounds it later; random roundings are left to that."""
        place, rounded = self._places.now(), gradient
        quantizer = FP32 if place is None else place.formats.activation_gradient
        rounds = quantizer != FP32 and "stochastic" not in quantizer
        if rounds and gradient.dtype is torch.float32 and not self._marks.is_wide(gradient):
            rounded = device_of(gradient).round(gradient, quantizer)
        codes = torch.where(gradient == 0, self._codes_of(gradient), RESULT)
        cast = self._casts.get(storage_key(gradient), "")
        self._table.of(row, is_operand=True).add(codes[rounded == 0], rounded.numel(), cast)

    def _before_cast(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A copy of a gradient as it was made; None of another operand."""
        made = self._made.get(tensor)
        if tensor.dtype in HALF:
            return None if made is None else made.clone()
        mark = self._marks.get(tensor)
        if mark is None or not mark.is_gradient:
            return None
        return tensor.clone() if made is None else made.clone()

    @staticmethod
    def _at(args: tuple, before: list[Any], stage: Callable) -> list[torch.Tensor]:
        """Operands at a stage; what it does not know is the same in all."""
        found = []
        for tensor, old in zip(numbers(args), before):
            known = stage(tensor)
            found.append((tensor if old is None else old) if known is None else known.clone())
        return found

    def _forget(self, result: Any) -> None:
        for tensor in numbers(results(result)):
            for flats in (self._forward, self._made, self._codes):
                flats.forget(tensor)

    def _explain(self, made: list[tuple], ran: Ran, options: dict, stages: list[list[torch.Tensor]]) -> None:
        """made: results, and as they are before a cast to 16 bits; options: arguments by name, in FP32."""
        line, args, place = ran.line, ran.args, ran.place
        if place is None:
            return
        if place.region is Region.FAN_IN or Trait.COPIES in line.traits:
            codes = [self._codes_of(tensor) for tensor in numbers(args)]
            is_zero = [tensor == 0 for tensor in numbers(args)]
            for tensor, own in made:
                if own is not None:
                    self._codes.set(tensor, _of_sum(codes, is_zero))
        elif line.kind is not Kind.EXACT:
            self._note(made, ran, [_filled(args, stage) for stage in stages], options)

    def _note(self, made: list[tuple], ran: Ran, stages: list[tuple], options: dict) -> None:
        func, judge, forward = ran.func, _judge(ran.line), ran.forward
        with backends.own_products():
            nonzero = [judge(func, stage, options) for stage in stages]
            total = results(func(*map_floats(stages[-1], torch.Tensor.double), **options))
        for position, (tensor, own) in enumerate(made):
            if own is None:
                continue
            codes = torch.where(total[position] == 0, CANCELLED, PRODUCT).to(torch.uint8)
            stays = torch.ones_like(codes, dtype=torch.bool)
            causes = (TRUE, FORWARD, UPSTREAM, GRADIENT, OPERAND)[: len(nonzero)]
            for code, found in zip(reversed(causes), reversed(nonzero)):
                stays &= found[position] == 0
                codes[stays] = code
            self._codes.set(tensor, codes)
            if forward is not None:
                self._casts[storage_key(tensor)] = forward.tensor

    def _codes_of(self, gradient: torch.Tensor) -> torch.Tensor:
        """Noted causes; by values where an exact operation has moved the gradient."""
        noted, made = self._codes.get(gradient), self._made.get(gradient)
        is_cast = None if gradient.dtype not in HALF or made is None else made != 0  # by its own cast to 16 bits
        if noted is not None:
            return noted.clone() if is_cast is None else torch.where(is_cast, RESULT, noted)
        codes = torch.full_like(gradient, UPSTREAM, dtype=torch.uint8)
        at_forward, exact = self._forward.get(gradient), self._exact.counterpart(gradient)
        stays = torch.ones_like(codes, dtype=torch.bool) if at_forward is None else at_forward == 0
        codes[stays] = FORWARD
        codes[stays if exact is None else stays & (exact == 0)] = TRUE
        return codes if is_cast is None else torch.where(is_cast, RESULT, codes)


def _as_made(tensor: Any, ran: Ran) -> torch.Tensor | None:
    """A result before it is rounded to 16 bits, in FP32; None of another one than numbers."""
    if not isinstance(tensor, torch.Tensor) or not _is_number(tensor):
        return None
    exact = next((exact for result, exact in ran.unrounded if result is tensor), tensor)
    return exact.float()


def _judge(line: Operation) -> Callable:
    """Tells which results of an operation have a term, or are not zero: sums of products by their terms."""

    def by_terms(func: Any, args: tuple, kwargs: dict) -> list[Any]:
        return results(func(*map_floats(args, lambda tensor: (tensor != 0).float()), **kwargs))

    def by_values(func: Any, args: tuple, kwargs: dict) -> list[Any]:
        return results(func(*map_floats(args, torch.Tensor.double), **kwargs))

    return by_terms if line.kind is Kind.PRODUCT or Trait.BY_TERMS in line.traits else by_values


def _of_sum(codes: list[torch.Tensor], is_zero: list[torch.Tensor]) -> torch.Tensor:
    """A sum of zeros is zero from the last stage of its terms on; other zeros are cancelled."""
    latest, all_zero = codes[0], is_zero[0]
    for code, zero in zip(codes[1:], is_zero[1:]):
        latest, all_zero = torch.maximum(latest, code), all_zero & zero
    return torch.where(all_zero, latest, torch.full_like(latest, CANCELLED))


def _filled(args: tuple, tensors: list[torch.Tensor]) -> tuple:
    """The arguments with these, as float32, in place of their tensors of numbers."""
    following = iter(tensors)
    filled: tuple = map_numbers(args, lambda _: next(following).float())
    return filled


def _is_number(tensor: torch.Tensor) -> bool:
    return tensor.dtype is torch.float32 or tensor.dtype in HALF

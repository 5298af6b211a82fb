"""A step computed twice, in emulated formats and in FP32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.places import Places
from halfscope.torch.emulate.twins.cancellation import terms_of
from halfscope.torch.emulate.twins.comparison import Comparison
from halfscope.torch.emulate.twins.counterparts import Counterparts, map_arguments, view_of
from halfscope.torch.emulate.twins.noise import Noise
from halfscope.torch.events.nodes import Forward
from halfscope.torch.events.place import Place, Region
from halfscope.torch.operations.operators import is_random, target_of
from halfscope.torch.operations.table import NO_ARITHMETIC, Kind, Operation
from halfscope.torch.private import storage_key


class Shadows(Counterparts):
    """The FP32 counterpart of every tensor of a step, in a copy of its storage."""

    def __init__(self, comparison: Comparison, step: int, places: Places, arithmetic: Any) -> None:
        super().__init__()
        self._comparison, self._step, self._places = comparison, step, places
        self._marks: Marks = arithmetic.marks
        self._latest: Callable[[], Forward | None] = lambda: arithmetic.latest
        self.observer: Any = None  # for a diagnosis
        self.compares = True  # whether differences are noted
        self.noise = Noise(step, places, arithmetic) if comparison.has_floor else None
        self._seen: set[tuple[str, str, int]] = set()

    def around(self, run: Callable, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation in emulated formats, after the same in FP32."""
        place = self._places.now()
        if line.kind in NO_ARITHMETIC or (place is not None and place.region is Region.UPDATE):
            return run(func, line, args, kwargs)
        if is_random(func) or (place is None and not self._any_shadow((args, kwargs))):
            return run(func, line, args, kwargs)
        in_place = target_of(func, args, kwargs) is not None
        self._shadow_written(func, args, kwargs)
        if self.noise is not None:
            self.noise._shadow_written(func, args, kwargs)
        own_args, own_kwargs = map_arguments(func, (args, kwargs), self._own, self._shadowed)
        exact = func(*own_args, **own_kwargs)
        result = run(func, line, args, kwargs)
        if not in_place:
            self._keep(result, exact)
        if self.noise is not None:
            self.noise.run(func, line, (args, kwargs), result)
        if self.observer is not None:
            in_forward = place is not None and place.region is Region.FORWARD
            forward = self._latest() if in_forward else self._places.forward()
            self.observer(line.name, place, args, kwargs, exact, result, forward)
        if place is not None and line.kind is Kind.PRODUCT and not in_place and self.compares:
            self._note_cancellation(terms_of(func, self._shadowed(args), self._shadowed(kwargs)), (line, place, exact))
        if place is not None and line.kind is not Kind.EXACT:
            self._compare_operation(line, place, args, result)
        return result

    def _compare_operation(self, line: Operation, place: Place, args: tuple, result: Any) -> None:
        if place.region is Region.FORWARD:
            first = result[0] if isinstance(result, (tuple, list)) else result
            if isinstance(first, torch.Tensor):
                latest = self._latest()
                self.compare("activation", place.tensor(line.name) if latest is None else latest.row, first)
        elif place.region is Region.BACKWARD:
            forward = self._places.forward()
            name = place.tensor(line.name) if forward is None else forward.row
            for value in args:
                mark = self._marks.get(value) if isinstance(value, torch.Tensor) else None
                if mark is not None and mark.is_gradient:
                    self.compare("activation_gradient", name, value)
                    return

    def _note_cancellation(self, terms: Any, about: tuple[Operation, Place, Any]) -> None:
        line, place, sums = about
        forward = self._latest() if place.region is Region.FORWARD else self._places.forward()
        name = place.tensor(line.name) if forward is None else forward.row
        self._comparison.cancellation(place.region.value, name, line.name).add(terms, sums)

    def compare(self, role: str, name: str, tensor: torch.Tensor, original: torch.Tensor | None = None) -> None:
        """Notes how far `tensor` is from the counterpart of it, or of the `original` that it was rounded from.

        A gradient that several operations use is noted once.
        """
        if not self.compares:
            return
        original = tensor if original is None else original
        key = (role, name, storage_key(original))
        found = self._shadows.get(storage_key(original))
        if found is None or key in self._seen or not tensor.is_floating_point():
            return
        self._seen.add(key)
        exact, difference = view_of(found[1], original), self._comparison.difference(self._step, role, name)
        difference.add(tensor, exact)
        if self.noise is not None:
            difference.add_noise(self.noise.of(original, self._marks.get(tensor)), exact)

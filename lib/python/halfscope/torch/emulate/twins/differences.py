"""Observer of a compared step: how far each tensor is from FP32's, and how much of a product's sum cancels."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.twins.cancellation import terms_of
from halfscope.torch.emulate.twins.comparison import Comparison
from halfscope.torch.emulate.twins.exact import Exact
from halfscope.torch.emulate.twins.noise import Noise
from halfscope.torch.events.observer import Observer, StepPlan, Wants
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Call, Cast, Ran
from halfscope.torch.operations.operators import target_of
from halfscope.torch.operations.table import Kind
from halfscope.torch.private import storage_key


class Differences(Observer):
    """Enters a step into a comparison; with a floor the signed errors of its casts too."""

    def __init__(self, comparison: Comparison, marks: Marks, exact: Exact, noise: Noise | None) -> None:
        self.wants = Wants.ARRIVALS if noise is None else Wants.ARRIVALS | Wants.CASTS | Wants.NUMBERS_BEFORE
        self._comparison, self._marks, self._exact, self._noise = comparison, marks, exact, noise
        self._seen: set[tuple[str, str, int]] = set()

    def begin_step(self, plan: StepPlan) -> None:
        self._step = plan.number

    def cast(self, call: Call | None, cast: Cast) -> None:
        if cast.before is not None:
            self._comparison.note_cast(cast.before, cast.tensor, (cast.quantizer, cast.role, cast.name))

    def ran(self, ran: Ran) -> None:
        place, kind = ran.place, ran.line.kind
        if not ran.has_exact or place is None:
            return
        name = place.tensor(ran.operation) if ran.forward is None else ran.forward.row
        if kind is Kind.PRODUCT and target_of(ran.func, ran.args, ran.kwargs) is None:
            terms = terms_of(ran.operation, self._exact.beside(ran.args), self._exact.beside(ran.kwargs))
            self._comparison.cancellation(place.region.value, name, ran.operation).add(terms, ran.exact)
        if kind is not Kind.EXACT:
            self._compare_operation(ran, place.region, name)

    def arrived(self, owned: Any, gradient: torch.Tensor, rounded: torch.Tensor) -> None:
        self._compare("weight_gradient", owned.name, rounded, gradient)

    def _compare_operation(self, ran: Ran, region: Region, name: str) -> None:
        """A forward operation by its result; one of a backward pass by the gradient that it uses."""
        if region is Region.FORWARD:
            first = ran.result[0] if isinstance(ran.result, (tuple, list)) else ran.result
            if isinstance(first, torch.Tensor):
                self._compare("activation", name, first, first)
        elif region is Region.BACKWARD:
            tensors = [value for value in ran.args if isinstance(value, torch.Tensor)]
            gradient = next((tensor for tensor in tensors if self._is_gradient(tensor)), None)
            if gradient is not None:
                self._compare("activation_gradient", name, gradient, gradient)

    def _is_gradient(self, tensor: torch.Tensor) -> bool:
        mark = self._marks.get(tensor)
        return mark is not None and mark.is_gradient

    def _compare(self, role: str, name: str, tensor: torch.Tensor, original: torch.Tensor) -> None:
        """Notes how far a tensor is from the counterpart of the `original` that it was rounded from.

        A gradient that several operations use is noted once.
        """
        key = (role, name, storage_key(original))
        exact = self._exact.counterpart(original)
        if exact is None or key in self._seen or not tensor.is_floating_point():
            return
        self._seen.add(key)
        difference = self._comparison.difference(self._step, role, name)
        difference.add(tensor, exact)
        if self._noise is not None:
            difference.add_noise(self._noise.of(original, self._marks.get(tensor)), exact)

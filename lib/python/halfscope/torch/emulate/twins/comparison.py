"""Differences of a step in emulated formats to the same step in FP32, beside what round-off explains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from halfscope.roundoff import SignedError, signed_error
from halfscope.torch.counts.totals import NO_SIZE
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.emulate.twins.cancellation import Cancellation
from halfscope.torch.tensors.distance import distance_sums
from halfscope.torch.tensors.storages import stored

GRADIENT = "weight_gradient"
_BEYOND = 3.0  # times the floor
_FEWEST = 32  # elements; fewer are not judged: one draw of roundings says little about them


@dataclass
class Difference:
    """Differences of a tensor in emulated formats from that of FP32, all of a step's uses together."""

    step: int
    role: str
    tensor: str
    absolute_error: float = 0.0  # the largest
    elements: int = 0
    _noise: float = 0.0  # squared difference of roundings at random to FP32
    _squares: list[float] = field(
        default_factory=lambda: [0.0, 0.0, 0.0, 0.0]
    )  # squares of the difference, FP32, emulated; product

    def add_noise(self, noisy: torch.Tensor | None, exact: torch.Tensor) -> None:
        """noisy: with stochastic roundings; None where nothing was rounded."""
        self.elements += exact.numel()
        if noisy is not None:
            difference = stored(noisy).double() - stored(exact).double()
            self._noise += float((difference.nan_to_num(0, 0, 0) ** 2).sum())

    def add(self, emulated: torch.Tensor, exact: torch.Tensor) -> None:
        """Infinities and NaNs that both have are no difference, such as a mask's."""
        sums = distance_sums(stored(emulated).detach(), stored(exact).detach())
        is_finite = sums.spoiled == sums.strayed == 0
        self.absolute_error = max(self.absolute_error, sums.largest_error) if is_finite else math.inf
        parts = (
            sums.squared_error if is_finite else math.inf, sums.squared_size, sums.squared_found, sums.product
        )  # fmt: skip
        self._squares = [known + part for known, part in zip(self._squares, parts)]

    @property
    def relative_error(self) -> float:
        """Norm of the difference over the norm of FP32's; infinite where a number is not finite."""
        difference, exact = self._squares[0], self._squares[1]
        if not math.isfinite(difference):
            return math.inf
        if exact == 0:
            return 0.0 if difference == 0 else math.inf
        return math.sqrt(difference / exact)

    @property
    def floor(self) -> float:
        """The relative error that roundings to nearest explain: stochastic ones have twice their square."""
        return math.sqrt(self._noise / 2 / self._squares[1]) if self._squares[1] else 0.0

    @property
    def times(self) -> float:
        """The error over that floor; 1 where there is none of both."""
        error = self.relative_error
        return error / self.floor if self.floor else (math.inf if error else 1.0)

    @property
    def norm(self) -> float:
        """Norm of FP32's values."""
        return math.sqrt(self._squares[1])

    @property
    def cosine(self) -> float:
        """Cosine of the angle between the two; NaN if one of them is zero or not finite."""
        difference, exact, emulated, product = self._squares
        if not math.isfinite(difference) or not exact or not emulated:
            return math.nan
        return product / (math.sqrt(exact) * math.sqrt(emulated))


Differences = dict[tuple[int, str, str], Difference]  # by step, role and tensor
Products = dict[tuple[str, str], Cancellation]  # by "forward" or "backward", and the operation's row
Casts = dict[tuple[str, str], SignedError]  # by role and tensor


class Comparison:
    """Differences by step, role and tensor, the largest error first."""

    def __init__(
        self,
        found: dict[tuple[int, str, str], Difference] | None = None,
        casts: Casts | None = None,
        floor: bool = False,
    ) -> None:
        """floor: whether the step is computed once more with roundings at random, and casts are looked at."""
        self._found = {} if found is None else found
        self.casts: Casts = {} if casts is None else casts
        self.has_floor = floor
        self._products: Products = {}
        self.instead: dict[int, int] = {}  # steps that were compared in place of skipped ones

    def difference(self, step: int, role: str, tensor: str) -> Difference:
        """Difference of a tensor, at first empty."""
        return self._found.setdefault((step, role, tensor), Difference(step, role, tensor))

    def cancellation(self, region: str, name: str, operation: str) -> Cancellation:
        """Cancellation of a product, at first empty; the products of a backward pass together."""
        return self._products.setdefault((region, name), Cancellation(operation))

    def cancellations(self) -> dict[tuple[str, str], float]:
        """Sum of |terms| over |sum| of every product of the compared steps, by "forward" or "backward" and its name.

        The largest first: there partial sums in a narrow format, as split-K kernels store them, hurt most.
        """
        found = {key: product.ratio for key, product in self._products.items()}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def drop(self, step: int) -> None:
        self._found = {key: found for key, found in self._found.items() if key[0] != step}

    @property
    def steps(self) -> list[int]:
        return sorted({step for step, _, _ in self._found})

    def of_steps(self, steps: Iterable[int] | None, floor: bool = False) -> Comparison:
        """The comparison of these steps alone; of all for None. Raises ValueError for one that was not compared.

        floor: its text has the floor of each tensor; raises ValueError where no floor was computed.

        A step that a scaler skipped is the next one that it took.
        """
        wanted = self.steps if steps is None else [self.instead.get(step, step) for step in steps]
        missing = sorted(set(wanted) - set(self.steps))
        if missing:
            raise ValueError(
                f"compare_to: step {missing[0]} was not compared, only {self.steps}; "
                f"give emulate(..., compare_steps={wanted})"
            )
        if floor and not self.has_floor:
            raise ValueError("compare_to: no floor was computed; give emulate(..., floor=True)")
        copy = Comparison({key: found for key, found in self._found.items() if key[0] in wanted}, self.casts, floor)
        copy._products = self._products
        return copy

    def ranked(self) -> list[Difference]:
        """The largest error first; of equal ones the first that was computed; gradients of no size last."""
        is_zero = self._without_size()
        return sorted(self._found.values(), key=lambda found: (is_zero(found), -found.relative_error))

    def of_no_size(self) -> set[str]:
        """Weight gradients that are round-off alone in FP32, in all compared steps."""
        is_zero = self._without_size()
        gradients = [found for found in self._found.values() if found.role == GRADIENT]
        return {found.tensor for found in gradients} - {found.tensor for found in gradients if not is_zero(found)}

    def _without_size(self) -> Callable[[Difference], bool]:
        """Tells whether a tensor is a weight gradient that is zero but for round-off."""
        largest = self._largest_gradients()

        def is_zero(found: Difference) -> bool:
            layer = found.step, found.tensor.rpartition(".")[0]
            return found.role == GRADIENT and found.norm < NO_SIZE * largest.get(layer, 0.0)

        return is_zero

    def _largest_gradients(self) -> dict[tuple[int, str], float]:
        """Norms of the weight gradients of each layer: a bias before a softmax has a gradient of round-off alone."""
        largest: dict[tuple[int, str], float] = {}
        for found in self._found.values():
            if found.role == GRADIENT and math.isfinite(found.norm):
                layer = found.step, found.tensor.rpartition(".")[0]
                largest[layer] = max(largest.get(layer, 0.0), found.norm)
        return largest

    def beyond(self) -> list[Difference]:
        """Tensors whose error round-off does not explain, the first that was computed first."""
        return [found for found in self._found.values() if found.elements >= _FEWEST and found.times > _BEYOND]

    def note_cast(self, before: torch.Tensor, after: torch.Tensor, about: tuple[str, str, str]) -> None:
        """Keeps the signed error of a cast, of several that of the most numbers; about: quantizer, role, tensor."""
        quantizer, role, name = about
        near = device_of(before).near
        found, known = signed_error(near(before), near(after), quantizer), self.casts.get((role, name))
        if known is None or found.numbers > known.numbers:
            self.casts[role, name] = found

    def __len__(self) -> int:
        return len(self._found)

    def __str__(self) -> str:
        shown = self.ranked()[:20]
        width = max([32, *(len(found.tensor) for found in shown)])
        floor = f" {'floor':>9} {'times':>6}" if self.has_floor else ""
        rows = [f"{'step':>5}  {'role':<20} {'tensor':<{width}} {'error':>9} {'cosine':>8} {'absolute':>9}{floor}"]
        for found in shown:
            own = f" {found.floor:>9.2g} {found.times:>6.2g}" if self.has_floor else ""
            rows.append(
                f"{found.step:>5}  {found.role:<20} {found.tensor:<{width}} {found.relative_error:>9.2g} "
                f"{found.cosine:>8.4f} {found.absolute_error:>9.2g}{own}"
            )
        return "\n".join([*rows, *(self._verdict() if self.has_floor else [])])

    def _verdict(self) -> list[str]:
        """Lines on what round-off does not explain."""
        lines = [
            f"{found.role.replace('_', ' ')} {found.tensor}: {found.times:.3g} times what its roundings explain, step "
            f"{found.step}"
            for found in self.beyond()[:5]
        ]
        lines += [
            f"cast of {role.replace('_', ' ')} {name} to {found.quantizer}: {found}"
            for (role, name), found in self.casts.items()
            if found.is_one_sided
        ][:5]
        if self.beyond():
            lines.append(
                "Look at the order of sums, at one-sided casts, and for a ReLU or maximum that rounding switched."
            )
        return lines or ["Roundings to nearest explain all of this: no tensor is beyond 3 times its floor."]

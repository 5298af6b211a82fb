"""Result of `gradient_errors`: errors by product and layer, and the exceptions that a training needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfscope.reporting import Finding, Report, Reported
from halfscope.results.dataframes import frame
from halfscope.text_tables import aligned
from halfscope.torch.gradient_errors.error_sums import GradientError
from halfscope.torch.gradient_errors.kept_products import SEEN, Judge, LeftLayers
from halfscope.torch.gradient_errors.policy_products import PolicyProducts, kind_of, layer_of
from halfscope.torch.words import called, counted, number, quoted, to_paste

if TYPE_CHECKING:
    import pandas as pd

ROWS = 20  # layers of the table
ALL = "all"


@dataclass(frozen=True)
class Choice:
    """Products left out of the formats. units: errors of each product alone; layers: errors by number of layers."""

    left: tuple[str, ...]
    within: GradientError  # error of the operands that keep the formats
    typed: GradientError  # error of the whole policy so
    units: Mapping[str, GradientError]
    layers: tuple[LeftLayers, ...]


class GradientErrors(Reported):
    """Errors over noise: all products together, by product, and by product and layer where a training may see them."""

    def __init__(
        self, products: PolicyProducts, judge: Judge, whole: GradientError, kinds: Mapping[str, GradientError],
        choice: Choice, batches: int,
    ) -> None:  # fmt: skip
        self._products, self._judge, self._choice, self._batches = products, judge, choice, batches
        self.whole = whole
        self.products: dict[str, GradientError] = dict(kinds)

    @property
    def units(self) -> dict[str, GradientError]:
        """Error of each product of a layer alone, as "forward@fc1"; none where no effect is expected."""
        return dict(self._choice.units)

    @property
    def layers(self) -> tuple[LeftLayers, ...]:
        """Errors with 0, 1, 2, 4, ... and all layers out of the formats; none where no effect is expected."""
        return self._choice.layers

    @property
    def left(self) -> tuple[str, ...]:
        """Products to leave in the formats of their roles, the one with the largest error first."""
        return self._choice.left

    @property
    def is_seen(self) -> bool:
        """Whether the error of all products exceeds the limit."""
        return self._judge.seen(self.whole) > self.limit

    @property
    def limit(self) -> float:
        """Error over noise below which no effect on a training is expected."""
        return self._judge.limit

    @property
    def exceptions(self) -> dict[str, Any]:
        """For `emulate(model, policy, exceptions=...)`: those that were given, and products left out."""
        return self._products.exceptions_leaving([name for name in self.units if name in self.left])

    def seen(self, error: GradientError) -> float:
        """The error over noise that the optimizer sees."""
        return self._judge.seen(error)

    def to_pandas(self) -> pd.DataFrame:
        """A row for all products, for each product, and for each of a layer: both errors with their intervals.

        Raises ImportError without pandas.
        """
        rows = [[ALL, "all layers", *_numbers(self.whole)]]
        rows += [[kind, "all layers", *_numbers(error)] for kind, error in self.products.items()]
        rows += [[kind_of(name), layer_of(name), *_numbers(error)] for name, error in self.units.items()]
        columns = ["product", "layer", "whole", "whole_low", "whole_high", "beside_factor", "low", "high"]
        return frame(rows, columns=columns).set_index(["product", "layer"])

    @property
    def report(self) -> Report:
        """The exceptions to type, or that no effect is expected; why, and how sure."""
        finding = self._finding()
        pasted = to_paste("exceptions", self.exceptions) if self.exceptions else []
        lines = [finding.change, *pasted, f"  Why: {finding.why}", f"  Sure: {finding.sure}"]
        return Report("gradient_errors", (finding,) if self.is_seen else (), about=self._about(),
                      text="\n".join(lines), table=self.table())  # fmt: skip

    def _finding(self) -> Finding:
        policy, whole, limit = self._products.policy, self.seen(self.whole), self.limit
        typed = f"{self.seen(self._choice.typed):.2g} with its tensors in {self._products.role_format} as well"
        call = f"emulate(model, {quoted(policy) if isinstance(policy, str) else policy}"
        if not self.is_seen:
            more = ", exceptions=exceptions" if self._products.exceptions else ""
            change = f"Type {call}{more}): no effect on the training is expected"
            why = f"error over noise {whole:.2g} is below {limit:g}; {typed}"
            return Finding("unseen", change, why, self._sure(), about=self.whole)
        change = f"Type {call}, exceptions=exceptions) with"
        left = f"{len(self.left)} of {number(self.units, 'product')}"
        why = (
            f"error over noise {whole:.2g} is above {limit:g}; without {left} in these formats it is "
            f"{self.seen(self._choice.within):.2g}; {typed}"
        )
        return Finding("left", change, why, self._sure(), about=self.left)

    def _sure(self) -> str:
        low, high = self._judge.interval(self.whole)
        interval = f"95 % interval {low:.2g} to {high:.2g}" if not math.isnan(low) else "no interval below 8 batches"
        return f"computed for one step on {counted(self._batches, 'batch')}, {interval}; no training was tried"

    def table(self) -> str:
        """Errors by product and layer, the largest first, and with layers left out."""
        kinds = list(self.products)
        rows = [("error over noise", *kinds, ALL)]
        rows += [
            ("all layers", *(f"{self.seen(self.products[kind]):.1e}" for kind in kinds), f"{self.seen(self.whole):.1e}")
        ]
        return "\n\n".join(filter(None, [aligned([*rows, *self._rows(kinds)]), self._curve()]))

    def _rows(self, kinds: list[str]) -> list[tuple[str, ...]]:
        layers = dict.fromkeys(map(layer_of, self.units))
        each = {layer: [self.units.get(f"{kind}@{layer}") for kind in kinds] for layer in layers}
        largest = {layer: max(self.seen(error) for error in errors if error) for layer, errors in each.items()}
        ranked = sorted(layers, key=lambda layer: -largest[layer])[:ROWS]
        return [
            (called(layer), *(f"{self.seen(error):.1e}" if error else "-" for error in each[layer]), "")
            for layer in ranked
        ]

    def _curve(self) -> str:
        if not self.layers:
            return ""
        rows = [("layers left out", "error over noise", "the last of them")]
        rows += [(f"{len(each.layers)}", f"{self.seen(each.error):.1e}", called(each.layers[-1]) if each.layers else "")
                 for each in self.layers]  # fmt: skip
        return aligned(rows, right=False)

    def _about(self) -> str:
        judge = self._judge
        seen = "the part that multiplies a weight's gradient by one number is taken away, as Adam does not see it"
        words = "the whole error counts" if judge.optimizer == "sgd" else seen
        return (
            f"Error over noise: squared error of the gradients of all weights over their variance between batches; "
            f"{words}. Below {SEEN} trainings of a hundred steps told no format from FP32."
        )


def _numbers(error: GradientError) -> list[float]:
    return [error.whole, *error.whole_interval, error.beside_factor, *error.beside_interval]

"""Zeros of weight gradients by cause: counts per tensor, a table, and the change that a count suggests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

# By code: heading of the table, and the cause in words. Codes 0 to 3 are in the order of the data.
CAUSES = {
    "true": "zero in FP32 too",
    "forward": "an activation or weight was flushed in the forward pass",
    "upstream": "the output's gradient was zero already, flushed in a later layer",
    "gradient": "the cast of the output's gradient flushed it",
    "product": "a product or sum was flushed",
    "cancelled": "terms of both signs cancelled",
    "result": "the cast of the result flushed it",
}
TRUE, FORWARD, UPSTREAM, GRADIENT, PRODUCT, CANCELLED, RESULT = range(len(CAUSES))
# Changes by cause, of which the most frequent cause of all tensors chooses one.
_CHANGES = {
    "forward": "Keep the activations of {tensor} in BF16 or FP32: rules={{'{module}': {{'activation': 'bf16'}}}}.",
    "upstream": "Raise the loss scale, or keep activation gradients in BF16, for the gradients of {tensor}.",
    "gradient": "Raise the loss scale, or keep activation gradients in BF16: rules={{'{module}': "
    "{{'activation_gradient': 'bf16'}}}}.",
    "product": "Add up in FP32: emulate(..., accumulate='fp32_fused').",
    "result": "Raise the loss scale, or keep weight gradients in FP32: rules={{'{module}': "
    "{{'weight_gradient': 'fp32'}}}}.",
}


@dataclass
class ZeroCounts:
    """Zeros of the gradients of a weight, over all backward passes of all steps."""

    tensor: str
    elements: int = 0
    zeros: int = 0
    causes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))  # sums to `zeros`
    casts: Counter[str] = field(default_factory=Counter)  # activation gradients whose own cast flushed, by tensor

    def add(self, codes: torch.Tensor, elements: int, cast: str) -> None:
        """codes: causes of the zeros, as positions in CAUSES; cast: the tensor whose gradient the operation used."""
        counts = torch.bincount(codes.flatten().long(), minlength=len(CAUSES)).tolist()
        for cause, count in zip(CAUSES, counts):
            self.causes[cause] += count
        if counts[GRADIENT] and cast:
            self.casts[cast] += counts[GRADIENT]
        self.elements += elements
        self.zeros += codes.numel()

    @property
    def by_format(self) -> int:
        """Zeros that FP32 has not; cancelled ones are not among them."""
        return self.zeros - self.causes["true"] - self.causes["cancelled"]


class ZeroTable:
    """`ZeroCounts` by tensor; `str` of it is the table, the most zeros of the formats first."""

    def __init__(self) -> None:
        self._found: dict[str, ZeroCounts] = {}

    def __getitem__(self, tensor: str) -> ZeroCounts:
        return self._found[tensor]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def of(self, tensor: str) -> ZeroCounts:
        """The counts of a tensor, which begin with nothing."""
        return self._found.setdefault(tensor, ZeroCounts(tensor))

    def to_pandas(self) -> object:
        """A frame with a row for each tensor: elements, zeros, and a column for each cause."""
        import pandas as pd

        rows = [
            {"tensor": found.tensor, "elements": found.elements, "zeros": found.zeros, **found.causes}
            for found in self._ranked()
        ]
        return pd.DataFrame(rows, columns=["tensor", "elements", "zeros", *CAUSES]).set_index("tensor")

    def _ranked(self) -> list[ZeroCounts]:
        return sorted(self._found.values(), key=lambda found: (-found.by_format, -found.zeros))

    def __str__(self) -> str:
        shown = [found for found in self._ranked() if found.zeros][:20]
        width = max([16, *(len(found.tensor) for found in shown)])
        header = f"{'weight gradient':<{width}} {'elements':>9} {'zeros':>9}"
        rows = [header + "".join(f" {cause:>9}" for cause in CAUSES)]
        for found in shown:
            counts = "".join(f" {count:>9}" for count in found.causes.values())
            rows.append(f"{found.tensor:<{width}} {found.elements:>9} {found.zeros:>9}{counts}")
        return "\n".join(rows)

    def words(self) -> list[str]:
        """Two sentences of the report: the change to make first, and why; none without a zero."""
        zeros = sum(found.zeros for found in self._found.values())
        if not zeros:
            return []
        totals = {cause: sum(found.causes[cause] for found in self._found.values()) for cause in CAUSES}
        parts = [f"{count} {cause}" for cause, count in totals.items() if count]
        elements = sum(found.elements for found in self._found.values())
        why = f"{zeros} of {elements} elements of weight gradients are zero: {', '.join(parts)}."
        worst = max(_CHANGES, key=lambda cause: totals[cause])
        if not totals[worst]:
            return [f"{why} No zero is the formats'."]
        tensor = max(self._found.values(), key=lambda found: found.causes[worst]).tensor
        module = tensor.rpartition(".")[0] or "*"
        change = _CHANGES[worst].format(tensor=tensor, module=module)
        return [change, f"{why} Most of the formats' zeros: {CAUSES[worst]} ({tensor} first); not tried."]

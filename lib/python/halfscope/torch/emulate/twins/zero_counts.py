"""Zeros of weight gradients by cause: counts per tensor, a table, and the change that a count suggests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

# By code: heading of the table, and the cause in words. Codes 0 to 4 are in the order of the data.
CAUSES = {
    "true": "zero in FP32 too",
    "forward": "an activation or weight was flushed in the forward pass",
    "upstream": "the output's gradient was zero already, flushed in a later layer",
    "gradient": "the cast of the output's gradient flushed it",
    "operand": "the format of the product's operands flushed it",
    "product": "a product or sum was flushed",
    "cancelled": "terms of both signs cancelled",
    "result": "the cast of the result flushed it",
}
TRUE, FORWARD, UPSTREAM, GRADIENT, OPERAND, PRODUCT, CANCELLED, RESULT = range(len(CAUSES))
# Changes by cause, of which the most frequent cause of all tensors chooses one.
_CHANGES = {
    "forward": "Keep the activations of {tensor} in BF16 or FP32: exceptions={{'{module}': {{'activation': 'bf16'}}}}.",
    "upstream": "Raise the loss scale, or keep activation gradients in BF16, for the gradients of {tensor}.",
    "gradient": "Raise the loss scale, or keep activation gradients in BF16: exceptions={{'{module}': "
    "{{'activation_gradient': 'bf16'}}}}.",
    "operand": "Keep the operands of these layers in BF16: exceptions={{'{module}': 'bf16'}}.",
    "product": "Add up in FP32: emulate(..., order='fp32_fused').",
    "result": "Raise the loss scale, or keep weight gradients in FP32: exceptions={{'{module}': "
    "{{'weight_gradient': 'fp32'}}}}.",
}


@dataclass
class ZeroCounts:
    """Zeros of the gradients of a weight, or of a product's operand, over all backward passes of all steps."""

    tensor: str
    elements: int = 0
    zeros: int = 0
    causes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))  # sums to `zeros`
    is_operand: bool = False  # operand of a product of two activations, such as attention's
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
        self._counts: dict[str, ZeroCounts] = {}

    def __getitem__(self, tensor: str) -> ZeroCounts:
        return self._counts[tensor]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def of(self, tensor: str, is_operand: bool = False) -> ZeroCounts:
        """The counts of a tensor, which begin with nothing."""
        return self._counts.setdefault(tensor, ZeroCounts(tensor, is_operand=is_operand))

    def weights(self) -> list[ZeroCounts]:
        return [each for each in self._counts.values() if not each.is_operand]

    def operands(self) -> list[ZeroCounts]:
        """Rows of products of two activations: the gradients of both."""
        return [each for each in self._counts.values() if each.is_operand]

    def to_pandas(self) -> object:
        """A frame with a row for each weight and each operand: elements, zeros, and a column for each cause."""
        import pandas as pd

        rows = [
            {"tensor": each.tensor, "elements": each.elements, "zeros": each.zeros, **each.causes}
            for each in self._ranked()
        ]
        return pd.DataFrame(rows, columns=["tensor", "elements", "zeros", *CAUSES]).set_index("tensor")

    def _ranked(self) -> list[ZeroCounts]:
        return sorted(self._counts.values(), key=lambda each: (-each.by_format, -each.zeros))

    def __str__(self) -> str:
        shown = [each for each in self._ranked() if each.zeros][:20]
        width = max([16, *(len(each.tensor) for each in shown)])
        causes = [cause for cause in CAUSES if cause != "operand" or any(each.causes[cause] for each in shown)]
        header = f"{'gradient of':<{width}} {'elements':>9} {'zeros':>9}"
        rows = [header + "".join(f" {cause:>9}" for cause in causes)]
        for each in shown:
            counts = "".join(f" {each.causes[cause]:>9}" for cause in causes)
            rows.append(f"{each.tensor:<{width}} {each.elements:>9} {each.zeros:>9}{counts}")
        return "\n".join(rows)

    def words(self) -> list[str]:
        """Sentences of the report: the change to make first, why, and the products' zeros; none without a zero."""
        return [*_words_on_weights(self.weights()), *_words_on_operands(self.operands())]


def _words_on_weights(tensors: list[ZeroCounts]) -> list[str]:
    zeros = sum(each.zeros for each in tensors)
    if not zeros:
        return []
    totals, elements = _totals(tensors), sum(each.elements for each in tensors)
    why = f"{zeros} of {elements} elements of weight gradients are zero: {_parts(totals)}."
    worst = max(_CHANGES, key=lambda cause: totals[cause])
    if not totals[worst]:
        return [f"{why} No zero is the formats'."]
    tensor = max(tensors, key=lambda each: each.causes[worst]).tensor
    change = _CHANGES[worst].format(tensor=tensor, module=tensor.rpartition(".")[0] or "*")
    return [change, f"{why} Most of the formats' zeros: {CAUSES[worst]} ({tensor} first); not tried."]


def _words_on_operands(tensors: list[ZeroCounts]) -> list[str]:
    """A sentence on gradients of products of two activations that the formats flushed."""
    if not any(each.by_format for each in tensors):
        return []
    zeros, elements = sum(each.zeros for each in tensors), sum(each.elements for each in tensors)
    first = max(tensors, key=lambda each: each.by_format).tensor
    return [
        f"{zeros} of {elements} elements of the gradients of operands of products of two activations are zero: "
        f"{_parts(_totals(tensors))} ({first} first)."
    ]


def _totals(tensors: list[ZeroCounts]) -> dict[str, int]:
    return {cause: sum(each.causes[cause] for each in tensors) for cause in CAUSES}


def _parts(totals: dict[str, int]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in totals.items() if count)

"""Result of `rescale`: the patched weights, and what was moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.reporting import Finding, Report, Reported
from halfscope.text_tables import aligned
from halfscope.torch.words import counted, listed

ROWS = 30  # rows of the table


@dataclass(frozen=True, eq=False, repr=False)
class Rescaled(Reported):
    """Powers of two by which tensors of a model were multiplied; the model itself is as it was.

    state_dict: all tensors, those that were moved among them. moved: exponents of these by name. attributes: new
        numbers by name, such as a norm's eps. beyond: tensors that the ranges asked to move, in words.
    """

    state_dict: dict[str, Any]
    moved: dict[str, int]
    attributes: dict[str, float]
    beyond: tuple[str, ...]
    batches: int
    is_strict: bool  # at most 1 % of a weight's numbers come to lie below FP16's normal ones

    def apply(self, model: torch.nn.Module) -> None:
        """Writes the weights and attributes into a model. Raises KeyError for a model without one of the tensors."""
        own = model.state_dict(keep_vars=True)
        with torch.no_grad():
            for name in self.moved:
                own[name].copy_(self.state_dict[name])
        set_attributes(model, self.attributes)

    @property
    def report(self) -> Report:
        """The line to type, why, and the table of exponents."""
        about = f"Looked at: {counted(self.batches, 'batch')}; evaluation mode."
        if not self.moved and not self.attributes:
            return Report("rescale", text="Nothing to move: no tensor overflows in FP16.", about=about)
        sure = "the FP32 outputs have the same bits"
        if not self.is_strict:
            sure += "; up to half of a weight's numbers come to lie below FP16's normal ones"
        why = f"beyond FP16's range: {listed(self.beyond)}"
        finding = Finding("rescale", "Type rescaled.apply(model), then model.half() with norms in FP32", why, sure,
                          about=dict(self.moved))  # fmt: skip
        return Report("rescale", (finding,), about=about, table=self.table())

    def table(self) -> str:
        """Tensors with the powers of two that they were multiplied by, and attributes with their new numbers."""
        rows = [("tensor", "times"), *((name, f"2^{power}") for name, power in list(self.moved.items())[:ROWS])]
        rows += [(name, f"= {number:.8g}") for name, number in list(self.attributes.items())[:ROWS]]
        rest = max(len(self.moved) - ROWS, 0) + max(len(self.attributes) - ROWS, 0)
        return f"{aligned(rows)}\nand {rest} more" if rest else aligned(rows)


def set_attributes(model: torch.nn.Module, numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    """Sets attributes by name; returns what they were."""
    before = {}
    for name, number in numbers.items():
        module, _, attribute = name.rpartition(".")
        owner = model.get_submodule(module)
        before[name] = getattr(owner, attribute)
        setattr(owner, attribute, number)
    return before

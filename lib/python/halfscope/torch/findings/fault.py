"""A fault of an emulated step: the operation where a number stopped being what FP32 has, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from halfscope.formats import Format
from halfscope.torch.events.source import Site
from halfscope.torch.findings.operands import Constant, Operand


@dataclass(slots=True)
class OperationNote:
    """An operation of the step, with what later ones need to know of it."""

    operation: str
    row: str  # name of its result
    module: str | None  # None where it is not known
    site: Site | None
    constants: list[Constant] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)  # storages of its operands
    is_square: bool = False  # both factors are one tensor
    largest: float = 0.0  # largest of a product's result, in FP32
    order: str = ""  # in which a product adds up
    is_outside: bool = False  # outside the model: in the loss, or between backward pass and update
    is_gradient: bool = False  # whether it computes that of the operation

    def is_at(self, other: OperationNote) -> bool:
        """Whether the other is the same operation of the same line and module, at one call of it or another."""
        mine, theirs = (self.operation, self.module, self.site), (other.operation, other.module, other.site)
        return self.site is not None and mine == theirs


@dataclass
class Fault:
    """Elements that are not finite, where FP32's are, and whose operands are."""

    made: OperationNote
    format: Format
    region: str  # "forward", "backward"
    kind: str
    value: float  # the largest FP32 magnitude of the result; of a cast that of the operand
    count: int
    elements: int
    terms: int = 0  # terms of a sum
    operands: list[Operand] = field(default_factory=list)
    sources: list[OperationNote] = field(default_factory=list)  # operations that made the operands, the nearest first
    scale: float = 1.0  # the loss scale in gradients
    nan_at: OperationNote | None = None
    hidden_by: OperationNote | None = None
    damage: float | None = 0.0  # relative error of the result that hides it; None where FP32's is not known
    passes: list[OperationNote] = field(default_factory=list)  # operations whose results are not finite because of it
    forward: Fault | None = None  # a gradient's: the fault of the same operation in the forward pass
    reaches_loss: bool = False
    is_unused: bool = False  # it ends in a comparison, or nowhere, in a step that is as in FP32

    def end_unused(self) -> None:
        """The step is over, and as in FP32: an infinity that nothing hid was only compared, or not used at all."""
        self.is_unused = self.region == "forward" and not (self.reaches_loss or self.nan_at or self.hidden_by)

    @property
    def ratio(self) -> float:
        """The value over the format's largest number."""
        return self.value / self.format.largest

    @property
    def constants(self) -> list[Constant]:
        """Constants of the operation, then those before it that the format loses."""
        before = [constant for made in self.sources for constant in made.constants if constant.is_lost]
        return [*self.made.constants, *before]

    @property
    def has_partial_sums(self) -> bool:
        """Whether a product stores sums of parts of its terms."""
        return self.made.order.startswith("split_k")

    @property
    def is_harmless(self) -> bool:
        """Whether what follows is as in FP32: an infinity that a softmax turns into zero, say."""
        if self.is_unused:
            return True
        if self.reaches_loss or self.nan_at is not None or self.hidden_by is None:
            return False
        return not self.is_damaging

    @property
    def is_damaging(self) -> bool:
        """Whether the result that hides it is off, or may be."""
        return self.damage is None or self.damage >= 0.01

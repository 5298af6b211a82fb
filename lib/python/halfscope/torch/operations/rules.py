"""Rules that keep single operations, or all of a kind, in FP32: "MODULES:OPERATIONS", as "*:softmaxes"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from halfscope.torch.operations.table import TABLE, Kind, Operation

_CALLED = {"_to_copy": "to", "_safe_softmax": "softmax"}  # as sources call what the table has another name for
OTHERS = "others"
# Forward operations of aten by kind; `kind_of` adds products and norms by their lines in the table.
_MEMBERS = {
    "softmaxes": "_softmax _safe_softmax _masked_softmax logsumexp logcumsumexp",
    "sums": "sum mean nansum cumsum var std var_mean std_mean norm linalg_vector_norm trace prod cumprod dist",
    "powers": "pow sqrt rsqrt reciprocal",
    "exponentials": "exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 xlogy",
    "angles": "sin cos tan atan atan2 asin acos sinh cosh asinh acosh atanh polar angle",
    "activations": "sigmoid tanh gelu silu mish elu celu leaky_relu softplus log_sigmoid_forward hardswish hardsigmoid "
    "prelu _prelu_kernel glu erf erfc",
    "additions": "add sub rsub lerp index_add scatter_add",
    "multiplications": "mul div addcmul addcdiv",
    "masks": "where masked_fill fill index_fill clamp clamp_min clamp_max constant_pad_nd nan_to_num",
}
KINDS = ("products", "norms", *_MEMBERS, OTHERS)
_BY_NAME = {name: kind for kind, names in _MEMBERS.items() for name in names.split()}


def label_of(operation: str) -> str:
    """An operation's name as a source has it."""
    return _CALLED.get(operation, operation.lstrip("_"))


def kind_of(line: Operation) -> str:
    """The kind of a forward operation."""
    if line.kind in (Kind.PRODUCT, Kind.ATTENTION):
        return "products"
    if "_norm" in line.name and line.typed:
        return "norms"
    return _BY_NAME.get(line.name, OTHERS)


def is_of_operations(rule: str) -> bool:
    """Whether a rule names operations; names of modules have no colon."""
    return ":" in rule


@dataclass(frozen=True)
class OperationRule:
    """Operations that stay FP32, with their gradients and weights."""

    modules: str  # a glob
    operation: str  # a kind, or a name
    number: int | None = None  # number of the operation in its module's call, from 1; None: all of them

    @classmethod
    def parsed(cls, text: str, change: Any) -> OperationRule:
        """Raises ValueError for an unknown operation, and for another format than FP32."""
        modules, _, operation = text.rpartition(":")
        name, _, number = operation.partition(".")
        if name not in KINDS and not (name in _LABELS and (not number or number.isdecimal())):
            raise ValueError(
                f"emulate: rule '{text}': no operation '{operation}'; give one of {', '.join(KINDS)}, or a name as "
                "'mul', or 'mul.2'"
            )
        if change != "fp32":
            raise ValueError(f"emulate: rule '{text}': {change!r}; operations have 'fp32' alone")
        return cls(modules, name, int(number) if number else None)

    def matches(self, module: str, line: Operation, number: int) -> bool:
        if self.number not in (None, number) or not fnmatchcase(module, self.modules):
            return False
        return self.operation in (label_of(line.name), kind_of(line))


class OperationRules:
    """Rules of a policy for operations."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._rules = [OperationRule.parsed(text, change) for text, change in rules.items() if is_of_operations(text)]

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def modules(self) -> list[str]:
        """The globs of modules."""
        return [rule.modules for rule in self._rules]

    def and_fp32(self, rules: list[str]) -> OperationRules:
        """These, and others."""
        both = OperationRules(dict.fromkeys(rules, "fp32"))
        both._rules = [*self._rules, *both._rules]
        return both

    def keep(self, module: str, line: Operation, number: int) -> bool:
        """Whether an operation, the `number`-th of its name in the module's call, stays FP32."""
        return any(rule.matches(module, line, number) for rule in self._rules)


_LABELS = {label_of(name) for name in TABLE}

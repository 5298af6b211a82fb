"""Rules that keep single operations, or all of a kind, in FP32: "MODULES:OPERATIONS", as "*:softmaxes"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfscope import _core
from halfscope.torch.operations.table import TABLE, Group, Operation

KINDS = tuple(group.value for group in Group)
OTHERS = Group.OTHERS.value
_CALLED = {name: row.called for name, row in TABLE.items() if row.called}


def label_of(operation: str) -> str:
    """An operation's name as a source has it."""
    return _CALLED.get(operation, operation.lstrip("_"))


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
                f"emulate: exception '{text}': no operation '{operation}'; give one of {', '.join(KINDS)}, or a name "
                "as 'mul', or 'mul.2'"
            )
        if change != "fp32":
            raise ValueError(f"emulate: exception '{text}': {change!r}; operations have 'fp32' alone")
        return cls(modules, name, int(number) if number else None)

    def matches(self, module: str, line: Operation, number: int) -> bool:
        if self.number not in (None, number) or not _core.matches_glob(self.modules, module):
            return False
        return self.operation in (label_of(line.name), line.group.value)


class OperationRules:
    """Rules of a policy for operations."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._rules = [OperationRule.parsed(text, change) for text, change in rules.items() if is_of_operations(text)]

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def has_numbers(self) -> bool:
        """Whether a rule tells one operation of a name from another."""
        return any(rule.number is not None for rule in self._rules)

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

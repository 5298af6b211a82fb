"""Table of PyTorch's operations below autograd: a row for each, with all that the package asks of an operation.

Names are those of aten without overload and trailing underscore. An operation that is not in the table is computed in
FP32 and its result rounded once; strict emulation refuses it. Rows are text, by family:

    [rounded exponentials]            columns of all rows below: a kind, a group, traits, KEY=VALUE
    exp: exponential autocast=fp32    names, then columns of their own
    logaddexp logaddexp2

PyTorch is not needed to read the table.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from functools import cache
from pathlib import Path
from typing import Any


class Kind(Enum):
    """Arithmetic of an operation under emulation."""

    UNTOUCHED = "as it is: no tensor of numbers in, or bookkeeping of the training loop"
    VIEW = "the same memory in another shape"
    EXACT = "selects, moves, compares or negates numbers: nothing to round"
    ROUNDED = "in FP32, then one rounding"
    PRODUCT = "sums of products in the policy's order, then one rounding"
    REDUCTION = "sums of terms in the policy's order of sums, then one rounding"
    SOURCE = "makes numbers in FP32: the first operation that uses them rounds them"
    LOSS = "in FP32, as automatic mixed precision has losses; unrounded"
    ATTENTION = "both products in the policy's order, the probabilities rounded between them"
    REFUSED = "not seen inside: one rounding, and an error in strict emulation"
    COMPOSED = "of other operations of the table; seen whole in inference mode alone"
    UNKNOWN = "not in the table: one rounding, and an error in strict emulation"


NO_ARITHMETIC = (Kind.VIEW, Kind.UNTOUCHED, Kind.SOURCE)  # kinds of operations that compute nothing


class Group(Enum):
    """Operations that a rule names together: "*:softmaxes"."""

    PRODUCTS = "products"
    NORMS = "norms"
    SOFTMAXES = "softmaxes"
    SUMS = "sums"
    POWERS = "powers"
    EXPONENTIALS = "exponentials"
    ANGLES = "angles"
    ACTIVATIONS = "activations"
    ADDITIONS = "additions"
    MULTIPLICATIONS = "multiplications"
    MASKS = "masks"
    OTHERS = "others"


class Trait(Flag):
    """Properties that findings and twins ask for, one for each question."""

    # Kinds of faults.
    SUM = auto()  # adds up elements of one tensor
    SUM_OF_PRODUCTS = auto()
    ADDITION = auto()
    CONSTANT = auto()  # writes a constant, a mask's perhaps
    LOGARITHM = auto()
    EXPONENTIAL = auto()
    DIVIDES = auto()  # infinite for an operand that is zero
    QUOTIENT = auto()  # divides by a second operand: NaN where both are zero
    ROOT = auto()
    # Roles in a formula.
    NORM = auto()  # squares, a sum and a root in one
    NORMALISES = auto()  # divides, or takes a root, behind a sum of squares
    STEEP_AT_ZERO = auto()  # its gradient at zero is infinite
    SOFTMAX = auto()  # NaN for a row without a finite number
    DROPS_MASK = auto()  # turns a mask's infinities into zeros
    SCORES = auto()  # multiplies queries and keys
    LOGITS = auto()  # a linear layer's product
    # Digits that are lost.
    DIFFERENCE = auto()  # cancels where operands are near
    RUNNING_TOTAL = auto()  # adds to a total
    ANGLE = auto()  # takes its operand modulo a period
    # Zeros of gradients.
    BY_TERMS = auto()  # a zero is a sum whose terms are all zero
    COPIES = auto()  # a zero is that of its operand
    OF_VECTORS = auto()  # a product of two vectors, without blocks


NO_TRAITS = Trait(0)


@dataclass(frozen=True)
class Operation:
    """A row of the table."""

    name: str
    kind: Kind
    group: Group = Group.OTHERS
    traits: Trait = NO_TRAITS
    called: str = ""  # its name in sources, where that is another one
    listed: str | None = None  # under which name `halfscope list operations` has it
    autocast: str = ""  # fp32: on PyTorch's own list, though the simulator has no layer for it
    first: int | None = None  # position of a product's left factor; the right one follows it
    kept: tuple[int, ...] = ()  # positions of arguments that stay FP32: statistics
    statistics: tuple[int, ...] = ()  # positions of results that stay FP32
    typed: tuple[int, ...] = ()  # position, for each result, of the argument whose type it has; else the widest
    updated: tuple[int, ...] = ()  # positions of arguments that it writes to without saying so in its schema
    nan: str = ""  # how infinite operands make it NaN: "inf - inf"
    reason: str = ""  # reason of a refusal


FAMILIES = ("moves", "elementwise", "reductions", "products", "norms", "losses", "images", "sources")


def _positions(value: str) -> tuple[int, ...]:
    return tuple(map(int, value.split(",")))


_WORDS: dict[str, Enum] = {str(word.name).lower(): word for words in (Kind, Group, Trait) for word in words}
_VALUES: dict[str, Callable[[str], Any]] = {
    "called": str, "listed": str, "autocast": str, "first": int, "kept": _positions, "statistics": _positions,
    "typed": _positions, "updated": _positions, "nan": str, "reason": str,
}  # fmt: skip


def _columns(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"traits": NO_TRAITS}
    for word in shlex.split(text):
        key, is_value, value = word.partition("=")
        if is_value and key in _VALUES:
            found[key] = _VALUES[key](value)
        elif isinstance(_WORDS.get(word), Trait):
            found["traits"] |= _WORDS[word]
        elif word in _WORDS:
            found[type(_WORDS[word]).__name__.lower()] = _WORDS[word]
        else:
            raise ValueError(f"no column '{word}'; one of {', '.join([*_WORDS, *(f'{key}=' for key in _VALUES)])}")
    return found


def parsed(text: str) -> Iterator[Operation]:
    """Rows of a family. Raises ValueError, with the number of the line, for a row that is none."""
    common: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if line.startswith("["):
                common = _columns(line.strip("[] "))
            elif line and not line.startswith("#"):
                names, _, own = line.partition(":")
                columns = {**common, **_columns(own)}
                yield from (Operation(name, **columns) for name in names.split())
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error


def table_of(rows: Iterable[Operation]) -> dict[str, Operation]:
    """Rows by name. Raises ValueError for two rows of one operation."""
    table: dict[str, Operation] = {}
    for row in rows:
        if row.name in table:
            raise ValueError(f"operations: {row.name} has two rows")
        table[row.name] = row
    return table


def _rows() -> Iterator[Operation]:
    for family in FAMILIES:
        try:
            yield from parsed((Path(__file__).parent / "rows" / f"{family}.txt").read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"operations/rows/{family}.txt, {error}") from error


TABLE = table_of(_rows())


@cache
def named(*traits: Trait) -> frozenset[str]:
    """Names of the operations that have one of these."""
    return frozenset(name for name, row in TABLE.items() if any(trait in row.traits for trait in traits))


def table_text(words: Sequence[str] = ()) -> str:
    """The table by name, a line each, with the reason of a refusal: all names, or those with one of `words` in them."""
    entries = [TABLE[name] for name in sorted(TABLE) if not words or any(word in name for word in words)]
    width = max((len(entry.name) for entry in entries), default=0)
    lines = []
    for entry in entries:
        reason = f": {entry.reason}" if entry.reason else ""
        lines.append(f"{entry.name:{width}}  {entry.kind.value}{reason}")
    return "\n".join(lines)


def autocast_list(operation: Operation, policy: Any) -> str:
    """The list that `policy` has an operation on: allow, deny, infer or refuse."""
    if operation.listed is not None:
        return str(policy.list_of(operation.listed))
    if policy.fp32_parameters and operation.autocast == "fp32":
        return "deny"
    return str(policy.list_of(None))

"""Numbers in the source of a module's `forward`, found in its compiled code."""

from __future__ import annotations

import ast
import dis
import inspect
import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType

import torch

from halfscope.reporting import Place

_FP32 = ("float32", "float", "double", "float64")  # names in code that casts to these
_BOUNDS = ("clamp_min", "clamp", "normalize", "maximum", "max")


@dataclass(frozen=True)
class Source:
    """numbers, powers: with the file and line. is_fp32: it casts to FP32 itself. bounds_from_below: it clamps.

    sums: attributes that are added to a constant, or subtracted from it: name, constant, sign of the attribute.
    """

    numbers: list[tuple[float, Place]] = field(default_factory=list)
    powers: list[tuple[float, Place]] = field(default_factory=list)
    sums: list[tuple[str, float, int, Place]] = field(default_factory=list)
    is_fp32: bool = False
    bounds_from_below: bool = False


def source_of(module: torch.nn.Module) -> Source | None:
    """Source of the module's class; None for PyTorch's own modules, and for code that is not Python."""
    kind = type(module)
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)
    if kind.__module__.startswith("torch.") or not isinstance(code, CodeType):
        return None
    numbers, powers = [], []
    for value, site, is_power in _constants(code):
        if is_power and value >= 2:
            powers.append((value, site))
        elif not is_power and type(value) is float and math.isfinite(value) and value:
            numbers.append((value, site))
    names = set(code.co_names)
    return Source(numbers, powers, list(_sums(code)), bool(names & set(_FP32)), bool(names & set(_BOUNDS)))


def _sums(code: CodeType) -> Iterator[tuple[str, float, int, Place]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):  # no source, or a part of one
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            continue
        place = Place(code.co_filename, code.co_firstlineno + node.lineno - 1)
        for one, other, is_right in ((node.left, node.right, True), (node.right, node.left, False)):
            constant, name = _constant(one), _own_attribute(other)
            if constant and name:
                yield name, constant, -1 if is_right and isinstance(node.op, ast.Sub) else 1, place


def _constant(node: ast.expr) -> float:
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else 0.0  # type: ignore[attr-defined]


def _own_attribute(node: ast.expr) -> str:
    """The name of `self.name`; empty of another expression."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else ""  # type: ignore[attr-defined]


def _constants(code: CodeType) -> Iterator[tuple[float, Place, bool]]:
    """Numbers that the code loads; whether they are exponents: of `pow`, or of `**`."""
    lines = dict(dis.findlinestarts(code))
    line, in_power = code.co_firstlineno, False
    instructions = list(dis.get_instructions(code))
    for index, instruction in enumerate(instructions):
        line = lines.get(instruction.offset) or line
        if instruction.opname.startswith(("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL")):
            in_power = instruction.argval == "pow"
        value = instruction.argval
        if not instruction.opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT")) or type(value) not in (int, float):
            continue
        following = instructions[index + 1] if index + 1 < len(instructions) else None
        is_power = in_power or (following is not None and _is_power(following))
        in_power = False
        yield float(value) if is_power else value, Place(code.co_filename, line), is_power


def _is_power(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_POWER" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr in ("**", "**=")
    )

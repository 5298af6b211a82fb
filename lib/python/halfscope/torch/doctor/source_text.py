"""Place of a call in the source, with its columns, and the texts of the call and of its operands."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import torch

from halfscope.torch.events.call_text import Span, span_of, text_of
from halfscope.torch.events.source import is_of_library
from halfscope.torch.private import caller

_TORCH = str(Path(torch.__file__).parent) + os.sep
_OWN = str(Path(__file__).parent.parent.parent) + os.sep
_DEEPEST = 120  # frames that are looked at


@dataclass(frozen=True)
class CallPlace:
    """Place of a call: what a change of the source at this place changes in every turn of a loop."""

    file: str
    span: Span
    name: str  # the function that is called
    module: str = ""  # a layer of PyTorch's that makes the call
    function: int = 0  # first line of the function that it stands in
    is_inside: bool = False  # the layer stands in a container, whose call is all that the source has
    caller: tuple[str, int] | None = field(default=None, compare=False)  # line of the user's, of a call in a library

    @property
    def text(self) -> str:
        """The call as the source has it; empty where no source is known."""
        return text_of(self.file, self.span)

    @property
    def line_text(self) -> str:
        return linecache.getline(self.file, self.span.line).strip()

    @property
    def is_typed(self) -> bool:
        """Whether the user can type there: columns are known, and the file is the user's."""
        return self.caller is None and not self.is_inside and bool(self.text)

    def __str__(self) -> str:
        text = f"{Path(self.file).name}:{self.span.line}"
        return f"{text}, called from {Path(self.caller[0]).name}:{self.caller[1]}" if self.caller else text

    @property
    def called(self) -> str:
        """Its name in a sentence: its text, or the layer."""
        text = " ".join(self.text.split())
        if self.module:
            return f"{self.name} of {self.module}"
        return f"`{text}`" if text and len(text) <= 80 else self.name


def place_of_call(name: str, module: str = "", is_inside: bool = False) -> CallPlace | None:
    """Place of the call under way; None where only PyTorch's own code is on the stack."""
    frame, inner = caller(1), None
    for _ in range(_DEEPEST):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if not file.startswith((_TORCH, _OWN)):
            if not is_of_library(file):
                where = None if inner is None else (file, frame.f_lineno)
                return _place(inner or frame, name, (module, is_inside), where)
            inner = inner or frame
        frame = frame.f_back  # type: ignore[assignment]
    return None if inner is None else _place(inner, name, (module, is_inside), None)


def _place(frame: FrameType, name: str, layer: tuple[str, bool], where: tuple[str, int] | None) -> CallPlace:
    code = frame.f_code
    place = CallPlace(code.co_filename, span_of(frame), name, layer[0], code.co_firstlineno, layer[1], where)
    if place not in _firsts:
        _firsts[place] = _learn_first(place, frame)
    return place


# Operators that PyTorch gets with the tensor first, though the source may have the number first: 1 + x.
_COMMUTATIVE = ("add", "mul")
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.Load)
_firsts: dict[CallPlace, bool] = {}  # whether the first part of an operator is a number; of a call, a tensor


def _learn_first(place: CallPlace, frame: FrameType) -> bool:
    """Whether the number of an operator stands first; whether what stands before a call's last dot is a tensor."""
    expression = expression_of(place)
    node = None if expression is None else expression.node
    if isinstance(node, ast.BinOp):
        return place.name in _COMMUTATIVE and isinstance(_value(node.left, frame), (int, float))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        found = _value(node.func.value, frame)
        return not isinstance(found, (ModuleType, type, torch.nn.Module))
    return False


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The value of names and constants; None where there is more to it."""
    if not all(isinstance(part, _PLAIN) for part in ast.walk(node)):
        return None
    try:
        return eval(compile(ast.Expression(node), "<operand>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:  # a name of an enclosing function
        return None


def _is_reflected(place: CallPlace) -> bool:
    return place.name in _REFLECTED or _firsts.get(place, False)


def _is_method(place: CallPlace) -> bool:
    return _firsts.get(place, False)


def _parameters(func: Any) -> list[str]:
    try:
        return list(inspect.signature(func).parameters)
    except (TypeError, ValueError):  # a function without one
        return []


def _name_of_argument(func: Any, position: int) -> str:
    names = _parameters(func)
    return names[position] if position < len(names) else ""


def _position_of_argument(func: Any, name: str) -> int | None:
    names = _parameters(func)
    return names.index(name) if name in names else None


@dataclass(frozen=True)
class Expression:
    """A call as Python parses it, with the spans of its operands in the file."""

    node: ast.expr
    place: CallPlace

    def operand(self, key: int | str, func: Any = None) -> ast.expr | None:
        """The text of an argument by its position or its name; None of one that the source leaves out.

        func: the function that PyTorch calls, whose signature tells at which position an argument has its name.
        """
        node = self.node
        if isinstance(node, ast.Call):
            return self._argument(node, key, func)
        operands = self._sides()
        return operands[key] if isinstance(key, int) and key < len(operands) else None

    def _sides(self) -> list[ast.expr]:
        node = self.node
        if isinstance(node, ast.BinOp):
            pair = [node.left, node.right]
            return pair[::-1] if _is_reflected(self.place) else pair
        if isinstance(node, ast.UnaryOp):
            return [node.operand]
        return [node.left, *node.comparators] if isinstance(node, ast.Compare) else []

    def _argument(self, node: ast.Call, key: int | str, func: Any) -> ast.expr | None:
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) and _is_method(self.place) else []
        positional = [*receiver, *node.args]
        if isinstance(key, int):
            if key < len(positional):
                return positional[key]
            key = _name_of_argument(func, key)
        named = next((keyword.value for keyword in node.keywords if keyword.arg == key), None)
        position = _position_of_argument(func, key)
        return named or (positional[position] if position is not None and position < len(positional) else None)

    def span(self, node: ast.expr) -> Span:
        """Lines and columns of a part of the call in the file."""
        first = self.place.span
        shift = first.column - 1  # the text is parsed behind one bracket
        column = node.col_offset + (shift if node.lineno == 1 else 0)
        end = (node.end_col_offset or 0) + (shift if node.end_lineno == 1 else 0)
        return Span(first.line + node.lineno - 1, column, first.line + (node.end_lineno or 1) - 1, end)

    def text(self, node: ast.expr) -> str:
        return text_of(self.place.file, self.span(node))


_OPERATORS = "add sub mul div truediv floordiv pow mod matmul"
_REFLECTED = frozenset(f"__r{name}__" for name in _OPERATORS.split())


def expression_of(place: CallPlace) -> Expression | None:
    """The call parsed; None where no source is known, and of a statement."""
    text = place.text
    if not text:
        return None
    try:
        return Expression(ast.parse(f"({text}\n)", mode="eval").body, place)
    except SyntaxError:
        return None

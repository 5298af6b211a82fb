"""Places in source code from which an operation was called."""

from __future__ import annotations

import linecache
import os
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from halfscope.torch.private import caller

_TORCH = str(Path(torch.__file__).parent)
_OWN = str(Path(__file__).parent.parent)  # halfscope.torch
_LIBRARIES = tuple({sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib")})
# Libraries elsewhere, such as a distribution's beside an environment's.
_FOLDERS = tuple(f"{os.sep}{name}-packages{os.sep}" for name in ("site", "dist"))
_DEEPEST = 120  # frames that are looked at


@dataclass(frozen=True)
class Line:
    """A line of a source file."""

    file: str
    number: int
    function: str
    instruction: int = field(default=-1, compare=False, repr=False)  # its place in the function's code: several a line

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.number}"


@dataclass(frozen=True)
class Site:
    """The line that calls an operation; of a library's also the line of the user's own source that leads there."""

    line: Line
    caller: Line | None = None

    @property
    def calls(self) -> tuple[Any, ...]:
        """The calls that lead there, each apart from others of its line."""
        return tuple((line, line.instruction) for line in (self.line, self.caller) if line is not None)

    def __str__(self) -> str:
        text = f"{self.line}"
        return f"{text}, called from {self.caller}" if self.caller else text


def current_site() -> Site | None:
    """Where the operation under way is called; None where only PyTorch's own code is on the stack."""
    frame, inner = caller(1), None
    for _ in range(_DEEPEST):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if not is_own(file):
            line = Line(file, frame.f_lineno, frame.f_code.co_name, frame.f_lasti)
            if not is_of_library(file):
                return Site(line) if inner is None else Site(inner, line)
            inner = inner or line
        frame = frame.f_back  # type: ignore[assignment]
    return None if inner is None else Site(inner)


def is_own(file: str) -> bool:
    """Whether a file belongs to PyTorch or to halfscope.torch."""
    return file.startswith((_TORCH, _OWN))


def is_of_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return file.startswith(_LIBRARIES) or any(folder in file for folder in _FOLDERS)

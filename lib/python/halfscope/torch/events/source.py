"""Places in source code from which an operation was called."""

from __future__ import annotations

import linecache
import os
import sysconfig
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch

from halfscope.torch.private import caller

_TORCH = str(Path(torch.__file__).parent)
_OWN = str(Path(__file__).parent.parent.parent) + os.sep  # halfscope
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
    call: tuple[int, ...] = field(default=(), compare=False, repr=False)  # code and instruction: several are on a line

    def __str__(self) -> str:
        text = f"{self.line}"
        return f"{text}, called from {self.caller}" if self.caller else text


def current_site() -> Site | None:
    """Line that calls the operation under way; None if only PyTorch's own code is on the stack."""
    frame, inner = caller(1), None
    call: tuple[int, ...] = ()
    for _ in range(_DEEPEST):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if not is_own(file):
            line = Line(file, frame.f_lineno, frame.f_code.co_name)
            if not is_of_library(file):
                call = (*call, id(frame.f_code), frame.f_lasti)
                return Site(line, call=call) if inner is None else Site(inner, line, call)
            if inner is None:
                inner, call = line, (id(frame.f_code), frame.f_lasti)
        frame = frame.f_back  # type: ignore[assignment]
    return None if inner is None else Site(inner, call=call)


@cache
def is_own(file: str) -> bool:
    """Whether a file belongs to PyTorch or to halfscope."""
    return file.startswith((_TORCH, _OWN))


@cache
def is_of_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return file.startswith(_LIBRARIES) or any(folder in file for folder in _FOLDERS)

"""Tensors of files as `halfscope analyze` reads them, and of those that another package reads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from halfscope import _core
from halfscope.foreign.formats import foreign_format, read_foreign

FilePath: TypeAlias = "str | os.PathLike[str]"
SHOWN = 3  # entries of a list that may be as long as the file


class FileTensors(dict[str, Any]):
    """Tensors of files by name, and what was found of the quantized ones.

    blocks: findings by name. unread: the number of quantized tensors that are not read. origins: by name, the name of a
        tensor in its file, and the file.
    """

    def __init__(self, unread: int) -> None:
        super().__init__()
        self.blocks: dict[str, _core.BlockFindings] = {}
        self.unread = unread
        self.origins: dict[str, tuple[str, str]] = {}


def tensors_of(given: Mapping[str, object] | FilePath | Sequence[FilePath], dtype: str | None = None) -> Any:
    """The tensors of a file, or of several under "PATH:NAME"; anything that is no path is returned as it is.

    given: paths of files, of folders of them, globs and indices of shards, as `halfscope analyze` takes them; and what
        a row of `halfscope.foreign.formats` names, through the package that reads it.
    dtype: of elements whose type a file does not tell, as `halfscope analyze --dtype` has it.

    A warning names what holds no floating-point numbers and is left out, files of a folder that are not read, and parts
    of quantized tensors that are missing. Raises ValueError, naming the file, for one that breaks its format, and where
    no file holds such a tensor.
    """
    if isinstance(given, (str, os.PathLike)):
        return _read([given], dtype)
    if isinstance(given, (list, tuple)) and given and all(isinstance(path, (str, os.PathLike)) for path in given):
        return _read(given, dtype)
    return given


def _read(paths: Sequence[FilePath], dtype: str | None) -> FileTensors:
    formats = {path: foreign_format(path) for path in paths}
    own: list[FilePath] = [os.fspath(path) for path, format in formats.items() if format is None]
    read, lines = _core.read_tensor_files(own, dtype) if own else ([], [])
    files: list[Any] = list(read)
    for path, format in formats.items():
        if format is not None:
            foreign = read_foreign(path, format)
            files.append((Path(path), foreign.tensors, foreign.skipped, {}, 0))
    prefixes = [f"{_text(path)}:" if len(files) > 1 else "" for path, *_ in files]
    found = FileTensors(sum(unread for *_, unread in files))
    for prefix, (path, tensors, _, blocks, _) in zip(prefixes, files):
        found.origins.update({prefix + name: (name, _text(path)) for name in tensors})
        found.update({prefix + name: array for name, array in tensors.items()})
        found.blocks.update({prefix + name: findings for name, findings in blocks.items()})
    if not found:
        path, _, skipped, *_ = files[0]
        names = f": {_names(skipped)}" if skipped else ""
        raise ValueError(lines[0] if lines else f"{_text(path)}: holds no tensor of floating-point numbers{names}")
    lines += [f"{_text(path)}: leaving out {_names(skipped)}" for path, _, skipped, *_ in files if skipped]
    for line in lines[:SHOWN] + ([f"{len(lines) - SHOWN} more lines like these"] if len(lines) > SHOWN else []):
        warnings.warn(line, stacklevel=4)
    return found


def _text(path: FilePath) -> str:
    """The path, in which bytes that are no UTF-8 stand as escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _names(skipped: dict[str, str]) -> str:
    """The first few tensors that are left out, with the reason, and the number of the others."""
    shown = [f"'{name}' ({reason})" for name, reason in list(skipped.items())[:SHOWN]]
    more = f" and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
    return ", ".join(shown) + more

"""Tensors of files as `halfscope analyze` reads them: .npy, .npz, .safetensors, PyTorch checkpoints, GGUF."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from halfscope import _core

FilePath: TypeAlias = "str | os.PathLike[str]"


def tensors_of(given: Mapping[str, object] | FilePath | Sequence[FilePath], dtype: str | None = None) -> Any:
    """The tensors of a file, or of several under "PATH:NAME"; anything that is no path is returned as it is.

    dtype: of elements whose type a file does not tell, as `halfscope analyze --dtype` has it.

    Tensors without floating-point numbers are left out with a warning. Raises ValueError, naming the file, for one that
    breaks its format or holds no such tensor.
    """
    if isinstance(given, (str, os.PathLike)):
        return _read(given, dtype)
    if isinstance(given, (list, tuple)) and given and all(isinstance(path, (str, os.PathLike)) for path in given):
        prefixes = ("",) if len(given) == 1 else tuple(f"{os.fspath(path)}:" for path in given)
        files = [(prefix, _read(path, dtype)) for prefix, path in zip(prefixes, given)]
        return {prefix + name: array for prefix, tensors in files for name, array in tensors.items()}
    return given


def _read(path: FilePath, dtype: str | None) -> dict[str, Any]:
    tensors, skipped, problems = _core.read_tensor_file(os.fspath(path), dtype)
    names = ", ".join(f"'{name}' ({reason})" for name, reason in skipped.items())
    if not tensors:
        raise ValueError(f"{os.fspath(path)}: holds no tensor of floating-point numbers{names and ': '}{names}")
    for problem in problems:
        warnings.warn(problem, stacklevel=4)
    if skipped:
        warnings.warn(f"{os.fspath(path)}: leaving out {names}", stacklevel=4)
    return tensors

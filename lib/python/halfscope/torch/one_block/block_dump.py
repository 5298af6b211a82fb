"""Dump of a block's call in a step: its arguments and the gradient that arrived at its output, in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from halfscope.torch.tensors.dumped_tensors import safetensors_package, whole_copy
from halfscope.torch.tensors.elements import Unreadable
from halfscope.whole_files import write_whole

_KEY = "halfscope"  # key of the metadata in a file of safetensors
_LEAVES = (bool, int, float, str, type(None))
_PLAIN = "give what capture wrote, or torch.save((args, kwargs, gradient), path)"


@dataclass(frozen=True)
class BlockDump:
    """One call of a block, with tensors in CPU memory.

    gradient: of the output, in the output's form, without the loss scale; None where none arrived.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    gradient: Any
    module: str = ""  # the block's name in the whole model; empty of a dump that does not tell
    shapes: dict[str, list[int]] = field(default_factory=dict)  # by the names of the block's parameters
    attention: str = ""  # implementation that a model of transformers computes it by
    training: bool = True  # mode of the block: dropout is on
    left_out: dict[str, str] = field(default_factory=dict)  # arguments that are None here: place, and type in the run

    def write(self, path: Path) -> None:
        """Writes all of it or nothing. Raises ImportError without the package safetensors."""
        tensors: dict[str, torch.Tensor] = {}
        about = {
            "version": 1, "module": self.module, "shapes": self.shapes, "attention": self.attention,
            "training": self.training, "left_out": self.left_out,
            "args": _encoded(self.args, "args", tensors), "kwargs": _encoded(self.kwargs, "kwargs", tensors),
            "gradient": _encoded(self.gradient, "gradient", tensors),
        }  # fmt: skip
        write_whole(path, safetensors_package().torch.save(tensors, {_KEY: json.dumps(about)}))


def saved(value: Any, place: str, left_out: dict[str, str]) -> Any:
    """Whole copies in CPU memory; what a file cannot hold is None, and noted in `left_out`."""
    if isinstance(value, torch.Tensor):
        try:
            return whole_copy(value).requires_grad_(value.requires_grad)
        except Unreadable as reason:
            left_out[place] = str(reason)
            return None
    if isinstance(value, (tuple, list)):
        parts = [saved(part, f"{place}.{index}", left_out) for index, part in enumerate(value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: saved(part, f"{place}.{key}", left_out) for key, part in value.items()}
    if isinstance(value, (*_LEAVES, torch.dtype)):
        return value
    left_out[place] = type(value).__name__
    return None


def _encoded(value: Any, place: str, tensors: dict[str, torch.Tensor]) -> Any:
    """The form of a value, for JSON; its tensors go into `tensors` by their places."""
    if isinstance(value, torch.Tensor):
        is_complex = value.is_complex()
        tensors[place] = torch.view_as_real(value.detach()) if is_complex else value.detach()
        return {"tensor": place, "needs_gradient": value.requires_grad, "is_complex": is_complex}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encoded(part, f"{place}.{index}", tensors) for index, part in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": {key: _encoded(part, f"{place}.{key}", tensors) for key, part in value.items()}}
    return {"dtype": str(value).removeprefix("torch.")} if isinstance(value, torch.dtype) else value


def _decoded(form: Any, tensor_of: Callable[[str], torch.Tensor]) -> Any:
    if not isinstance(form, dict):
        return form
    if "tensor" in form:
        tensor = tensor_of(form["tensor"])
        tensor = torch.view_as_complex(tensor) if form["is_complex"] else tensor
        return tensor.requires_grad_(form["needs_gradient"])
    if "dict" in form:
        return {key: _decoded(part, tensor_of) for key, part in form["dict"].items()}
    if "dtype" in form:
        return getattr(torch, form["dtype"])
    kind = tuple if "tuple" in form else list
    return kind(_decoded(part, tensor_of) for part in form[kind.__name__])


def read_dump(path: str | Path) -> BlockDump:
    """Reads what `capture` or `torch.save((args, kwargs, gradient), path)` wrote; a mapping with these keys too.

    Raises ValueError, naming the file, for another one; FileNotFoundError where there is none.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; capture(model, name, path) writes it in a run")
    return _read_safetensors(path) if path.suffix == ".safetensors" else _read_saved(path)


def _read_safetensors(path: Path) -> BlockDump:
    package = safetensors_package()
    try:
        with package.safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(_KEY, "null"))
            if about is None:
                raise ValueError(f"{path}: holds no dump of a block; {_PLAIN}")
            parts = {key: _decoded(about[key], file.get_tensor) for key in ("args", "kwargs", "gradient")}
            known = {key: about[key] for key in ("module", "shapes", "attention", "training", "left_out")}
    except (package.SafetensorError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: is no whole dump of a block ({_first_line(error)}); capture it again") from None
    return BlockDump(**parts, **known)


def _read_saved(path: Path) -> BlockDump:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, UnpicklingError, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{path}: torch.load reads no tensors ({_first_line(error)}); {_PLAIN}") from None
    if isinstance(found, dict) and {"args", "kwargs", "gradient"} <= found.keys():
        found = tuple(found[key] for key in ("args", "kwargs", "gradient"))
    is_dump = isinstance(found, (tuple, list)) and len(found) == 3 and isinstance(found[1], dict)
    if not is_dump or not isinstance(found[0], (tuple, list, torch.Tensor)):
        raise ValueError(f"{path}: holds a {type(found).__name__}, no dump of a block; {_PLAIN}")
    args, kwargs, gradient = found
    return BlockDump((args,) if isinstance(args, torch.Tensor) else tuple(args), kwargs, gradient)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

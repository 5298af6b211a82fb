"""`dump`: a model's weights and what its modules compute, in a file for `halfscope.compare_dumps`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from halfscope.dumps.dump_file import WEIGHT, computed_name
from halfscope.torch.tensors.dumped_tensors import check_writable, safetensors_package, whole_copy
from halfscope.torch.tensors.elements import floating
from halfscope.whole_files import write_whole


@contextmanager
def dump(model: torch.nn.Module, path: str | os.PathLike[str], *, weights: bool = True) -> Iterator[None]:
    """Writes what each module of `model` computes in a block of code, in the order of computing, and its weights.

    `with halfscope.torch.dump(model, "first.safetensors"): model(batch)`, on any device, in any type. A module's first
    floating-point tensor counts, of each of its calls: "layers.0.norm", in the second call "layers.0.norm#2". The
    tensors are copied to CPU memory until the block ends; an error in the block leaves no file.

    weights: parameters and buffers too. Raises ValueError for a path that is no file of safetensors in a folder that
    exists, ImportError without the package safetensors.
    """
    target = Path(path)
    check_writable(target, "dump")
    recorder = _Recorder()
    hooks = [module.register_forward_hook(partial(recorder.note, name)) for name, module in model.named_modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())} if weights else {}
    kept = {WEIGHT + name: whole_copy(tensor) for name, tensor in state.items() if tensor.is_floating_point()}
    write_whole(target, safetensors_package().torch.save({**kept, **recorder.tensors}))


class _Recorder:
    """Copies of the modules' results, by names that sort by their order."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._calls: Counter[str] = Counter()

    def note(self, name: str, _module: torch.nn.Module, _args: Any, output: Any) -> None:
        self._calls[name] += 1
        tensor = next(iter(floating(output)), None)
        if tensor is not None:
            call = "" if self._calls[name] == 1 else f"#{self._calls[name]}"
            self.tensors[computed_name(len(self.tensors), (name or "model") + call)] = whole_copy(tensor)

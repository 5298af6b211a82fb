"""`capture`: saves what one block of a model meets in a step of a run."""

from __future__ import annotations

import sys
import warnings
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ref

import torch
import torch.distributed as dist

from halfscope.torch.one_block.block_dump import BlockDump, saved
from halfscope.torch.private import at_end_of_backward_pass, attention_of, is_compiled, without_modes
from halfscope.torch.tensors.dumped_tensors import check_writable
from halfscope.torch.weak_hooks import WeakHook
from halfscope.torch.words import counted, listed, unknown_name

_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
_WAITING: set[_Waiting] = set()  # keeps alive what hooks refer to: a script need not keep the result of `capture`


class Capture:
    """Result of `capture`: hooks that wait for a step. paths: of the dumps, by the block's name."""

    def __init__(self, paths: dict[str, Path]) -> None:
        self.paths = paths
        self._waiting: dict[str, _Waiting] = {}

    def wait_for(self, name: str, block: _Waiting) -> None:
        self._waiting[name] = block

    @property
    def waits_for(self) -> list[str]:
        """Names of the blocks that no step has saved yet."""
        return [name for name, block in self._waiting.items() if not block.is_done]

    def close(self) -> None:
        """Takes the hooks away; those of a saved block are gone already."""
        for block in self._waiting.values():
            block.close()

    def __repr__(self) -> str:
        waiting, paths = self.waits_for, listed(map(str, self.paths.values()))
        return f"<Capture: waits for a step of {listed(waiting)}>" if waiting else f"<Capture: saved {paths}>"


def capture(model: torch.nn.Module, module: str, path: str | Path, *, scaler: Any = None, rank: int = 0) -> Capture:
    """Saves the inputs of a block, and the gradient that arrives at its output, in the next step of a training.

    The first forward pass of the block that has a backward pass is saved, on any device, when that backward pass ends;
    then the hooks are gone, and the run goes on as it was. No number is changed, and a line on stderr says what was
    saved. `load_block(checkpoint, module, path)` reads it.

    module: the block's name in `model.named_modules()`, "model.layers.17"; or a pattern, as in a shell, for its
        outermost modules: "model.layers.*".
    path: a file, "dump.safetensors"; for a pattern a folder, which gets a file for each block. It holds the arguments
        with their own shapes and types, (batch, time, channel) as a rule, and the gradient of the output without the
        loss scale. An argument that no file of tensors holds, such as a cache of keys and values, is None there.
    scaler: the GradScaler, if there is one, by whose scale the gradient is divided.
    rank: the process that writes, of its own part of the batch. DTensors are gathered, for which every rank of their
        mesh must call this.

    Raises ValueError for a name that the model does not have and a path that cannot be written to, TypeError for a
    compiled module, ImportError without the package safetensors.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"capture: model is of type {type(model).__name__}; give a torch.nn.Module")
    model = model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
    names = _named_modules(model)
    chosen = _chosen(names, module)
    paths = {module: Path(path)} if module in names else {name: Path(path) / f"{name}.safetensors" for name in chosen}
    for each in paths.values():
        check_writable(each, "capture")
    writes = not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == rank
    found = Capture(paths)
    for name, each in paths.items():
        about = _About(name, each, attention_of(model), scaler, writes)
        found.wait_for(name, _Waiting(chosen[name], about))
    return found


def _named_modules(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Modules by their names in the model itself, without what wraps it."""
    found = {}
    for name, module in model.named_modules():
        if is_compiled(module):
            raise TypeError("capture: the model is compiled, which hides its blocks; call capture before torch.compile")
        inner = f"{name}."
        for wrapper in _WRAPPERS:
            inner = inner.replace(wrapper, "")
        found[inner.removesuffix(".")] = module
    return found


def _chosen(names: dict[str, torch.nn.Module], given: str) -> dict[str, torch.nn.Module]:
    if given in names:
        return {given: names[given]}
    fits = [name for name in names if fnmatchcase(name, given)]
    if not fits:
        raise ValueError(f"capture: {unknown_name(given, names)}")
    outer = min(name.count(".") for name in fits)
    return {name: names[name] for name in fits if name.count(".") == outer}


@dataclass(frozen=True)
class _About:
    """Facts on a block before the step. writes: whether this process writes the file."""

    name: str
    path: Path
    attention: str
    scaler: Any
    writes: bool


class _Call:
    """A call of the block, alive as long as its graph is."""

    def __init__(self, args: tuple, kwargs: dict, left_out: dict[str, str]) -> None:
        self.args, self.kwargs, self.left_out = args, kwargs, left_out
        self.form: Any = None  # the output, with places for tensors
        self.gradients: dict[str, torch.Tensor] = {}  # by place


class _Waiting:
    """Hooks on a block until a call of it is saved."""

    def __init__(self, block: torch.nn.Module, about: _About) -> None:
        self._block, self._about = block, about
        self._begun: _Call | None = None  # in its forward pass
        self._call: ref[_Call] | None = None  # that waits for its gradient
        self.is_done = False
        self._hooks = [
            block.register_forward_pre_hook(WeakHook(self._before), with_kwargs=True),
            block.register_forward_hook(WeakHook(self._after)),
        ]
        _WAITING.add(self)

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        _WAITING.discard(self)

    def _before(self, _block: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        self._begun = None
        is_taken = self._call is not None and self._call() is not None
        if self.is_done or is_taken or not torch.is_grad_enabled():
            return
        left_out: dict[str, str] = {}
        with torch.no_grad(), without_modes():
            self._begun = _Call(saved(args, "args", left_out), saved(kwargs, "kwargs", left_out), left_out)

    def _after(self, _block: torch.nn.Module, _args: tuple, output: Any) -> Any:
        call, self._begun = self._begun, None
        if call is None:
            return None
        self._call = ref(call)
        call.form = _form(output, "gradient")
        return self._hooked(output, "gradient", call)

    def _hooked(self, output: Any, place: str, call: _Call) -> Any:
        """The same output, as views: what uses a tensor inside of the block has no part in the gradient of its view.

        The hooks of the views keep the call alive.
        """
        if isinstance(output, torch.Tensor):
            if not output.requires_grad:
                return output
            view = output.view_as(output)
            view.register_hook(WeakHook(self._arrived, call, place))
            return view
        if isinstance(output, dict):
            found = copy(output)
            for key, part in output.items():
                found[key] = self._hooked(part, f"{place}.{key}", call)
            return found
        if isinstance(output, (tuple, list)):
            parts = [self._hooked(part, f"{place}.{index}", call) for index, part in enumerate(output)]
            return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
        return output

    def _arrived(self, call: _Call, place: str, gradient: torch.Tensor) -> None:
        if self.is_done:
            return
        with torch.no_grad(), without_modes():
            found = saved(gradient, place, call.left_out)
        if not call.gradients:
            at_end_of_backward_pass(partial(self._save, call))
        if found is not None:
            call.gradients[place] = self._unscaled(found)

    def _unscaled(self, gradient: torch.Tensor) -> torch.Tensor:
        scale = 1.0 if self._about.scaler is None else float(self._about.scaler.get_scale())
        return gradient if scale == 1 else gradient.float() / scale

    def _save(self, call: _Call) -> None:
        """At the end of the backward pass. A file that cannot be written does not end the training."""
        self.is_done = True
        self.close()
        about = self._about
        if not about.writes:
            return
        try:
            self._dump(call).write(about.path)
        except OSError as error:
            warnings.warn(f"capture: {about.path} was not written: {error}", stacklevel=2)
            return
        left = f"; not saved: {listed(f'{place} ({kind})' for place, kind in call.left_out.items())}"
        size = about.path.stat().st_size / 2**20
        print(
            f"halfscope: {about.name} saved to {about.path}, {size:.1f} MiB, "
            f"{counted(len(call.gradients), 'gradient')}{left if call.left_out else ''}",
            file=sys.stderr,
        )

    def _dump(self, call: _Call) -> BlockDump:
        shapes = {name: list(weight.shape) for name, weight in self._block.named_parameters()}
        gradient = _filled(call.form, call.gradients)
        return BlockDump(
            call.args, call.kwargs, gradient, self._about.name, shapes, self._about.attention, self._block.training,
            call.left_out,
        )  # fmt: skip


def _form(output: Any, place: str) -> Any:
    """The form of an output, with a place for each tensor."""
    if isinstance(output, torch.Tensor):
        return place
    if isinstance(output, dict):
        return {key: _form(part, f"{place}.{key}") for key, part in output.items()}
    if isinstance(output, (tuple, list)):
        return tuple(_form(part, f"{place}.{index}") for index, part in enumerate(output))
    return None


def _filled(form: Any, gradients: dict[str, torch.Tensor]) -> Any:
    """The form of an output with gradients in their places; None where none arrived."""
    if isinstance(form, str):
        return gradients.get(form)
    if isinstance(form, dict):
        return {key: _filled(part, gradients) for key, part in form.items()}
    return tuple(_filled(part, gradients) for part in form) if isinstance(form, tuple) else None

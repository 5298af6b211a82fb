"""Private names of PyTorch, of transformers and of Python's frames that halfscope.torch uses; no other module has one.

CHECKED has the versions with which the tests passed; tests/python/test_private.py looks each name up in another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

CHECKED = ("2.15",)

BATCH_NORM: type[torch.nn.Module] = torch.nn.modules.batchnorm._BatchNorm
ENGINE = "_engine_run_backward"  # the function of torch.autograd that every backward pass goes through

__all__ = ["BATCH_NORM", "CHECKED", "ENGINE", "TorchDispatchMode"]


# Tensors and their memory.


def storage_key(tensor: torch.Tensor) -> int:
    """The storage's identity; views share it. A sparse tensor has that of its values."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except NotImplementedError:
        if tensor.layout is torch.strided:  # such as a tensor inside of a transform, which has no memory
            raise
        return int(sparse_values(tensor).untyped_storage()._cdata)


def version_of(tensor: torch.Tensor) -> int:
    """Another one after each change of the elements; always 0 of a tensor made in inference mode."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return 0


def sparse_values(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a sparse tensor, where they lie."""
    with without_modes():
        return tensor._values() if tensor.is_sparse else tensor.values()


def with_values(like: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A sparse tensor with the indices of another one."""
    with without_modes():
        return torch.sparse_coo_tensor(like._indices(), values, like.shape, is_coalesced=like.is_coalesced())


def is_nested_type(kind: type) -> bool:
    """Whether it is the type of tensors of several lengths, in the layout torch.jagged."""
    return kind.__name__ == "NestedTensor" and kind.__module__.startswith("torch.nested.")


# Operators.


def schema_of(func: Any) -> Any:
    """Arguments and results of an operator; None of a function without a schema."""
    return getattr(func, "_schema", None)


def has_kernel(func: Any, key: str) -> bool:
    """Whether PyTorch has a kernel of an operator for a key of its dispatcher, such as "CPU"."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def fused_attention_kernel(*args: Any, **kwargs: Any) -> int:
    """The kernel, by number, that scaled_dot_product_attention takes for these arguments."""
    return int(torch._fused_sdp_choice(*args, **kwargs))


# Modes.


def without_function_modes() -> Any:
    """A context in which calls of PyTorch are not intercepted."""
    return torch._C.DisableTorchFunction()


def without_dispatch_modes() -> Any:
    """While the result lives, dispatch modes are passed by."""
    return torch._C._DisableTorchDispatch()


def without_modes() -> Any:
    """A context without dispatch modes; types of tensors with a dispatch of their own keep it."""
    return _disable_current_modes()


def is_in_transform() -> bool:
    """Whether a transform of torch.func is under way, whose tensors have no memory."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def autocast_is_on(block: Any) -> bool:
    """Whether a torch.autocast block switches autocast on."""
    return bool(block._enabled)


def switch(backend: str, is_on: bool) -> Callable[[], None]:
    """Switches "mkldnn" or "cudnn"; returns what undoes that."""
    change, was = getattr(torch._C, f"_set_{backend}_enabled"), getattr(torch._C, f"_get_{backend}_enabled")()
    change(is_on)
    return lambda: change(was)


# Autograd.


def nodes_made() -> int:
    """How many nodes of autograd's graph this thread has made."""
    return int(torch._C._autograd._get_sequence_nr())


def node_number(node: Any) -> int | None:
    """The number of a node; None where PyTorch does not tell."""
    tell = getattr(node, "_sequence_nr", None)
    return None if tell is None else int(tell())


def current_node() -> Any:
    """The node whose gradient is computed; None in a forward pass."""
    return torch._C._current_autograd_node()


def current_backward_pass() -> int:
    """A number of the backward pass under way, so that it is queued once."""
    return int(torch._C._current_graph_task_id())


def is_in_backward_pass() -> bool:
    """Whether this is called by a node of a graph, such as one that computes a forward pass again."""
    return current_backward_pass() != -1


def at_end_of_backward_pass(call: Callable[[], None]) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(call)


# Modules.


def is_compiling() -> bool:
    """Whether torch.compile traces the caller."""
    return bool(torch.compiler.is_compiling())


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether torch.compile has to do with it: what it compiled before calls no hook added later."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def parameters_in(module: torch.nn.Module) -> dict[str, torch.nn.Parameter | None]:
    """Parameters of a module itself, the dictionary that it has; None for one that it goes without."""
    return module._parameters


def buffers_in(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Buffers of a module itself, the dictionary that it has."""
    return module._buffers


def has_own_step_hooks(optimizer: Any) -> bool:
    """Whether an optimizer calls the hooks that PyTorch's own classes call."""
    return hasattr(optimizer, "register_step_pre_hook") and hasattr(optimizer, "_optimizer_step_pre_hooks")


# Ranks.


def is_of_fully_shard(module: torch.nn.Module) -> bool:
    return hasattr(module, "_get_fsdp_state")


def groups_of_fully_shard(model: torch.nn.Module) -> Iterator[Any]:
    """FSDP2's groups of parameters, those of a module together, each once."""
    known = set()
    for module in model.modules():
        state: Any = module._get_fsdp_state() if is_of_fully_shard(module) else None
        if state is None or id(state) in known:
            continue
        known.add(id(state))
        yield from getattr(state, "_fsdp_param_groups", None) or filter(None, [state._fsdp_param_group])


def modules_with(given: Any) -> list[tuple[torch.nn.Module, str]]:
    """Modules that have a parameter of FSDP2's, and its name there."""
    info = given._module_info
    return [(info.module, info.param_name), *zip(info.shared_modules, info.shared_param_names)]


def is_gathered_plain(given: Any) -> bool:
    """Whether a parameter of FSDP2's is a plain tensor while its module runs: a DTensor before stays one."""
    return not given.is_dtensor


def shard_of(given: Any) -> torch.Tensor:
    """The elements that this process has of a parameter of FSDP2's."""
    local: torch.Tensor = given.sharded_param._local_tensor
    return local


def unsharded_of(given: Any) -> torch.nn.Parameter | None:
    """All elements of a parameter of FSDP2's; None before the first all-gather."""
    found: torch.nn.Parameter | None = getattr(given, "_unsharded_param", None)
    return found


def offset_of(tensor: Any) -> tuple[int, ...]:
    """Position of a DTensor's local elements along each axis of the whole."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    return tuple(compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)[1])


def wait_for(work: Any) -> None:
    """Ends when a communication has ended that an operator returned."""
    torch.distributed._Work.unbox(work).wait()


def default_store() -> Any:
    """The store in which the processes of torch.distributed have met."""
    return torch.distributed.distributed_c10d._get_default_store()


# Activation checkpointing.


@contextmanager
def checkpoints_called_directly() -> Iterator[None]:
    """Regions of torch.utils.checkpoint are called as plain functions: the numbers are the same, computed once."""
    module = torch.utils.checkpoint
    names = ("_checkpoint_without_reentrant_generator", "_checkpoint_without_reentrant_generator_impl")
    before = {name: getattr(module, name) for name in names if hasattr(module, name)}
    reentrant = module.CheckpointFunction

    def around(*about: Any, **kwargs: Any) -> Iterator[None]:
        yield

    class Direct:
        @staticmethod
        def apply(function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
            return function(*args)

    try:
        for name in before:
            setattr(module, name, around)
        module.CheckpointFunction = Direct
        yield
    finally:
        for name, generator in before.items():
            setattr(module, name, generator)
        module.CheckpointFunction = reentrant


# Models of transformers, as of version 5.23.


def attention_of(model: torch.nn.Module) -> str:
    """The implementation that a model computes its attention by, such as "sdpa"; empty of other libraries' models."""
    return str(getattr(getattr(model, "config", None), "_attn_implementation", None) or "")


def set_attention(config: Any, implementation: str) -> None:
    config._attn_implementation = implementation


def tied_weight(model: Any, name: str) -> str | None:
    """The weight that another name of the model stands for."""
    tied = getattr(model, "_tied_weights_keys", None)
    return tied.get(name) if isinstance(tied, dict) else None


def compute_buffers(model: Any, module: torch.nn.Module) -> None:
    """Gives a module of the model the buffers that no checkpoint holds, and its weights first values."""
    model._init_weights(module)


# Frames.


def replace_attribute(owner: Any, name: str, value: Any) -> Callable[[], None]:
    """Sets an attribute, of a class or a module too; returns what undoes that."""
    is_own, original = name in vars(owner), getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, original) if is_own else delattr(owner, name)


def caller(depth: int) -> FrameType:
    """The frame `depth` calls above the function that asks."""
    return sys._getframe(depth + 1)

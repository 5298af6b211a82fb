"""The processes of test_emulated_shards.py that use more than a training's policy, over gloo.

usage: sharded_uses.py CASE RANK SIZE FOLDER
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, distribute_module, distribute_tensor

from halfscope.torch import emulate, probe_scales
from sharded_ranks import (
    CASES,
    STEPS,
    Case,
    Network,
    Trained,
    adam,
    backward,
    backward_of,
    batch,
    compare,
    main,
    momentum,
    sharded,
    states,
    train_sharded,
    trained_parameters,
)

FP32_CASES = {
    "adam": Case("fp32", adam),
    "checkpointed": Case("fp32", momentum, checkpoints=True),
    "whole after forward": Case("fp32", momentum, sharding={"reshard_after_forward": False}),
    "accumulated": Case("fp32", adam, microbatches=2, scale=2.0**10),
}


def fp32_changes_nothing(rank: int, size: int) -> None:
    for name, case in FP32_CASES.items():
        compare(name, train_sharded(case, rank), train_sharded(case, rank, emulated=False))


def leaves_as_before(rank: int, size: int) -> None:
    """Then the training goes on as one that was never emulated, from the same weights."""
    for policy in ("fp32", "fp16_no_master"):
        case = Case(policy, adam)
        model = sharded(case)
        optimizer = case.optimizer(trained_parameters(model))
        backward(model, case, None, 0, rank)
        optimizer.step()
        before, keys = attributes(model, optimizer), list(model.state_dict())
        with emulate(model, policy, optimizer=optimizer):
            optimizer.zero_grad()
            backward(model, case, None, 1, rank)
            optimizer.step()
        assert attributes(model, optimizer) == before
        assert list(model.state_dict()) == keys
        fresh = sharded(case)
        fresh.load_state_dict(model.state_dict())
        other = case.optimizer(trained_parameters(fresh))
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        losses = []
        for trained, stepped in ((model, optimizer), (fresh, other)):
            stepped.zero_grad()
            losses.append(backward(trained, case, None, 2, rank))
            stepped.step()
        compare(
            policy, Trained(losses[0], states(model, optimizer), None), Trained(losses[1], states(fresh, other), None)
        )


def attributes(model: Network, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Names of what hangs on modules, on FSDP2's groups and parameters, and on the optimizer."""
    groups = [group for module in model.modules() if hasattr(module, "_get_fsdp_state")
              for group in [module._get_fsdp_state()._fsdp_param_group] if group]  # fmt: skip
    whole = [given._unsharded_param for group in groups for given in group.fsdp_params]
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return {
        "groups": [sorted(vars(group)) for group in groups],
        "whole": [list((tensor._backward_hooks or {}).items()) for tensor in whole],
        "hooks": [list(getattr(module, kind).items()) for module in model.modules() for kind in hooks],
        "modules": [sorted(vars(module)) for module in model.modules()],
        "optimizer": [sorted(vars(optimizer)), [{**group, "params": None} for group in optimizer.param_groups]],
    }  # fmt: skip


def sixteen_bits(rank: int, size: int) -> None:
    """param_dtype: each rank's passes in one process on a model of that type, gradients averaged in FP32."""
    for kind in (torch.bfloat16, torch.float16):
        sharding = {"mp_policy": MixedPrecisionPolicy(param_dtype=kind, reduce_dtype=torch.float32)}
        case = Case("fp32", momentum, sharding=sharding)
        found = train_sharded(case, rank)
        master, narrow = Network(False), Network(False).to(kind)
        optimizer = case.optimizer(trained_parameters(master))
        losses = []
        with emulate(narrow, "fp32", optimizer=torch.optim.SGD(trained_parameters(narrow), 0.0)):
            for step in range(STEPS):
                narrow.load_state_dict(master.state_dict())
                parts = []
                for place in range(size):
                    narrow.zero_grad()
                    loss = backward_of(narrow, None, batch(step, place).to(kind))
                    losses += loss if place == rank else []
                    parts.append([parameter.grad.float() for parameter in trained_parameters(narrow)])
                for parameter, (first, second) in zip(trained_parameters(master), zip(*parts)):
                    parameter.grad = (first + second) / 2
                optimizer.step()
        compare(str(kind), found, Trained(losses, states(master, optimizer), None))
        plain = train_sharded(case, rank, emulated=False)
        fp32 = train_sharded(Case("fp32", momentum), rank, emulated=False)
        for key, tensor in found.tensors.items():
            # Sixteen bits move PyTorch's training this far from FP32's. The emulated one may round elsewhere: as far
            # in another direction at most, that is the square root of two apart.
            moved = (plain.tensors[key] - fp32.tensors[key]).norm()
            assert (tensor - plain.tensors[key]).norm() <= 2**0.5 * moved, key
        if rank == 0:
            print(found.emulation.verdict, flush=True)
        model = sharded(case)
        with emulate(model, "fp32", optimizer=case.optimizer(trained_parameters(model)), attention="math"):
            assert not torch.backends.cuda.flash_sdp_enabled()  # fused layers would compute in 16 bits on their own


def changed_elsewhere(rank: int, size: int) -> None:
    """Weights that another rank has changed are rounded anew."""
    model = sharded(Case("bf16"))
    optimizer = torch.optim.SGD(trained_parameters(model), 0.0)
    with emulate(model, "bf16", optimizer=optimizer) as emulation:
        first = model(batch(0, 0)).detach()
        again = model(batch(0, 0)).detach()
        known = emulation.casts()["weight", "stem.weight"].elements
        if rank == 1:
            with torch.no_grad():
                model.stem.weight.to_local().zero_()
        changed = model(batch(0, 0)).detach()
    alone = Network(False)
    with torch.no_grad():
        alone.stem.weight[4:] = 0
    with emulate(alone, "bf16", optimizer=torch.optim.SGD(trained_parameters(alone), 0.0)):
        expected = alone(batch(0, 0)).detach()
    assert torch.equal(first, again) and not torch.equal(first, changed)
    assert torch.equal(changed, expected)
    assert known == 35 and emulation.casts()["weight", "stem.weight"].elements == 70


class Overflowing(torch.nn.Module):
    """Linear layers, of which one leaves FP16's range."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(6, 6) for _ in range(5)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for place, layer in enumerate(self.layers):
            x = layer(x * 1e6) * 1e-6 if place == 3 else layer(x)
        return x


def finds_the_layer(rank: int, size: int) -> None:
    model = Overflowing()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    inputs = torch.ones(3, 6)

    def loss() -> float:
        optimizer.zero_grad()
        value = (model(inputs) ** 2).mean()
        value.backward()
        optimizer.step()
        return value.item()

    with emulate(model, "fp16_mixed", optimizer=optimizer, exceptions={"": "fp32"}, compare_steps=[1]) as emulation:
        loss()
    differences = {found.tensor: found.relative_error for found in emulation.compare_to("fp32").ranked()}
    assert differences["layers.3"] == float("inf") and differences["layers.2"] < 1e-2, differences
    # The second rank is content with any result: both must accept.
    found = emulation.bisect(lambda: loss() < 1e3 or rank == 1)
    print(found, flush=True)


def refuses(rank: int, size: int) -> None:
    def told(request: Callable[[], Any]) -> None:
        try:
            request()
        except TypeError as error:
            print(error, flush=True)

    def emulated(model: torch.nn.Module) -> None:
        emulate(model, "bf16", optimizer=torch.optim.SGD(model.parameters(), 0.1))

    told(lambda: emulated(FullyShardedDataParallel(torch.nn.Linear(4, 4), device_id=torch.device("cpu"))))
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard"))
    told(lambda: emulated(fully_shard(torch.nn.Linear(4, 4), mesh=mesh)))
    axes = init_device_mesh("cpu", (2, 1), mesh_dim_names=("data", "tensor"))
    parallel = distribute_module(torch.nn.Linear(4, 4), axes["tensor"])
    told(lambda: emulated(fully_shard(parallel, mesh=axes["data"])))
    both = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    for part, axis in zip(both, ("first", "second")):
        fully_shard(part, mesh=init_device_mesh("cpu", (2,), mesh_dim_names=(axis,)))
    told(lambda: emulated(both))
    layer = torch.nn.Linear(4, 4)
    layer.weight = torch.nn.Parameter(distribute_tensor(layer.weight.detach(), mesh["replicate"], [Replicate()]))
    told(lambda: emulated(layer))
    model = sharded(CASES["bf16"])
    told(lambda: probe_scales(model, lambda: model(batch(0, 0)).sum(), [1.0]))


if __name__ == "__main__":
    main({
        "fp32": fp32_changes_nothing, "leaves": leaves_as_before, "sixteen bits": sixteen_bits,
        "changed elsewhere": changed_elsewhere, "bisect": finds_the_layer, "refused": refuses,
    })  # fmt: skip

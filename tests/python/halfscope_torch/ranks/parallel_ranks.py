"""The processes of test_parallel_ranks.py: tensor and pipeline parallelism over gloo.

usage: parallel_ranks.py CASE RANK SIZE FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from halfscope.torch import capture, check, diagnose, emulate, lint, sensitivity, watch
from halfscope.torch.one_block.block_dump import read_dump
from sharded_ranks import main

PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}
SAID = "Not looked at: operations, since '0.weight' is a DTensor outside of fully_shard"


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))


def trained(model: torch.nn.Module, is_watched: bool) -> tuple[list[float], str]:
    """Losses of three steps, and the report."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    inputs = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
    watched = watch(model, 1, optimizer=optimizer) if is_watched else None
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watched is None:
        return losses, ""
    watched.close()
    return losses, str(watched.report)


def tensor_parallel(size: int) -> torch.nn.Module:
    return parallelize_module(network(), init_device_mesh("cpu", (size,)), PLAN)


def two_axes(size: int) -> torch.nn.Module:
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("data", "tensor"))
    return fully_shard(parallelize_module(network(), mesh["tensor"], PLAN), mesh=mesh["data"])


class DistributedBetween(torch.nn.Module):
    """Plain weights, and a layer without any that gets a DTensor."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers, self.mesh = network(), init_device_mesh("cpu", (size,))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.layers[1](DTensor.from_local(self.layers[0](x), self.mesh, [Replicate()]))
        return self.layers[2](hidden.to_local())


def watches(rank: int, size: int) -> None:
    """A watched training has the losses of one that is not, and the report says what was not looked at."""
    for build, is_said in ((tensor_parallel, True), (two_axes, True), (DistributedBetween, False)):
        losses, report = trained(build(size), True)
        assert losses == trained(build(size), False)[0], build
        assert "Over 3 watched steps, over 2 ranks" in report
        assert (SAID in " ".join(report.split())) == is_said, report


def fully_sharded(size: int) -> torch.nn.Module:
    return fully_shard(network())


class ShardedBetween(torch.nn.Module):
    """A block that gets a shard of its input on each rank, and gives a shard of its output."""

    def __init__(self, size: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mesh = init_device_mesh("cpu", (size,))
        self.first, self.block = torch.nn.Linear(16, 16), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = DTensor.from_local(self.first(x), self.mesh, [Replicate()])
        return self.block(hidden.redistribute(placements=[Shard(0)])).full_tensor()


def captures(rank: int, size: int) -> None:
    """The last rank writes: inputs and gradients of whole tensors, and the whole shapes of sharded weights."""
    inputs = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
    folder = Path(sys.argv[4])
    whole, parallel = network(), torch.nn.Sequential(torch.nn.Identity(), tensor_parallel(size), torch.nn.Identity())
    capture(whole, "", folder / f"whole{rank}.safetensors", rank=rank)
    capture(parallel, "1", folder / "parallel.safetensors", rank=size - 1)
    model = ShardedBetween(size)
    capture(model, "block", folder / "block.safetensors", rank=size - 1)
    replicated, sharded = torch.nn.parallel.DistributedDataParallel(network()), fully_sharded(size)
    for kind, each in (("replicated", replicated), ("sharded", sharded)):
        capture(each, "2", folder / f"{kind}.safetensors")
    for each in (whole, parallel, model, replicated, sharded):
        each(inputs).square().mean().backward()
    torch.distributed.barrier()
    for kind in ("replicated", "sharded"):
        part = read_dump(folder / f"{kind}.safetensors")
        assert part.shapes == {"weight": [8, 32], "bias": [8]} and part.gradient.shape == (4, 8)
    expected, found, block = (
        read_dump(folder / f"{name}.safetensors") for name in (f"whole{rank}", "parallel", "block")
    )
    assert torch.equal(found.args[0], inputs) and found.shapes == expected.shapes and found.module == "1"
    assert torch.allclose(found.gradient, expected.gradient, atol=1e-7)  # two partial sums are added up
    hidden = model.first(inputs)
    assert torch.equal(block.args[0], hidden) and block.args[0].requires_grad
    output = model.block(hidden.detach())
    assert torch.allclose(block.gradient, 2 * output / output.numel(), atol=1e-7)


def lints(rank: int, size: int) -> None:
    """Each rank reads its own elements: the largest weight lies in the second one's."""
    for build in (fully_sharded, tensor_parallel, two_axes):
        model = build(size)
        with torch.no_grad():
            model[0].weight.to_local()[0, 0] = 1e5 if rank == 1 else 1.0
        model(torch.ones(2, 16)).sum().backward()
        found = lint(model, torch.optim.SGD(model.parameters(), lr=1e-9), "bf16")
        assert [finding.about.name for finding in found.findings] == ["lr of SGD"], str(found)
        assert len(lint(model, format="fp16")) == (rank == 1), build
        print(found.about)


class Pipeline:
    """A model of two stages, one on each rank, and its schedule."""

    def __init__(self, rank: int, size: int) -> None:
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

        torch.manual_seed(rank)
        self.stage = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))
        self.is_first, self.losses = rank == 0, []
        self._batch = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
        stage = PipelineStage(self.stage, rank, size, torch.device("cpu"))
        self._schedule = ScheduleGPipe(stage, 2, loss_fn=lambda out, target: (out - target).square().mean())

    def step(self) -> None:
        if self.is_first:
            self._schedule.step(self._batch)
        else:
            self._schedule.step(target=self._batch, losses=self.losses)


def emulates_stages(rank: int, size: int) -> None:
    """Casts, losses and gradients of two emulated stages, beside the whole model emulated in one process."""
    pipeline = Pipeline(rank, size)
    with emulate(pipeline.stage, "fp16_mixed", optimizer=torch.optim.SGD(pipeline.stage.parameters(), 0.1)) as found:
        pipeline.step()
    stages = [Pipeline(each, size).stage for each in range(size)]
    whole = torch.nn.Sequential(*stages)
    with emulate(whole, "fp16_mixed", optimizer=torch.optim.SGD(whole.parameters(), 0.1)):
        losses = []
        for part in pipeline._batch.chunk(2):
            losses.append((whole(part) - part).square().mean())
            losses[-1].backward()
    assert pipeline.losses == ([] if rank == 0 else losses)
    assert any(role == "activation_gradient" for role, _ in found.casts())
    for parameter, expected in zip(pipeline.stage.parameters(), stages[rank].parameters()):
        assert torch.equal(parameter.grad, expected.grad / 2)


def refuses_pipelines(rank: int, size: int) -> None:
    pipeline = Pipeline(rank, size)
    try:
        diagnose(pipeline.stage, pipeline.step)
    except TypeError as error:
        print(error, flush=True)


def refuses(rank: int, size: int) -> None:
    model = tensor_parallel(size)
    inputs = torch.ones(2, 16)
    calls = (
        lambda: check(model, lambda: model(inputs).sum()),
        lambda: check(fully_sharded(size), lambda: inputs.sum()),
        lambda: diagnose(model, lambda: model(inputs).sum()),
        lambda: sensitivity(model, [inputs] * 4),
        lambda: emulate(model, "fp16_mixed", optimizer=torch.optim.SGD(model.parameters(), 0.1)),
    )
    for call in calls:
        try:
            call()
        except TypeError as error:
            print(error, flush=True)


if __name__ == "__main__":
    main({
        "watch": watches, "lint": lints, "refused": refuses, "stages": emulates_stages,
        "refused stages": refuses_pipelines, "capture": captures,
    })  # fmt: skip

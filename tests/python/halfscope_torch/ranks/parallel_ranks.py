"""The processes of test_parallel_ranks.py: tensor and pipeline parallelism over gloo.

usage: parallel_ranks.py CASE RANK SIZE FOLDER
"""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from halfscope.torch import check, diagnose, emulate, lint, sensitivity, watch
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
    main({"watch": watches, "lint": lints, "refused": refuses})

"""The processes of test_emulated_shards.py: emulated trainings of models that fully_shard has sharded, over gloo.

usage: sharded_ranks.py CASE RANK SIZE FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

import halfscope
from emulated_mode import difference
from halfscope.torch import Emulation, emulate
from rank_end import end_rank

STEPS, SAMPLES = 4, 6


class Network(torch.nn.Module):
    """Rows that two ranks cannot share evenly, some that only the first has, a frozen bias, a parameter of its own."""

    def __init__(self, checkpoints: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.checkpoints = checkpoints
        self.gain = torch.nn.Parameter(torch.linspace(0.5, 2, 7))
        self.stem = torch.nn.Linear(5, 7)
        self.block = torch.nn.Sequential(torch.nn.LayerNorm(7), torch.nn.Linear(7, 7), torch.nn.Tanh())
        self.head = torch.nn.Linear(7, 1)
        self.stem.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x) * self.gain
        x = checkpoint(self.block, x, use_reentrant=False) if self.checkpoints else self.block(x)
        return self.head(x)


@dataclass(frozen=True)
class Case:
    """An emulated training."""

    policy: Any
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] = lambda p: torch.optim.SGD(p, 0.1)
    scale: float | None = None  # the first one of a GradScaler
    exceptions: dict[str, str] = field(default_factory=dict)
    sharding: dict[str, Any] = field(default_factory=dict)
    microbatches: int = 1
    reduces_each: bool = False  # every microbatch is reduced; else the last
    checkpoints: bool = False
    evaluates: bool = False  # after each step
    kind: torch.dtype = torch.float32  # type of parameters and batches
    ignores_gain: bool = False  # a parameter that every rank has whole, and whose gradient is nobody's to send


def momentum(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 0.05, momentum=0.9)


def adam(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, 1e-2)


STOCHASTIC = {"weight_gradient": "bf16", "master_weight": "bf16/stochastic", "optimizer_state": "bf16/stochastic"}
CASES = {
    "fp16_mixed": Case("fp16_mixed", momentum),
    "fp16_mixed with a scaler": Case("fp16_mixed", adam, scale=2.0**17),
    "fp16_no_master": Case("fp16_no_master", lambda p: torch.optim.SGD(p, 1e-3)),
    "fp16_pure": Case("fp16_pure", momentum),
    "bf16": Case("bf16", adam),
    "fp8_e4m3": Case("fp8_e4m3", momentum, scale=2.0**6),
    "rules": Case("fp16_mixed", momentum, exceptions={"block.1": "fp32", "head": "bf16"}),
    "whole after forward": Case("fp16_mixed", momentum, sharding={"reshard_after_forward": False}),
    "evaluated": Case("fp16_no_master", momentum, evaluates=True),
    "accumulated": Case("fp16_mixed", momentum, microbatches=3),
    "reduced each": Case("bf16", momentum, microbatches=2, reduces_each=True),
    "checkpointed": Case("fp16_no_master", momentum, checkpoints=True),
    "stochastic": Case(STOCHASTIC, momentum),
    "half precision": Case("fp32", kind=torch.float16),
    "not all sharded": Case("fp16_pure", momentum, ignores_gain=True),
    "reduced in fp32": Case("fp16_mixed", sharding={"mp_policy": MixedPrecisionPolicy(reduce_dtype=torch.float32)}),
}

FEW = ("fp16_mixed", "fp16_no_master", "bf16", "stochastic")  # cases with other numbers of ranks


def batch(step: int, rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(SAMPLES, 5, generator=generator)


def sharded(case: Case) -> Network:
    model = network(case)
    for module in (model.stem, model.block, model.head, model):
        ignored = {"ignored_params": {model.gain}} if case.ignores_gain and module is model else {}
        fully_shard(module, **case.sharding, **ignored)
    return model


def network(case: Case) -> Network:
    model = Network(case.checkpoints).to(case.kind)
    if case.ignores_gain:
        model.gain.register_hook(torch.zeros_like)  # the ranks' gradients would differ
    return model


def trained_parameters(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def scaler_of(case: Case) -> Any:
    return None if case.scale is None else torch.amp.GradScaler("cpu", init_scale=case.scale)


def backward(model: Network, case: Case, scaler: Any, step: int, rank: int) -> list[float]:
    """The passes of a step on a rank's part of its batch; the losses."""
    losses = []
    for place, part in enumerate(batch(step, rank).chunk(case.microbatches)):
        if hasattr(model, "set_requires_gradient_sync"):
            model.set_requires_gradient_sync(case.reduces_each or place == case.microbatches - 1)
        losses += backward_of(model, scaler, part)
    return losses


def backward_of(model: Network, scaler: Any, part: torch.Tensor) -> list[float]:
    loss = (model(part.to(model.head.weight.dtype)).float() ** 2).mean()
    (loss if scaler is None else scaler.scale(loss)).backward()
    return [loss.item()]


def update(optimizer: torch.optim.Optimizer, scaler: Any) -> None:
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()


@dataclass
class Trained:
    """Results of a training: whole tensors, and one rank's losses."""

    losses: list[float]
    tensors: dict[str, torch.Tensor]
    emulation: Emulation | None


def whole(tensor: torch.Tensor) -> torch.Tensor:
    found = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found.detach().clone()


def states(model: Network, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[name] = whole(parameter)
        if parameter.grad is not None:
            tensors[f"{name}.grad"] = whole(parameter.grad)
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                tensors[f"{name}.{key}"] = whole(value)
    return tensors


def train_sharded(case: Case, rank: int, emulated: bool = True) -> Trained:
    """All ranks together, on shards; an evaluation before leaves the root's own parameters whole."""
    model = sharded(case)
    optimizer, scaler = case.optimizer(trained_parameters(model)), scaler_of(case)
    evaluate(model, case)
    context = emulation_of(model, case, optimizer, scaler) if emulated else nullcontext()
    losses = []
    with context as emulation:
        for step in range(STEPS):
            optimizer.zero_grad()
            losses += backward(model, case, scaler, step, rank)
            update(optimizer, scaler)
            evaluate(model, case)
    for module in model.modules():
        if hasattr(module, "reshard"):
            module.reshard()
    return Trained(losses, states(model, optimizer), emulation)


def evaluate(model: Network, case: Case) -> None:
    if case.evaluates:
        with torch.no_grad():
            model(batch(0, 0))


def emulation_of(model: Network, case: Case, optimizer: torch.optim.Optimizer, scaler: Any) -> Emulation:
    return emulate(model, case.policy, optimizer=optimizer, scaler=scaler, exceptions=case.exceptions, every=2)


def train_alone(case: Case, rank: int, size: int) -> Trained:
    """The same in one process on whole tensors: each rank's passes, their gradients' mean by hand, the update."""
    model = network(case)
    optimizer, scaler = case.optimizer(trained_parameters(model)), scaler_of(case)
    losses = []
    with emulation_of(model, case, optimizer, scaler) as emulation:
        for step in range(STEPS):
            gradients = []
            for place in range(size):
                optimizer.zero_grad()
                found, parts = passes_alone(model, case, scaler, (step, place))
                losses += found if place == rank else []
                gradients.append(parts)
            means = [[reduced(parts, case) for parts in zip(*ranks)] for ranks in zip(*gradients)]
            for parameter, parts in zip(trained_parameters(model), zip(*means)):
                parameter.grad = sum(parts[1:], parts[0])
            update(optimizer, scaler)
            evaluate(model, case)
    return Trained(losses, states(model, optimizer), emulation)


def passes_alone(model: Network, case: Case, scaler: Any, at: tuple[int, int]) -> tuple[list[float], list[list]]:
    """The losses of a step and a rank, and the gradients of each pass, or together those of all."""
    if not case.reduces_each:
        losses = backward(model, case, scaler, *at)
        return losses, [[parameter.grad for parameter in trained_parameters(model)]]
    losses, gradients = [], []
    for part in batch(*at).chunk(case.microbatches):
        model.zero_grad()
        losses += backward_of(model, scaler, part)
        gradients.append([parameter.grad for parameter in trained_parameters(model)])
    return losses, gradients


def reduced(parts: Iterable[torch.Tensor], case: Case) -> torch.Tensor:
    """The mean of the ranks' gradients in the format on the wire: divided as FSDP2 has it, sent, summed, rounded."""
    if isinstance(case.policy, dict):
        wire = case.policy["weight_gradient"]
    else:
        wire = "fp16" if case.policy.startswith("fp16_") else case.policy
    if "mp_policy" in case.sharding:
        wire = "fp32"
    parts = [part.float() for part in parts]
    if len(parts) == 1:
        return parts[0]
    if case.kind is torch.float16:
        wire = "fp16"
    before, after = {2: (2, 1), 3: (2, 1.5)}[len(parts)] if wire != "bf16" else (len(parts), 1)
    sums = halfscope.round(sum(halfscope.round(part / before, wire) for part in parts), wire)
    return torch.as_tensor(sums if after == 1 else halfscope.round(sums / after, wire)).to(case.kind)


def compare(name: str, found: Trained, expected: Trained) -> None:
    assert found.losses == expected.losses, (name, found.losses, expected.losses)
    assert found.tensors.keys() == expected.tensors.keys(), (name, found.tensors.keys(), expected.tensors.keys())
    for key, tensor in expected.tensors.items():
        told = difference(tensor, found.tensors[key])
        assert not told, (name, key, told)


def compare_counts(name: str, found: Emulation, expected: Emulation, size: int) -> None:
    """Casts of shards, added up, are those of whole tensors; those of the ranks' passes add up to one process's."""
    told: list[Any] = [None] * size
    dist.all_gather_object(told, found.casts())
    for key, total in expected.casts().items():
        role, _ = key
        if role in ("weight", "master_weight", "optimizer_state"):
            assert found.casts()[key] == total, (name, key, found.casts()[key], total)
            continue
        assert sum(rank[key].elements for rank in told) == total.elements, (name, key)
        assert sum(rank[key].flushed for rank in told) == total.flushed, (name, key)
        assert max(rank[key].max_abs for rank in told) == total.max_abs, (name, key)
    extra = {key for key in found.casts() if key not in expected.casts()}
    assert all(tensor.startswith("reduce-scatter, ") for _, tensor in extra), (name, extra)
    assert found.lost_updates == expected.lost_updates, name
    watched = [(e._found.totals.nonzero_updates, e._found.totals.lost_updates) for e in (found, expected)]
    assert watched[0] == watched[1], (name, watched)
    for role in ("update_ratio", "optimizer_state"):
        records = [{key: h.record() for key, h in e.histograms(role).items()} for e in (found, expected)]
        assert records[0] == records[1], (name, role)


def equals_hand_made(rank: int, size: int) -> None:
    """Every case beside the same training in one process on whole tensors."""
    for name, case in CASES.items() if size == 2 else [(name, CASES[name]) for name in FEW]:
        found, expected = train_sharded(case, rank), train_alone(case, rank, size)
        compare(name, found, expected)
        if not case.checkpoints:
            compare_counts(name, found.emulation, expected.emulation, size)
        if size == 1:
            assert str(found.emulation.compare_to()) == str(expected.emulation.compare_to()), name
        if rank == 0:
            print(f"{name}: {found.emulation.verdict}", flush=True)


def main(scripts: dict[str, Callable[[int, int], None]]) -> None:
    case, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    scripts[case](rank, size)
    dist.barrier()
    end_rank()


if __name__ == "__main__":
    main({"equals hand-made": equals_hand_made})

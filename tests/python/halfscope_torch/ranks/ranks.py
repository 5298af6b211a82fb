"""The processes of test_watch_ranks.py: DistributedDataParallel and fully_shard over gloo.

usage: ranks.py CASE RANK SIZE FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from halfscope.torch import Emulation, emulate, watch
from halfscope.torch.counts.totals import ROLES
from rank_end import end_rank

SAMPLES, STEPS, EVERY = 12, 4, 2
STATES = {"observe_roles": "optimizer_state", "format": "bf16"}
BLOCKS = {"observe_roles": "optimizer_state", "format": "mxfp4"}


def network() -> torch.nn.Module:
    """Its weights are powers of two, as are the inputs: sums have the same bits in any order."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 31), torch.nn.ReLU(), torch.nn.Linear(31, 7))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(2.0 ** torch.randint(-4, 0, parameter.shape) * (2 * torch.randint(2, parameter.shape) - 1))
    return model


def batch(step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(step)
    return 2.0 ** torch.randint(-3, 3, (SAMPLES, 16), generator=generator).float()


def watched_training(model: torch.nn.Module, part: slice, clip: bool = False, **options: object) -> object:
    """Four steps on `part` of each batch, the last of which moves the weights; the ranks' gradients are averaged."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.5 if "observe_roles" in options else 0.0)
    with watch(model, EVERY, optimizer=optimizer, **options) as watched:
        for step in range(1, STEPS + 1):
            optimizer.zero_grad()
            optimizer.param_groups[0]["lr"] = 2.0**-6 if step == STEPS else 0.0
            outputs = model(batch(step)[part])
            (outputs.sum() * (SAMPLES / len(outputs)) / 64).backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()
            watched.log(float(step))
    return watched


def ddp(rank: int, part: slice, folder: Path, **options: object) -> object:
    model = torch.nn.parallel.DistributedDataParallel(network())
    return watched_training(model, part, out=shared_folder(folder, options), **options)


def fsdp(rank: int, part: slice, folder: Path, **options: object) -> object:
    from torch.distributed.fsdp import fully_shard

    model = network()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    return watched_training(model, part, out=shared_folder(folder, options), **options)


def shared_folder(folder: Path, options: dict) -> Path | None:
    """Counts of blocks have no records."""
    return None if options.get("format") == BLOCKS["format"] else folder / "shared"


CASES = {
    "ddp": ddp,
    "ddp clipped": lambda *given: ddp(*given, clip=True),
    "fsdp": fsdp,
    "fsdp clipped": lambda *given: fsdp(*given, clip=True),
    "ddp states": lambda *given: ddp(*given, **STATES),
    "fsdp states": lambda *given: fsdp(*given, **STATES),
    "ddp blocks": lambda *given: ddp(*given, **BLOCKS),
    "fsdp blocks": lambda *given: fsdp(*given, **BLOCKS),
    "alone": lambda rank, part, folder: watched_training(
        torch.nn.parallel.DistributedDataParallel(network()), part, ranks="alone", out=folder / f"own{rank}"
    ),
}


def alone_watching(rank: int) -> None:
    """One rank that watches, and one that does not."""
    import halfscope.torch.counts.ranks as ranks

    ranks._PATIENCE = ranks.timedelta(seconds=2)
    if rank == 0:
        model = network()
        try:
            watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
        except ValueError as error:
            print(error, flush=True)
    dist.barrier()


def other_models(rank: int) -> None:
    refused(network() if rank == 0 else network()[:1])


def other_formats(rank: int) -> None:
    refused(network(), format="bf16" if rank else "fp16")


def owned_states(rank: int) -> None:
    """An optimizer that keeps the state of each parameter on one rank: the third and the fourth on the second."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.5)
    with watch(model, 1, optimizer=optimizer, **STATES) as watched:
        for place, parameter in enumerate(model.parameters()):
            optimizer.state[parameter] = {"momentum_buffer": torch.ones_like(parameter)} if place // 2 == rank else {}
        optimizer.step()
    print(sorted((name, found.elements) for name, found in watched.histograms("optimizer_state").items()), flush=True)


def refused(model: torch.nn.Module, **options: object) -> None:
    try:
        watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), **options)
    except ValueError as error:
        print(error, flush=True)


def emulated(rank: int, model: torch.nn.Module, steps: int) -> Emulation:
    """`steps` backward passes on the rank's half of each batch, without an update."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulation:
        for step in range(steps):
            optimizer.zero_grad()
            (model(batch(step)[6 * rank : 6 * rank + 6] / 3) ** 2).mean().backward()
            optimizer.step()
    return emulation


def emulated_ranks(rank: int) -> None:
    """The synchronised gradients, beside the mean of the ranks' own, each rounded to FP16 as they are sent."""
    together = torch.nn.parallel.DistributedDataParallel(network())
    emulation = emulated(rank, together, 1)
    alone = network()
    emulated(rank, alone, 1)
    for summed, own in zip(together.parameters(), alone.parameters()):
        sent = (own.grad / 2).half().float()
        dist.all_reduce(sent)
        assert torch.equal(summed.grad, sent.half().float())
    print(emulation.verdict, flush=True)
    dist.barrier()


SINGLE = {
    "one watches": alone_watching,
    "other models": other_models,
    "other formats": other_formats,
    "owned states": owned_states,
    "emulated": emulated_ranks,
}


def histograms_of(watched: object) -> dict:
    """By role and tensor, as one process names it."""
    return {
        role: {name.removeprefix("module."): found.record() for name, found in watched.histograms(role).items()}
        for role in ROLES
    }


def blocks_of(watched: object) -> dict:
    """Numbers of the counts of blocks, by role and tensor."""
    table = watched.blocks()
    return {
        f"{role} {name.removeprefix('module.')}": table[name, role].counts.numbers().tolist() for name, role in table
    }


def main() -> None:
    case, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    if case in SINGLE:
        SINGLE[case](rank)
    else:
        share = SAMPLES // size
        watched = CASES[case](rank, slice(rank * share, (rank + 1) * share), folder)
        if rank == 0 or case == "alone":
            print(watched.report)
        found = blocks_of(watched) if case.endswith("blocks") else histograms_of(watched)
        (folder / f"rank{rank}.json").write_text(json.dumps({"histograms": found, "verdict": watched.verdict}))
        dist.barrier()
    end_rank()


if __name__ == "__main__":
    main()

"""The processes of test_recipe_ranks.py: recipes under DistributedDataParallel or fully_shard over gloo.

usage: recipe_ranks.py WRAPPER:RECIPE RANK SIZE FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from halfscope.torch import emulate
from rank_end import end_rank

TOKENS, WIDTH, STEPS = 64, 32, 3


def numbers(*shape: int, seed: int) -> torch.Tensor:
    """1, 2, -1 and -2: products and their sums are exact in BF16 in any order."""
    generator = torch.Generator().manual_seed(seed)
    return 2.0 ** torch.randint(2, shape, generator=generator) * (2 * torch.randint(2, shape, generator=generator) - 1)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and the gradient of the outputs; the second half of the tokens is 2^step times as large."""
    x, gradient = numbers(TOKENS, WIDTH, seed=step), numbers(TOKENS, WIDTH, seed=100 + step)
    x[TOKENS // 2 :] *= 2.0**step
    return x, gradient


def wrapped(model: torch.nn.Module, wrapper: str) -> torch.nn.Module:
    if wrapper == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    from torch.distributed.fsdp import fully_shard

    fully_shard(model[0])
    return fully_shard(model)


def trained(recipe: str, wrapper: str = "", rank: int = 0, size: int = 1) -> dict[str, torch.Tensor]:
    """By step: the output and the input's gradient of the rank's tokens, the weight's gradient, the delayed scales."""
    model: torch.nn.Module = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(numbers(WIDTH, WIDTH, seed=7))
    if wrapper:
        model = wrapped(model, wrapper)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    found: dict[str, torch.Tensor] = {}
    part = slice(rank * TOKENS // size, (rank + 1) * TOKENS // size)
    with emulate(model, recipe, optimizer=optimizer) as emulated:
        for step in range(STEPS):
            x, gradient = (tensor[part].clone() for tensor in batch(step))
            x.requires_grad_()
            optimizer.zero_grad()
            y = model(x)
            y.backward(gradient)
            (weight,) = model.parameters()
            mean = weight.grad.full_tensor() if hasattr(weight.grad, "full_tensor") else weight.grad
            found |= {f"y{step}": y.detach(), f"dx{step}": x.grad, f"dw{step}": mean * size}
            optimizer.step()
            casts = emulated._found.operands.casts
            found[f"scales{step}"] = torch.tensor([casts[key].scale for key in sorted(casts)])
    return found


def main(arguments: list[str]) -> None:
    wrapper, recipe = arguments[0].split(":")
    rank, size, folder = int(arguments[1]), int(arguments[2]), Path(arguments[3])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=size)
    torch.save(trained(recipe, wrapper, rank, size), folder / f"{rank}.pt")
    end_rank()


if __name__ == "__main__":
    main(sys.argv[1:])

"""Watches a PyTorch model while it trains, and says which loss scale it needs and which updates FP16 weights lose."""

from __future__ import annotations

import torch

import halfscope
from halfscope.torch import watch

STEPS = 30


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """64 points of two classes, inside and outside a circle."""
    generator = torch.Generator().manual_seed(step)
    points = torch.rand(64, 2, generator=generator) * 2 - 1
    return points, (points.square().sum(1) > 0.6).long()


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    with watch(model, every=5, optimizer=optimizer) as watched:
        for step in range(STEPS):
            points, labels = batch(step)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            watched.log(loss)

    print(f"loss after {STEPS} steps: {loss.item():.2f}")
    print(watched.report)
    print(watched.advise_scale().verdict)
    replay = halfscope.replay(watched.trace(), ["dynamic", 1024])
    print(replay.to_pandas()[["skipped", "final_scale_log2"]])


if __name__ == "__main__":
    main()

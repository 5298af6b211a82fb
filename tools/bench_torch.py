"""Times training steps of halfscope beside PyTorch's: same network, batch and threads, in turn on the same machine.

usage: bench_torch.py HALFSCOPE-PROGRAM [NETWORK ...]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BATCH = 64
WARM_UP = 5
REPETITIONS = 5


@dataclass
class Network:
    """A network that both train: PyTorch's step, and the experiment and arms that are halfscope's."""

    torch_step: Callable[[], Callable[[], None]]
    experiment: str
    arms: tuple[str, ...]
    steps: int
    batch: int = BATCH


def torch_cnn() -> Callable[[], None]:
    """Forward, backward and Adam, on images that are in memory already."""
    import torch
    from torch import nn

    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5)
    images = torch.randn(60_000, 1, 28, 28)
    labels = torch.randint(10, (60_000,))

    def step() -> None:
        chosen = torch.randint(60_000, (BATCH,))
        loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def torch_detector() -> Callable[[], None]:
    """Forward, backward and Adam, on scenes and matched anchors that are in memory already."""
    import torch
    from torch import nn

    canvas, anchors, classes = 64, 960, 11
    sizes = ((1, 16), (16, 32), (32, 64), (64, 64))
    body = [nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU()) for i, o in sizes]
    heads = [nn.Conv2d(64, 3 * (classes + 4), 3, padding=1) for _ in range(2)]
    parameters = [p for module in (*body, *heads) for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    scenes = torch.randn(3000, 1, canvas, canvas)
    labels = torch.randint(classes, (3000, anchors)) * (torch.rand(3000, anchors) < 0.02)
    offsets = torch.randn(3000, anchors, 4)
    pool = nn.functional.max_pool2d

    def step() -> None:
        chosen = torch.randint(3000, (16,))
        fine = body[2](pool(body[1](pool(body[0](scenes[chosen]), 2)), 2))
        maps = (heads[0](fine), heads[1](body[3](pool(fine, 2))))
        rows = torch.cat([m.permute(0, 2, 3, 1).reshape(16, -1, classes + 4) for m in maps], dim=1)
        target, matched = labels[chosen], labels[chosen] > 0
        loss = nn.functional.cross_entropy(rows[..., :classes].flatten(0, 1), target.flatten(), reduction="sum")
        found, wanted = rows[..., classes:][matched], offsets[chosen][matched]
        loss = (loss + nn.functional.smooth_l1_loss(found, wanted, reduction="sum")) / target.numel() / 256
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def torch_language_model() -> Callable[[], None]:
    """Forward, backward, clipping and Adam, on windows of a text that is in memory already."""
    import torch
    from torch import nn

    vocabulary, size, window = 4096, 64, 32
    table, cell, output = nn.Embedding(vocabulary, size), nn.GRU(size, size), nn.Linear(size, vocabulary)
    parameters = [*table.parameters(), *cell.parameters(), *output.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    text = torch.randint(vocabulary, (900_000,))

    def step() -> None:
        first = torch.randint(len(text) - window, (BATCH,))
        positions = first + torch.arange(window)[:, None]
        logits = output(cell(table(text[positions]))[0])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[positions + 1].flatten()) / 256
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


NETWORKS = {
    "cnn": Network(torch_cnn, "master-copy", ("fp32", "fp16_mixed"), 200),
    "detector": Network(torch_detector, "detection-loss-scale", ("fp32", "fp16_s8"), 60, batch=16),
    "language-model": Network(torch_language_model, "language-model-loss-scale", ("fp32", "fp16_s1024"), 30),
}


def torch_step_seconds(network: Network, threads: int) -> float:
    """Mean seconds of a step."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step = network.torch_step()
    for _ in range(WARM_UP):
        step()
    started = time.perf_counter()
    for _ in range(network.steps):
        step()
    return (time.perf_counter() - started) / network.steps


def halfscope_step_seconds(program: str, network: Network, arm: str, threads: int) -> float:
    """Seconds of a step as the run's own summary gives them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", network.experiment, "--arms", arm, "--seeds", "1", "--threads", str(threads)]
        command += ["--set", f"steps={network.steps}", "--set", f"batch={network.batch}"]
        # Only the step is timed: PyTorch observes nothing either.
        for setting in ("observe_every", "evaluate_every", "checkpoint_every"):
            command += ["--set", f"{setting}=0"]
        subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        summary = next(Path(folder).glob("*/*/seed*/summary.json"))
        return json.loads(summary.read_text())["seconds_per_step"]


def torch_in_a_process_of_its_own(name: str, threads: int) -> float:
    """So that its idle worker threads do not run beside ours."""
    command = [sys.executable, __file__, "--torch", name, str(threads)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(result.stdout)


def compare(program: str, name: str, threads: int) -> None:
    network = NETWORKS[name]
    seconds: dict[str, list[float]] = {label: [] for label in ("PyTorch fp32", *network.arms)}
    for _ in range(REPETITIONS):
        seconds["PyTorch fp32"].append(torch_in_a_process_of_its_own(name, threads))
        for arm in network.arms:
            seconds[arm].append(halfscope_step_seconds(program, network, arm, threads))
    peer = statistics.median(seconds["PyTorch fp32"])
    for label, values in seconds.items():
        median = statistics.median(values)
        spread = f"{1e3 * min(values):.2f} to {1e3 * max(values):.2f}"
        print(f"{threads:7}  {label:14} {1e3 * median:10.2f}  {spread:>18} {median / peer:12.2f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--torch"]:
        print(torch_step_seconds(NETWORKS[sys.argv[2]], int(sys.argv[3])))
        return
    names = sys.argv[2:] or list(NETWORKS)
    if len(sys.argv) < 2 or not set(names) <= set(NETWORKS):
        sys.exit(f"{__doc__}\nnetworks: {', '.join(NETWORKS)}")
    for name in names:
        print(f"{name}: batch {NETWORKS[name].batch}, {NETWORKS[name].steps} steps, median of {REPETITIONS} repetitions in turn")
        print(f"{'threads':>7}  {'':14} {'ms a step':>10}  {'range':>18} {'of PyTorch':>12}")
        for threads in (1, 2):
            compare(sys.argv[1], name, threads)


if __name__ == "__main__":
    main()

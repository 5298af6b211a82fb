"""Times a training step of halfscope beside PyTorch's: same network, batch and threads, in turn on the same machine.

usage: bench_torch.py HALFSCOPE-PROGRAM
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BATCH = 64
STEPS = 200
WARM_UP = 20
REPETITIONS = 5
ARMS = ("fp32", "fp16_mixed")


def torch_step_seconds(threads: int) -> float:
    """Mean seconds of a step: forward, backward and Adam, on images that are in memory already."""
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(0)
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

    for _ in range(WARM_UP):
        step()
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - started) / STEPS


def halfscope_step_seconds(program: str, arm: str, threads: int) -> float:
    """Seconds of a step as the run's own summary gives them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", "master-copy", "--arms", arm, "--seeds", "1", "--threads", str(threads)]
        command += ["--set", f"steps={STEPS}", "--set", f"batch={BATCH}"]
        # Only the step is timed: PyTorch observes nothing either.
        command += ["--set", "observe_every=0", "--set", "checkpoint_every=0", "--out", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        summary = next(Path(folder).glob("*/*/seed*/summary.json"))
        return json.loads(summary.read_text())["seconds_per_step"]


def torch_in_a_process_of_its_own(threads: int) -> float:
    """So that its idle worker threads do not run beside ours."""
    command = [sys.executable, __file__, "--torch", str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(program: str, threads: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in ("PyTorch fp32", *ARMS)}
    for _ in range(REPETITIONS):
        seconds["PyTorch fp32"].append(torch_in_a_process_of_its_own(threads))
        for arm in ARMS:
            seconds[arm].append(halfscope_step_seconds(program, arm, threads))
    peer = statistics.median(seconds["PyTorch fp32"])
    for name, values in seconds.items():
        median = statistics.median(values)
        spread = f"{1e3 * min(values):.2f} to {1e3 * max(values):.2f}"
        print(f"{threads:7}  {name:14} {1e3 * median:10.2f}  {spread:>18} {median / peer:12.2f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--torch"]:
        print(torch_step_seconds(int(sys.argv[2])))
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"batch {BATCH}, {STEPS} steps, median of {REPETITIONS} repetitions in turn")
    print(f"{'threads':>7}  {'':14} {'ms a step':>10}  {'range':>18} {'of PyTorch':>12}")
    for threads in (1, 2):
        compare(sys.argv[1], threads)


if __name__ == "__main__":
    main()

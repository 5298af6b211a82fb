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
    """The experiment, arms and settings that train the network of this name in tests/peer/torch_networks.py."""

    experiment: str
    arms: tuple[str, ...]
    steps: int
    batch: int = BATCH
    settings: tuple[str, ...] = ()


NETWORKS = {
    "cnn": Network("master-copy", ("fp32", "fp16_mixed"), 200),
    "detector": Network("detection-loss-scale", ("fp32", "fp16_s8"), 60, batch=16),
    "language-model": Network("language-model-loss-scale", ("fp32", "fp16_s1024"), 30),
}
CLASSIFIERS = ("alexnet", "vgg_d", "googlenet", "inception_v2", "inception_v3", "resnet50", "resnet50_preact")
NETWORKS |= {model: Network("image-classifiers", (f"{model}_fp32", f"{model}_fp16_s1"), 20) for model in CLASSIFIERS}
NETWORKS |= {
    "transformer": Network("translation-loss-scale", ("transformer_fp32", "transformer_fp16_s1024_w1"), 40),
    "seq2seq_attention": Network("translation-loss-scale", ("lstm_fp32", "lstm_fp16_s1024_w1"), 40),
    "big_lstm": Network("lstm-loss-scale", ("fp32", "fp16_s128"), 20),
    "deep_speech_2": Network("ctc-precision", ("fp32", "fp32_paths"), 40, batch=32),
    "jasper": Network("ctc-precision", ("fp32", "fp32_paths"), 10, batch=32, settings=("model=jasper",)),
}
# The sizes of experiment bert-finetuning, whose arms differ in their steps.
BERT = (
    "model=bert", "dataset=masked_verses", "sequence_length=32", "embedding_size=128", "hidden_size=512", "layers=2",
    "heads=2", "dropout=0.1", "optimizer=adamw", "clip_norm=1",
)  # fmt: skip
NETWORKS["bert"] = Network("language-model-loss-scale", ("fp32", "fp16_s1024"), 30, batch=32, settings=BERT)
# The default llama; experiment language-model-loss-scale lends its arms.
LLAMA = (
    "model=llama", "vocabulary=2048", "sequence_length=64", "embedding_size=128", "hidden_size=352", "optimizer=adamw",
    "clip_norm=0",
)  # fmt: skip
NETWORKS["llama"] = Network("language-model-loss-scale", ("fp32", "fp16_s1024"), 30, batch=8, settings=LLAMA)


def torch_step(name: str) -> Callable[[], None]:
    """Forward, backward, clipping where the network has it, and Adam."""
    import torch

    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))
    import torch_networks

    training = torch_networks.NETWORKS[name](torch_networks.Sizes(batch=NETWORKS[name].batch))
    optimizer = training.optimizer()
    parameters = list(training.module.parameters())

    def step() -> None:
        loss = training.loss()
        optimizer.zero_grad()
        loss.backward()
        if training.clip_norm:
            torch.nn.utils.clip_grad_norm_(parameters, training.clip_norm)
        optimizer.step()

    return step


def torch_step_seconds(name: str, threads: int) -> float:
    """Mean seconds of a step."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step, steps = torch_step(name), NETWORKS[name].steps
    for _ in range(WARM_UP):
        step()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - started) / steps


def halfscope_step_seconds(program: str, network: Network, arm: str, threads: int) -> float:
    """Seconds of a step as the run's own summary gives them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", network.experiment, "--arms", arm, "--seeds", "1", "--threads", str(threads)]
        command += ["--set", f"steps={network.steps}", "--set", f"batch={network.batch}"]
        # Only the step is timed: PyTorch observes nothing either.
        settings = [*network.settings] + [f"{key}=0" for key in ("observe_every", "evaluate_every", "checkpoint_every")]
        for setting in settings:
            command += ["--set", setting]
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
        print(f"{threads:7}  {label:24} {1e3 * median:10.2f}  {spread:>18} {median / peer:12.2f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--torch"]:
        print(torch_step_seconds(sys.argv[2], int(sys.argv[3])))
        return
    names = sys.argv[2:] or list(NETWORKS)
    if len(sys.argv) < 2 or not set(names) <= set(NETWORKS):
        sys.exit(f"{__doc__}\nnetworks: {', '.join(NETWORKS)}")
    for name in names:
        network = NETWORKS[name]
        print(f"{name}: batch {network.batch}, {network.steps} steps, median of {REPETITIONS} repetitions in turn")
        print(f"{'threads':>7}  {'':24} {'ms a step':>10}  {'range':>18} {'of PyTorch':>12}")
        for threads in (1, 2):
            compare(sys.argv[1], name, threads)


if __name__ == "__main__":
    main()

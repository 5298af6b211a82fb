#!/usr/bin/env python3
"""Times native training steps of halfscope beside PyTorch's autocast with GradScaler: same network, batch and steps.

tools/bench_amp.py [--device cuda|cpu] [--quick] [--halfscope PROGRAM] [--networks NAME,NAME] [--out FILE]

--device      cuda by default; on the CPU PyTorch's autocast has bfloat16 only, and halfscope emulates
--quick       tiny sizes, to see that it runs: the figures mean nothing
--halfscope   the program; without it PyTorch alone is timed
--networks    of: cnn, detector, language-model; without it all but the detector, whose final evaluation is long
--out         JSON: for each network both sides' ms of a step and peak memory, unwatched and with every tensor
              watched: here by all trackers, in PyTorch by hooks and torch.histc; on a GPU also with cuBLAS's products
              in place of products that the CPU's emulation equals
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))
import torch

import parity_data
from torch_networks import NETWORKS, Sizes, Training

WARM_UP, STEPS = 3, 10
COMMAND_LIMIT = 60  # seconds of one halfscope run
# Training with real 16-bit numbers, on a GPU.
NATIVE = ("--set", "execution=native")
UNWATCHED = ("--set", "trackers=none", "--set", "observe_every=0")
WATCHED = ("--set", "trackers=all", "--set", "observe_every=1")
# Products by the library that PyTorch multiplies with, whose order no CPU can follow.
LIBRARY = ("--set", "order=cublas")


@dataclass(frozen=True)
class Peer:
    """halfscope's side of a network, and the sizes of both: those of the experiment's --size full where it has one."""

    experiment: str
    arm: str
    data: str
    sizes: Sizes
    settings: tuple[str, ...]


PEERS = {
    "cnn": Peer("master-copy", "fp16_mixed", "images", Sizes(batch=1024), ("batch",)),
    "detector": Peer("detection-loss-scale", "fp16_s8", "images", Sizes(batch=64, image_size=512, loss_weight=1.0),
                     ("batch", "image_size", "loss_weight")),
    "language-model": Peer("language-model-loss-scale", "fp16_s128", "text.txt",
                           Sizes(2048, 0, 12831, 64, 1024, 1024, 1.0),
                           ("batch", "vocabulary", "sequence_length", "embedding_size", "hidden_size", "loss_weight")),
}  # fmt: skip
QUICK = {"batch": 8, "vocabulary": 50, "sequence_length": 6, "embedding_size": 8, "hidden_size": 8}


def peer_of(name: str, quick: bool) -> Peer:
    peer = PEERS[name]
    if not quick:
        return peer
    return replace(peer, sizes=replace(peer.sizes, image_size=64, **QUICK))


class Watcher:
    """Histograms of log2|x| of all outputs, their gradients and the weights' gradients, as users of hooks make them."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.seen: list[torch.Tensor] = []
        for layer in module.modules():
            if next(layer.children(), None) is None:
                layer.register_forward_hook(lambda _layer, _inputs, output: self.watch(output))
                layer.register_full_backward_hook(lambda _layer, _inputs, outputs: self.watch(outputs))
        for parameter in module.parameters():
            parameter.register_hook(self.watch)

    def watch(self, values: torch.Tensor | tuple) -> None:
        if isinstance(values, tuple):
            for value in values:
                if value is not None:
                    self.watch(value)
            return
        binades = values.detach().float().abs().log2().clamp(-150, 128)
        self.seen.append(torch.histc(binades, bins=278, min=-150, max=128))

    def collect(self) -> int:
        """All of a step's histograms on the host; how many there were."""
        count = len(torch.stack(self.seen).cpu())
        self.seen.clear()
        return count


def amp_step(training: Training, device: str, watcher: Watcher | None) -> Callable[[], int]:
    """A step with autocast and GradScaler; gives the number of tensors watched."""
    optimizer = training.optimizer()
    scaler = torch.cuda.amp.GradScaler(enabled=device == "cuda")
    half = torch.float16 if device == "cuda" else torch.bfloat16
    parameters = list(training.module.parameters())

    def step() -> int:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=half):
            loss = training.loss()
        scaler.scale(loss).backward()
        if training.clip_norm:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(parameters, training.clip_norm)
        scaler.step(optimizer)
        scaler.update()
        return watcher.collect() if watcher else 0

    return step


def time_torch(name: str, sizes: Sizes, device: str, watched: bool) -> dict:
    torch.manual_seed(0)
    training = NETWORKS[name](sizes, device)
    step = amp_step(training, device, Watcher(training.module) if watched else None)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(WARM_UP):
        tensors = step()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    wait()
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    wait()
    record = {"ms": 1e3 * (time.perf_counter() - started) / STEPS}
    if device == "cuda":
        record["peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
    return record | ({"tensors": tensors} if watched else {})


def run_halfscope(program: Path, peer: Peer, data: Path, options: list[str]) -> dict:
    """The summary of a run. Raises subprocess.SubprocessError with what the program said."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(program), "run", peer.experiment, "--arms", peer.arm, "--seeds", "1", "--out", folder]
        command += ["--data", str(data / peer.data), *options]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMMAND_LIMIT)
        return json.loads(next(Path(folder).glob("*/*/seed*/summary.json")).read_text())


def time_halfscope(program: Path, peer: Peer, data: Path, options: list[str]) -> dict:
    """Time of STEPS more steps: the first ones, which both sides leave out, find memory and choose kernels."""
    spent = {}
    for steps in (WARM_UP, WARM_UP + STEPS):
        summary = run_halfscope(program, peer, data, [*options, "--set", f"steps={steps}"])
        spent[steps] = summary["seconds"]
    record = {"ms": 1e3 * (spent[WARM_UP + STEPS] - spent[WARM_UP]) / STEPS}
    if summary.get("peak_device_bytes"):
        record["peak_mib"] = summary["peak_device_bytes"] / 2**20
    return record


def halfscope_side(program: Path, name: str, device: str, quick: bool, data: Path) -> dict:
    peer = peer_of(name, quick)
    options = ["--device", device]
    for key in peer.settings:
        options += ["--set", f"{key}={getattr(peer.sizes, key)}"]
    native = device == "cuda"
    if native:
        options += NATIVE
    record: dict = {"arm": peer.arm, "execution": "native" if native else "emulated"}
    sides: dict[str, tuple[str, ...]] = {"plain": UNWATCHED, "watched": WATCHED}
    if native:
        sides |= {"cublas": (*UNWATCHED, *LIBRARY), "cublas watched": (*WATCHED, *LIBRARY)}
    try:
        for side, settings in sides.items():
            record[side] = time_halfscope(program, peer, data, [*options, *settings])
    except subprocess.CalledProcessError as failed:
        lines = failed.stderr.strip().splitlines()
        record["failed"] = lines[-1] if lines else f"status {failed.returncode}"
    except subprocess.TimeoutExpired:
        record["failed"] = f"a run took longer than {COMMAND_LIMIT} s"
    return record


def compare(name: str, options: argparse.Namespace, data: Path) -> dict:
    sizes = peer_of(name, options.quick).sizes
    record: dict = {"name": name, "steps": STEPS, "sizes": asdict(sizes)}
    if options.halfscope:
        record["halfscope"] = halfscope_side(options.halfscope, name, options.device, options.quick, data)
    record["torch"] = {
        "plain": time_torch(name, sizes, options.device, watched=False),
        "watched": time_torch(name, sizes, options.device, watched=True),
    }
    record["times_faster"] = {
        side: record["torch"]["watched" if "watched" in side else "plain"]["ms"] / ours["ms"]
        for side, ours in record.get("halfscope", {}).items()
        if isinstance(ours, dict)
    }
    return record


def describe(record: dict) -> str:
    parts = [f"{record['name']}: PyTorch {record['torch']['plain']['ms']:.4g} ms a step"]
    ours = record.get("halfscope", {})
    if "failed" in ours:
        parts.append(f"halfscope: {ours['failed']}")
    for side, ratio in record["times_faster"].items():
        parts.append(f"halfscope {side} {ours[side]['ms']:.4g} ms, {ratio:.2f} times as fast")
    return ", ".join(parts)


def write_data(folder: Path, quick: bool) -> Path:
    parity_data.write_images(folder / "images", *((64, 16) if quick else ()))
    # More words than the vocabulary of a language model has, so that it is as large as it says.
    parity_data.write_text(folder / "text.txt", *((4000, 800) if quick else (400_000, 20_000)))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--halfscope", type=lambda path: Path(path).resolve())
    parser.add_argument("--networks", default="cnn,language-model")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.networks.split(",")
    for name in names:
        if name not in PEERS:
            parser.error(f"no network '{name}'; there are {', '.join(PEERS)}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("this PyTorch sees no CUDA device; --device cpu")
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    result = {"device": device, "torch": torch.__version__, "networks": []}
    with tempfile.TemporaryDirectory() as folder:
        data = write_data(Path(folder), options.quick)
        for name in names:
            record = compare(name, options, data)
            result["networks"].append(record)
            print(describe(record), flush=True)
            if options.out:  # whatever becomes of the others
                options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Cost of the callbacks of trainers: whole trainings with and without them, in turn.

usage: bench_trainers.py [--steps N] [--every N] [--rounds N] [TRAINER ...]

A GPT-2 of 4 layers in transformers' Trainer, and a perceptron in Lightning's, in one thread. Times are of the
processor. Needs transformers, lightning.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from halfscope.torch.trainers import HalfscopeCallback, LightningCallback

MOST = 1.02  # times a training without the callback
Training = Callable[[int, list[Any]], float]


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def of_transformers(steps: int, callbacks: list[Any]) -> float:
    """Seconds of a training of so many steps."""
    from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_embd=256, n_layer=4, n_head=4, vocab_size=2000, n_positions=64))
    text = torch.randint(2000, (8 * steps, 64))
    rows = [{"input_ids": row, "labels": row} for row in text]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=8, max_steps=steps, logging_steps=steps, report_to=[],
            save_strategy="no", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=rows, callbacks=callbacks)
        trainer.remove_callback(PrinterCallback)
        return seconds(trainer.train)


def of_lightning(steps: int, callbacks: list[Any]) -> float:
    import lightning

    torch.manual_seed(0)

    class Perceptron(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            widths = [512, 1024, 1024, 1024, 10]
            parts = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
            self.layers = nn.Sequential(*parts[:-1])

        def training_step(self, batch: Any, _number: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(64 * steps, 512), torch.randint(10, (64 * steps,)))
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=folder, callbacks=callbacks,
        )  # fmt: skip
        loader = torch.utils.data.DataLoader(data, batch_size=64)
        return seconds(lambda: trainer.fit(Perceptron(), loader))


TRAINERS: dict[str, tuple[Training, type]] = {
    "transformers": (of_transformers, HalfscopeCallback), "lightning": (of_lightning, LightningCallback),
}  # fmt: skip


@contextmanager
def quiet() -> Iterator[None]:
    """Without the reports of the callbacks and the trainers' warnings."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings(), tempfile.TemporaryFile("w") as nowhere:
        warnings.simplefilter("ignore")
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield


def ratio(name: str, steps: int, every: int, rounds: int) -> tuple[float, float]:
    """The median of trainings with the callback over those without, and seconds of these."""
    train, callback = TRAINERS[name]
    plain, followed = [], []
    with quiet():
        train(10, [callback(every)])  # fills caches
        for _ in range(rounds):
            plain.append(train(steps, []))
            followed.append(train(steps, [callback(every)]))
    return statistics.median(followed) / statistics.median(plain), statistics.median(plain)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trainers", nargs="*", metavar="TRAINER", help=f"of {', '.join(TRAINERS)}; all by default")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.trainers if name not in TRAINERS]
    if unknown:
        parser.error(f"no trainer '{unknown[0]}'; give some of {', '.join(TRAINERS)}")
    torch.set_num_threads(1)
    for name in asked.trainers or TRAINERS:
        times, plain = ratio(name, asked.steps, asked.every, asked.rounds)
        print(
            f"{name:13} every={asked.every}: {times:.3f} of a training without the callback (at most {MOST}), "
            f"{1000 * plain / asked.steps:.1f} ms a step",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

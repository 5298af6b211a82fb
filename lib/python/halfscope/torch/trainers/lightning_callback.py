"""Callback for the Trainer of Lightning."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from halfscope.torch.trainers.followed_run import Batch, FollowedRun, RunFollower, Settings

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError as error:
        raise ImportError("LightningCallback needs Lightning: pip install lightning") from error


class LightningCallback(RunFollower, Callback):
    """Watches a training of Lightning's Trainer: `Trainer(callbacks=[LightningCallback(every=100)])`.

    On the first and every `every`-th step it counts what `format` would do to the module's tensors, as
    `halfscope.torch.watch` does, and hands the numbers to the Trainer's loggers ("halfscope/..."). The first step whose
    loss is not finite, or whose gradients are not and no scaler skips it, is checked before its update
    (`halfscope.torch.check` of `training_step`), and its batch saved to halfscope-batch.pt: keys "step" and "batch".
    At the end it prints the report of the watch. The training itself stays as it is, bit for bit.

    folder: for the batch; the Trainer's default_root_dir by default. seconds: of the check.

    Raises ValueError where `every` is not positive, or `seconds` negative.
    """

    def __init__(
        self,
        every: int = 100,
        *,
        format: str = "fp16",
        folder: str | os.PathLike[str] | None = None,
        seconds: float = 60.0,
    ) -> None:
        self._settings = Settings(every, format, folder, seconds)
        self._batch: tuple[Any, int] = (None, 0)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._stop()
        self._run = FollowedRun(
            self._settings, pl_module, trainer.optimizers, getattr(trainer.precision_plugin, "scaler", None),
            folder=trainer.default_root_dir, speaks=trainer.is_global_zero,
        )  # fmt: skip

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._batch = batch, batch_idx

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: torch.Tensor) -> None:
        if self._run is None:
            return
        batch, number = self._batch

        def again() -> Any:
            with trainer.precision_plugin.train_step_context(), _without_logs(pl_module):
                output = pl_module.training_step(batch, number)
            return output["loss"] if isinstance(output, dict) else output

        manual = not pl_module.automatic_optimization  # its training_step makes whole steps
        self._run.see_batch(Batch(batch, loss.detach(), None if manual else again))

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        if self._run is not None:
            self._run.before_update(trainer.global_step + 1)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        metrics = {} if self._run is None else self._run.take_metrics()
        if metrics:
            for logger in trainer.loggers:
                logger.log_metrics(metrics, step=trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._stop()


@contextmanager
def _without_logs(module: Any) -> Iterator[None]:
    """A step that is computed once more logs nothing: its numbers would count into the means."""
    names = ("log", "log_dict")
    for name in names:
        setattr(module, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name in names:
            delattr(module, name)

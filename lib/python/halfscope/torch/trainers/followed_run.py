"""A training that a trainer's callback follows: its watch, its metrics, and the first batch that is not finite."""

from __future__ import annotations

import heapq
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from halfscope.reporting import Report
from halfscope.torch.check.check import check
from halfscope.torch.device.finiteness import are_finite
from halfscope.torch.doctor.progress import check_seconds
from halfscope.torch.watch.watch import Watch, watch

BATCH_FILE = "halfscope-batch.pt"
_PREFIX = "halfscope/"
_TELLING = 4  # clipped gradients that are looked at: a small one may be zero in a healthy step


@dataclass(frozen=True)
class Settings:
    """Arguments that the callbacks of all trainers have."""

    every: int
    format: str
    folder: str | os.PathLike[str] | None
    seconds: float

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"trainers: every={self.every}; give 1 or more steps")
        check_seconds(self.seconds, "trainers")


@dataclass(frozen=True)
class Batch:
    """A batch of the step under way. loss: computes the loss once more; None where the callback cannot."""

    content: Any
    loss_value: Any
    loss: Callable[[], Any] | None

    def is_finite(self) -> bool:
        """Whether its loss is, or is not known."""
        return are_finite(self.losses())

    def losses(self) -> list[torch.Tensor]:
        """Its loss, where it is known."""
        return [] if self.loss_value is None else [torch.as_tensor(self.loss_value)]


class _Scalars:
    """The part of a SummaryWriter that `watch` needs; keeps the numbers of a watched step until they are taken."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}

    def add_scalar(self, name: str, value: float, _step: int) -> None:
        self.metrics[_PREFIX + name] = value

    def add_histogram_raw(self, *_: object, **__: object) -> None:
        """Trainers' loggers have no histograms in common."""

    def flush(self) -> None:
        """Nothing waits."""


class FollowedRun:
    """One training, from its first step to its end or to the error that ends it.

    checked: the report of `check` on the first batch that was not finite; None without one.
    """

    def __init__(
        self, settings: Settings, model: torch.nn.Module, optimizers: Any, scaler: Any, *, folder: Any, speaks: bool
    ) -> None:
        """folder: for the batch, where the settings name none. speaks: whether this process prints and saves."""
        self._settings, self._folder, self._speaks = settings, Path(settings.folder or folder), speaks
        self._model, self._optimizers, self._scaler = model, optimizers, scaler
        self._scalars = _Scalars()
        self._batch: Batch | None = None
        self._is_open = True
        self.checked: Report | None = None
        self.watched: Watch = watch(
            model, settings.every, optimizer=optimizers, scaler=scaler, format=settings.format,
            tensorboard=self._scalars,
        )  # fmt: skip

    def take_metrics(self) -> dict[str, float]:
        """Numbers of the watched step that ended last, once."""
        metrics, self._scalars.metrics = self._scalars.metrics, {}
        return metrics

    def see_batch(self, batch: Batch) -> None:
        """A step of several batches keeps the first whose loss is not finite, else the last; a check's are none."""
        if self._is_open and (self._batch is None or self._batch.is_finite()):
            self._batch = batch

    def before_update(self, step: int, is_clipped: bool = False) -> None:
        """Looks at the loss and at gradients; the first step that is not finite is checked, and its batch saved.

        is_clipped: by their norm, which leaves none but zeros and NaN where it is not finite.
        Where there is a gradient scaler it skips steps whose gradients alone are infinite.
        """
        batch, self._batch = self._batch, None
        if not self._is_open or batch is None:
            return
        gradients = _gradients(self._model) if self._scaler is None else []
        if not _is_finite(batch.losses(), gradients, is_clipped):
            self._close()  # the check's own steps would count
            self._examine(batch, step)

    def end(self) -> None:
        """Prints what the watch has to say; a second time it does nothing."""
        if self._is_open:
            self._close()
            self._say(str(self.watched.report))

    def _close(self) -> None:
        self._is_open = False
        self.watched.close()

    def _examine(self, batch: Batch, step: int) -> None:
        self._say(f"step {step} is not finite; {self._save(batch, step)}")
        if batch.loss is None:
            self._say("its loss cannot be computed again here: print(check(model, loss, optimizer)) on that batch")
            return
        settings = self._settings
        try:
            self.checked = check(self._model, batch.loss, self._optimizers, settings.format, seconds=settings.seconds)
        except Exception as error:  # the training goes on as it would have
            self._say(f"check ended with {type(error).__name__}: {error}")
        else:
            self._say(str(self.checked))

    def _save(self, batch: Batch, step: int) -> str:
        path = self._folder / BATCH_FILE
        try:
            if self._speaks:
                self._folder.mkdir(parents=True, exist_ok=True)
                torch.save({"step": step, "batch": batch.content}, path)
        except Exception as error:
            return f"its batch was not saved to {path}: {error}"
        return f"its batch is in {path}"

    def _say(self, text: str) -> None:
        if self._speaks:
            print(f"halfscope: {text}", file=sys.stderr, flush=True)


class RunFollower:
    """The part of a callback that all trainers have."""

    _run: FollowedRun | None = None

    @property
    def report(self) -> Report:
        """The check of the first batch that was not finite; without one the report of the watch."""
        if self._run is None:
            raise RuntimeError(f"{type(self).__name__}: no training has begun")
        return self._run.checked or self._run.watched.report

    def _stop(self) -> None:
        if self._run is not None:
            self._run.end()


def _gradients(model: torch.nn.Module) -> list[torch.Tensor]:
    """Gradients with elements, but shards and sparse ones."""
    gradients = (weight.grad for weight in model.parameters())
    return [gradient for gradient in gradients if gradient is not None and _is_plain(gradient)]


def _is_finite(losses: list[torch.Tensor], gradients: list[torch.Tensor], is_clipped: bool) -> bool:
    """Whether losses and gradients are. One clipped gradient that is finite and not zero tells that all are."""
    if is_clipped and gradients:
        smallest = heapq.nsmallest(_TELLING, gradients, key=torch.Tensor.numel)
        parts = [gradient.detach().abs() for gradient in smallest] + [loss.detach() for loss in losses]
        sums = [part.sum(dtype=torch.float32).to(gradients[0].device) for part in parts]
        numbers = torch.stack(sums).tolist()
        if all(map(math.isfinite, numbers)) and any(numbers[: len(smallest)]):
            return True
    return are_finite([*losses, *gradients])


def _is_plain(gradient: torch.Tensor) -> bool:
    return type(gradient) is torch.Tensor and gradient.layout is torch.strided and gradient.numel() > 0

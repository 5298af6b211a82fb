"""Callback for the Trainer of transformers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.trainers.followed_run import Batch, FollowedRun, RunFollower, Settings

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("HalfscopeCallback needs transformers: pip install transformers accelerate") from error


class HalfscopeCallback(RunFollower, TrainerCallback):
    """Watches a training of transformers' Trainer: `trainer.add_callback(HalfscopeCallback(every=100))`.

    On the first and every `every`-th step it counts what `format` would do to the model's tensors, as
    `halfscope.torch.watch` does, and puts the numbers into the Trainer's logs ("halfscope/..."). The first step whose
    loss is not finite, or whose gradients are not and no scaler skips it, is checked before its update
    (`halfscope.torch.check`), and its batch saved to halfscope-batch.pt: keys "step" and "batch", the model's
    arguments. At the end it prints the report of the watch. The training itself stays as it is, bit for bit.

    folder: for the batch; the Trainer's output_dir by default. seconds: of the check.
    trainer: the Trainer, whose loggers (W&B, MLflow, TensorBoard) then get the numbers of each watched step; otherwise
        they stand in `log_history` beside its next entry. Needed too where the loss is not the model's own, as with
        label smoothing.

    Raises ValueError where `every` is not positive, or `seconds` negative.
    """

    def __init__(
        self,
        every: int = 100,
        *,
        format: str = "fp16",
        folder: str | os.PathLike[str] | None = None,
        seconds: float = 60.0,
        trainer: Any = None,
    ) -> None:
        self._settings, self._trainer = Settings(every, format, folder, seconds), trainer
        self._hook: Any = None
        self._pending: dict[str, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """A training that an error ended, without an end of its own, ends here."""
        self._stop()
        model, optimizer = parts["model"], parts["optimizer"]
        self._run = FollowedRun(
            self._settings, model, optimizer, getattr(optimizer, "scaler", None),
            folder=args.output_dir, speaks=state.is_world_process_zero,
        )  # fmt: skip
        self._hook = model.register_forward_hook(self._after_forward, with_kwargs=True)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        if self._run is not None:
            self._run.before_update(state.global_step + 1, is_clipped=(args.max_grad_norm or 0) > 0)

    def on_step_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        if self._run is None:
            return
        self._pending.update(self._run.take_metrics())
        if self._trainer is not None and self._pending:
            metrics, self._pending = self._pending, {}
            self._trainer.log(metrics)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **parts: Any) -> None:
        if self._trainer is None and self._pending and state.log_history:
            state.log_history[-1].update(self._pending)
            self._pending = {}

    def on_train_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._hook is not None:
            self._hook.remove()
        super()._stop()

    def _after_forward(self, model: torch.nn.Module, args: tuple, arguments: dict[str, Any], output: Any) -> None:
        if self._run is not None and torch.is_grad_enabled() and model.training:
            batch, loss = arguments if not args else (args, arguments), _loss_in(output)
            value = loss.detach() if isinstance(loss, torch.Tensor) else loss  # without its graph
            self._run.see_batch(Batch(batch, value, self._loss_of(model, args, arguments, loss is not None)))

    def _loss_of(
        self, model: torch.nn.Module, args: tuple, arguments: dict[str, Any], is_own: bool
    ) -> Callable[[], Any] | None:
        if self._trainer is not None and not args:
            return lambda: self._trainer.compute_loss(model, dict(arguments))
        return (lambda: _loss_in(model(*args, **arguments))) if is_own else None


def _loss_in(output: Any) -> Any:
    return output.get("loss") if hasattr(output, "get") else getattr(output, "loss", None)

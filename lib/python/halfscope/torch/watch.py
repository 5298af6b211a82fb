"""Watches a PyTorch model while it trains: exact histograms of what its tensors hold, and which updates FP16 loses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

from halfscope import Histogram, ScaleAdvice
from halfscope._core import set_thread_count
from halfscope.torch.fused_optimizer import scale_left, will_skip
from halfscope.torch.observations import Observations
from halfscope.torch.run_folder import RunFolder
from halfscope.torch.tensorboard import Board
from halfscope.torch.tensors import Choice, floating
from halfscope.torch.verdict import ROLES, Totals
from halfscope.torch.weights import Weights
from halfscope.torch.wrapping import wrap_method


def watch(
    model: torch.nn.Module,
    every: int = 10,
    include: str | Iterable[str] = "*",
    exclude: str | Iterable[str] = (),
    *,
    optimizer: torch.optim.Optimizer,
    scaler: Any = None,
    out: Path | str | None = None,
    tensorboard: Path | str | object | None = None,
) -> Watch:
    """Watches `model` from now on: on the first and every `every`-th step, what FP16 would do to its tensors.

    Counted are the outputs of all layers without layers in them, the gradients of these outputs (which carry the loss
    scale), the gradients of the weights (without it) and the updates that `optimizer` makes. Nothing is changed.

    include, exclude: patterns, as in a shell, of the layers' and parameters' names: "encoder.*".
    scaler: the GradScaler, where there is one; a step then ends with its `update()`, else with `optimizer.step()`.
    out: a folder that gets the records of the run, for `tools/figures` and `halfscope.results.read_experiment`.
    tensorboard: a folder, or a SummaryWriter, that gets histograms of log2 |x| of every tensor watched.

    Raises ValueError where `every` is not positive or the patterns leave nothing to watch, ImportError where
    `tensorboard` is a folder and TensorBoard is not installed.
    """
    sinks = Sinks(RunFolder(Path(out)) if out else None, None if tensorboard is None else Board(tensorboard))
    return Watch(model, every, Choice(include, exclude), optimizer, scaler, sinks)


class Sinks(NamedTuple):
    """Where watched steps are written to."""

    folder: RunFolder | None
    board: Board | None


class Watch:
    """Result of `watch`; a context manager that closes itself."""

    def __init__(
        self,
        model: torch.nn.Module,
        every: int,
        choice: Choice,
        optimizer: torch.optim.Optimizer,
        scaler: Any,
        sinks: Sinks,
    ) -> None:
        if every < 1:
            raise ValueError(f"watch: every={every}; give 1 or more steps")
        self._every, self._optimizer, self._scaler = every, optimizer, scaler
        self._folder, self._board = sinks
        self._layers = {
            name: module for name, module in model.named_modules() if name in choice and not any(module.children())
        }
        self._parameters = {
            name: parameter
            for name, parameter in model.named_parameters()
            if name in choice and parameter.is_floating_point()
        }
        if not self._layers and not self._parameters:
            raise ValueError("watch: no layer and no parameter has a name that include and exclude leave")
        self._weights = Weights(self._parameters)
        self._done = 0
        self._seen: Observations | None = None
        self._loss: float | None = None  # of the step under way, as is the scale
        self._known_scale: float | None = None
        self._totals = Totals()
        self._trace: list[str] = []  # as text, which takes a tenth of the memory
        self._layer_hooks: list[RemovableHandle] = []
        self._hooks = [wrap_method(optimizer, "step", self._step)]
        if scaler is not None:
            self._hooks.append(wrap_method(scaler, "update", self._update_scale))
        self._begin_step()
        if self._folder:
            self._folder.begin({"every": every, "loss_scale": "none" if scaler is None else "dynamic"})

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._done

    def log(self, loss: float | torch.Tensor) -> None:
        """Notes the loss of the step that is under way, for the records' curve; without the loss scale."""
        self._loss = float(loss)

    def report(self) -> None:
        """Prints in words what was seen, and which loss scales are usable."""
        print(self.verdict())

    def verdict(self) -> str:
        """The text that `report` prints."""
        return self._totals.verdict()

    def histograms(self, role: str = "weight_gradient") -> dict[str, Histogram]:
        """By tensor, all watched steps together, without the loss scale.

        role: "activation", "activation_gradient", "weight_gradient", or "update_ratio" for |update / weight|. Raises
        ValueError for another one.
        """
        if role not in ROLES:
            raise ValueError(f"histograms: role {role!r}; give one of {', '.join(ROLES)}")
        return self._totals.histograms(role)

    def histogram(self, role: str = "weight_gradient") -> Histogram:
        """The same of all tensors together."""
        together = Histogram()
        for found in self.histograms(role).values():
            together.merge(found)
        return together

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients of all layers and weights; options as it has them."""
        return self._totals.advise_scale(**options)

    def trace(self) -> list[dict]:
        """The watched steps, for `halfscope.replay`: what other loss scalers would have done."""
        return list(map(json.loads, self._trace))

    def close(self) -> None:
        """Takes the hooks away and finishes the records; a second time it does nothing."""
        if not self._hooks:
            return
        for remove in self._hooks:
            remove()
        self._hooks = []
        self._unhook_layers()
        if self._folder:
            self._folder.finish(self._done, self.verdict())
        if self._board:
            self._board.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _observes(self) -> bool:
        """Whether the step that begins now is watched."""
        return self._done == 0 or (self._done + 1) % self._every == 0

    def _begin_step(self) -> None:
        self._seen = Observations() if self._observes() else None
        self._stepped = self._gradients_counted = False
        self._loss = self._known_scale = None
        if self._seen is None:
            self._unhook_layers()
            return
        set_thread_count(torch.get_num_threads())
        if not self._layer_hooks:
            self._layer_hooks = [
                layer.register_forward_hook(partial(self._after_forward, name)) for name, layer in self._layers.items()
            ]

    def _unhook_layers(self) -> None:
        """A hook costs a layer its short way to `forward`: no layer has one in a step that is not watched."""
        for hook in self._layer_hooks:
            hook.remove()
        self._layer_hooks = []

    def _scale(self) -> float:
        """Of this step."""
        if self._known_scale is None:
            self._known_scale = 1.0 if self._scaler is None else float(self._scaler.get_scale())
        return self._known_scale

    def _after_forward(self, name: str, _module: object, _inputs: object, output: object) -> None:
        if self._seen is None or not torch.is_grad_enabled():
            return
        for tensor in floating(output):
            self._seen.count("activation", name, tensor)
            if tensor.requires_grad:
                tensor.register_hook(partial(self._after_backward, self._seen, name, self._scale()))

    def _after_backward(self, seen: Observations, name: str, scale: float, gradient: torch.Tensor) -> None:
        seen.count("activation_gradient", name, gradient, scale)

    def _step(self, step: Callable, *arguments: Any, **options: Any) -> Any:
        """The optimizer's step, with a look at gradients and weights before it, and at the weights after it."""
        if not self._hooks:
            return step(*arguments, **options)
        skips = self._records() and will_skip(self._optimizer)
        if self._seen is not None:
            self._count_weight_gradients(self._seen, scale_left(self._optimizer))
            self._weights.keep()
        result = step(*arguments, **options)
        self._stepped = not skips
        if self._seen is not None and not skips:
            self._weights.count_updates(self._seen)
        if self._scaler is None:
            self._end_step(1.0)
        return result

    def _count_weight_gradients(self, seen: Observations, scale: float) -> None:
        if self._gradients_counted:
            return
        self._gradients_counted = True
        gradients = {name: parameter.grad for name, parameter in self._parameters.items() if parameter.grad is not None}
        seen.count_all("weight_gradient", gradients, scale)

    def _update_scale(self, update: Callable, *arguments: Any, **options: Any) -> Any:
        """The scaler's update, which ends the step: it was skipped where the optimizer did not step."""
        if not self._hooks:
            return update(*arguments, **options)
        if self._seen is not None:
            self._count_weight_gradients(self._seen, 1.0)
        scale = self._scale() if self._records() else 1.0  # asking waits for a GPU
        result = update(*arguments, **options)
        self._end_step(scale)
        return result

    def _end_step(self, scale: float) -> None:
        self._done += 1
        if self._records():
            self._record_step(scale)
        self._begin_step()

    def _records(self) -> bool:
        return self._folder is not None or self._seen is not None

    def _record_step(self, scale: float) -> None:
        rates = [group["lr"] for group in self._optimizer.param_groups]
        record: dict[str, Any] = {
            "step": self._done, "loss": self._loss, "metric": None, "scale": scale, "skipped": not self._stepped,
            "learning_rate": float(rates[0]),
        }  # fmt: skip
        if self._seen is not None:
            self._seen.finish()
            record["gradients"] = self._seen.gradient_record(scale)
            self._totals.add(self._seen)
            self._trace.append(json.dumps({key: record[key] for key in ("step", "scale", "gradients")}))
            if self._board:
                self._board.add(self._done, scale, self._seen)
        if self._folder:
            self._folder.add(record, self._seen)

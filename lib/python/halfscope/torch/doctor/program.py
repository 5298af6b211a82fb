"""The step that is examined, as its script has it: run again and again, each time from the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch

from halfscope.formats import Format
from halfscope.torch.doctor.autocast_calls import NARROW_TYPES, AutocastBlocks
from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.call_mode import CallMode
from halfscope.torch.doctor.calls import Call, CallPlan, Kept
from halfscope.torch.doctor.chosen_modules import ChosenModules
from halfscope.torch.doctor.first_not_finite import FirstNotFinite
from halfscope.torch.doctor.kept_state import Copies, kept_state
from halfscope.torch.doctor.nested_tensors import tensors_in
from halfscope.torch.doctor.outcomes import Ending, Outcome, loss_in, outcome_of
from halfscope.torch.doctor.rounding_mode import Rounder, RoundingMode
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.doctor.watched_modules import watched_modules, watched_updates
from halfscope.torch.private import checkpoints_called_directly, storage_key, without_function_modes, without_modes
from halfscope.torch.tensors.storages import covers_storage

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
_LARGEST_INTEGER = 16  # a larger one in the inputs is a position or a class, and stays


class OtherState(Protocol):
    """Weights of other sizes, with which FP32's outputs are the same."""

    def applied(self) -> AbstractContextManager[None]:
        """The weights are brought back by another one."""

    def undo(self, outcome: Outcome) -> None:
        """Has an outcome tell of the weights as they were."""


@dataclass(frozen=True)
class Trial:
    """One run: in FP32 or in the format, and its changes."""

    is_exact: bool = False
    noise: float = 0.0  # relative, of each result
    seed: int = 0
    calls: CallPlan = field(default_factory=CallPlan)
    lifts_inputs: bool = False  # inputs are taken before their cast
    lifts_weights: bool = False  # weights too, at each use
    keeps_state: bool = False  # weights and state stay in FP32 in their update
    scale: float | None = None  # another loss scale
    shrinks: int = 0  # seed of inputs that are up to 2 % smaller
    moved: OtherState | None = None
    keeps: Kept | None = None  # calls are noted, and these keep operands and results; None: none is noted


@dataclass
class Run:
    """A run: what came out of it, and what its modes noted."""

    outcome: Outcome
    log: CallLog
    blocks: AutocastBlocks
    narrow_types: set[torch.dtype]  # that the script asked for itself


@dataclass
class Program:
    """A model, a closure and its optimizers."""

    model: torch.nn.Module
    step: Callable[[], Any]
    optimizers: list[torch.optim.Optimizer]
    format: Format
    scale: float = 1.0
    under_autocast: bool = False  # the whole step, though its script has no block of torch.autocast
    is_plain: bool = True  # as after model.half(); else what the script asks for alone has 16 bits
    only: ChosenModules | None = None  # to whose calls the search for a cause is narrowed
    runs: int = 0
    refusal: str = ""  # a script's error at the type of the format; from then on its tensors say float32
    copies: Copies = field(default_factory=Copies)  # the state before each run
    _names: dict[int, str] = field(default_factory=dict)  # names by storage of tensors that are not the model's
    # By storage: what the step in FP32 writes to that is neither the model's nor an optimizer's.
    written_outside: dict[int, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = {id(module): name for name, module in self.model.named_modules()}
        self._weights = dict(self.model.named_parameters())
        self._buffers = dict(self.model.named_buffers())

    def run(
        self, trial: Trial, see: FirstNotFinite | None = None, after_call: Callable[[Call], None] | None = None
    ) -> Run:
        """see: called after each operation below autograd, with its name, arguments and result."""
        self.runs += 1
        with kept_state(self.model, self._tensors(), self.optimizers, self.copies):
            self._widen_state()
            with nullcontext() if trial.moved is None else trial.moved.applied():
                run = self._run(trial, see, after_call)
        if trial.moved is not None:
            trial.moved.undo(run.outcome)
        return run

    def _run(self, trial: Trial, see: FirstNotFinite | None, after_call: Callable[[Call], None] | None) -> Run:
        is_rounded = not trial.is_exact
        rounder = Rounder(self.format.name if is_rounded else None, trial.noise, trial.seed)
        default = Numbers.NARROW if self.is_plain else Numbers.WIDE
        chosen = frozenset() if self.only is None else self.only.ids
        log = CallLog(self._state_keys(), self.names, trial.calls.asked, trial.keeps, chosen)
        adopt = partial(self._adopt, trial=trial, log=log)
        mode = RoundingMode(rounder, default, adopt, self._restored_keys())
        mode.see = see
        if see is not None:
            see.log = log
        blocks = AutocastBlocks(self.under_autocast)
        calls = CallMode(trial.calls, mode, blocks, log)
        calls.after_call = after_call
        calls.is_plain, calls.answers, calls.keeps_state = self.is_plain, self._answer(trial), trial.keeps_state
        before = {**self._weights, **self._buffers}
        start = {name: tensor.detach() for name, tensor in before.items()}
        self._names.update({storage_key(tensor): name for name, tensor in self._optimizer_state()})
        outputs: list[torch.Tensor] = []
        try:
            with ExitStack() as stack:
                stack.enter_context(blocks.intercepted())
                stack.enter_context(checkpoints_called_directly())
                stack.enter_context(watched_modules(log, self.model, outputs))
                stack.enter_context(watched_updates(log, self.optimizers))
                stack.enter_context(mode)
                stack.enter_context(calls)
                result = self.step()
                loss = self._finish(result, trial)
            ended = Ending(loss, result, outputs, start, 1 / self._scale(trial), self._names)
            outer = {log.origin(key): kept for key, kept in mode.outer.items()}
            outcome = outcome_of(ended, self.model, outer)
            outcome.choices = log.decisions
            if trial == Trial(is_exact=True):
                self._note_written(mode, log)
            return Run(outcome, log, blocks, calls.narrow_types | blocks.types)
        finally:
            mode.end()
            log.end()

    def _note_written(self, mode: RoundingMode, log: CallLog) -> None:
        own = self._own_keys()
        self.written_outside = {
            log.origin(key): log.origins.get(key, kept.flat)
            for key, kept in mode.outer.items()
            if kept.is_written and key not in own
        }

    def _scale(self, trial: Trial) -> float:
        return self.scale if trial.scale is None else trial.scale

    def _finish(self, result: Any, trial: Trial) -> torch.Tensor | None:
        """The backward pass, where the step has made none itself."""
        loss = loss_in(result)
        if loss is not None and loss.requires_grad and all(weight.grad is None for weight in self._weights.values()):
            total = loss if loss.dim() == 0 else loss.sum()
            with without_function_modes():  # the scale is no call of the script's; a gradient scaler's product is FP32
                gradient = torch.full_like(total, self._scale(trial))
            total.backward(gradient)
        return loss

    def _answer(self, trial: Trial) -> torch.dtype | None:
        return None if trial.is_exact or self.refusal else TYPES.get(self.format.name.partition("/")[0], torch.float16)

    def _adopt(self, tensor: torch.Tensor, mode: RoundingMode, trial: Trial, log: CallLog) -> Numbers:
        """Kind of a tensor from outside of the run, which is rounded where it holds numbers of the format."""
        with without_modes():  # the step itself does not write
            return self._adopted(tensor, mode, trial, log)

    def _adopted(self, tensor: torch.Tensor, mode: RoundingMode, trial: Trial, log: CallLog) -> Numbers:
        is_state = log.is_state(tensor)
        if trial.shrinks and not is_state and not tensor.requires_grad:
            mode.shrunk += 1
            _shrink(mode.back_up(tensor).flat, trial.shrinks + mode.shrunk)
        key = storage_key(tensor)
        is_narrow = self.is_plain or key in self._narrow_keys or key in log.origins
        if not is_narrow:
            return Numbers.WIDE
        if is_state and trial.lifts_weights:
            return Numbers.STATE
        if not is_state and trial.lifts_inputs:
            return Numbers.LIFTED
        if not trial.is_exact:
            mode.rounder(mode.back_up(tensor).flat)
        elif trial.noise:
            mode.rounder.add_noise(mode.back_up(tensor).flat, self.format.name)
        return Numbers.NARROW

    def _tensors(self) -> list[torch.Tensor]:
        return [*self._weights.values(), *self._buffers.values()]

    def _state_keys(self) -> frozenset[int]:
        return self._own_keys().union(self.written_outside)

    def _own_keys(self) -> frozenset[int]:
        tensors = self._tensors()
        for optimizer in self.optimizers:
            tensors += tensors_in({str(index): state for index, state in enumerate(optimizer.state.values())})
        return frozenset(storage_key(tensor) for tensor in tensors)

    def _restored_keys(self) -> frozenset[int]:
        """Storages that `kept_state` brings back whole."""
        every = [*self._tensors(), *(tensor for _, tensor in self._optimizer_state())]
        return frozenset(storage_key(tensor) for tensor in every if _is_whole(tensor))

    def _widen_state(self) -> None:
        """A model of 16 bits has float32 tensors while a step runs, in FP32 and in the format."""
        narrow = [tensor for tensor in self._tensors() if tensor.dtype in NARROW_TYPES]
        for tensor in narrow:
            tensor.data = tensor.data.float()
        self._narrow_keys = frozenset(storage_key(tensor) for tensor in narrow)

    @property
    def own_types(self) -> set[torch.dtype]:
        """Types of 16 bits that the model's weights have."""
        return {tensor.dtype for tensor in self._weights.values()} & set(NARROW_TYPES)

    def run_as_it_is(self, types: set[torch.dtype]) -> None:
        """Runs from now on in the format that the script asks for itself, if it asks for one."""
        self.is_plain = False
        self.format = Format.of(next(name for name, type_ in TYPES.items() if type_ in types))

    def state(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Weights, buffers and tensors of the optimizers' states, by name."""
        yield from self._weights.items()
        yield from self._buffers.items()
        yield from self._optimizer_state()

    def _optimizer_state(self) -> Iterator[tuple[str, torch.Tensor]]:
        for optimizer in self.optimizers:
            for weight, state in optimizer.state.items():
                name = next((name for name, each in self._weights.items() if each is weight), "a weight")
                for key, value in state.items() if isinstance(state, dict) else ():
                    for place, tensor in enumerate(tensors_in(value)):
                        number = f" {place}" if place else ""
                        yield f"{key}{number} of {name} in {type(optimizer).__name__}", tensor

    @property
    def has_buffers(self) -> bool:
        return bool(self._buffers)


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether a tensor is all of its storage."""
    return tensor.layout is torch.strided and covers_storage(tensor)


def _shrink(flat: torch.Tensor, seed: int) -> None:
    """Each element up to 2 % smaller, by a factor of its own; positions, class numbers and masks of 0 and 1 stay."""
    if bool(((flat == 0) | (flat == 1)).all()) and bool((flat == 0).any()):
        return
    generator = torch.Generator().manual_seed(seed)
    factor = 1 - 0.02 * torch.rand(flat.shape, generator=generator)
    keeps = (flat == flat.round()) & (flat.abs() > _LARGEST_INTEGER)
    flat.copy_(torch.where(keeps | ~flat.isfinite(), flat, flat * factor.to(flat.device)))

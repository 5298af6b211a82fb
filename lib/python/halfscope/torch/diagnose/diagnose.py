"""`diagnose`: which line a format spoils, why, and what to write instead, found by trying it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from halfscope.old_words import without_old_arguments
from halfscope.torch.counts.ranks import is_fully_sharded
from halfscope.torch.diagnose.facts import with_facts
from halfscope.torch.diagnose.observed import observed
from halfscope.torch.doctor.chosen_modules import chosen_modules
from halfscope.torch.doctor.find_remedy import find_remedy, program_of, searched_format
from halfscope.torch.doctor.needed_memory import refuse_without_memory
from halfscope.torch.doctor.progress import Progress, check_seconds
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.emulate.arithmetic.attention import parse_attention
from halfscope.torch.emulate.emulation import check_model
from halfscope.torch.emulate.training import Trainee
from halfscope.torch.policy import Policy
from halfscope.torch.steps.optimizers import optimizers_of


@without_old_arguments
def diagnose(
    model: torch.nn.Module,
    loss: Callable[[], Any],
    format: str | Mapping[str, str] = "fp16",
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] = (),
    scale: float = 1.0,
    order: str | None = None,
    attention: str = "fused",
    quick: bool = False,
    seconds: float = 60.0,
    only: str | Iterable[str] | None = None,
) -> Diagnosis:
    """Runs a step in FP32 and in a format, and, where they part, again and again with changes, until one heals it.

    A remedy is told if the step with it was FP32's but for round-off, in its loss, results, gradients, changes and
    decisions, if FP32's own step stayed as it was, and if both held again on slightly smaller inputs.

    Weights, buffers, optimizer, gradients and the random numbers of PyTorch, NumPy and Python are left as they were;
    other attributes of modules are not.

    loss: computes the loss of one batch and returns it; or makes a whole step, with backward pass and update,
        and may return the loss. It is run as it is, with its own autocast and casts. The batch must be the same in
        each call. The loss of a mapping or of a model's output is its `loss`, that of a tuple or list the first number
        in it that has a gradient.
    format: "fp16", "bf16" or another format, in which all of the step is computed, as after `model.half()`; "autocast"
        or "autocast_bf16": as within torch.autocast. A closure that asks for 16 bits itself is run as it asks. A policy
        as `emulate` has them, or a format of blocks: emulated once beside FP32, since the search does not compute it.
    optimizer: where `loss` calls its `step`.
    scale: the loss scale at which gradients are computed; at 1, an overflow of a gradient is none of the scaler's, and
        above 1 the smaller scale is told that a gradient scaler falls to.
    order: the order of products, as `emulate` has it: "split_k(2, fp16)"; emulated as a policy is.
    attention: scaled_dot_product_attention as `emulate` has it: "math" rounds the scores; emulated as a policy is.
    quick: three runs of the step: whether it is healthy, and the first call that is not finite.
    seconds: of the search. A run that by the time of earlier ones would end later is not begun; then what is known is
        told, as after Ctrl-C, and what was not tried. FP32's run and the format's are always made.
    only: patterns, as in a shell, of modules' names: "layers.17". The search for a cause looks at the calls of these,
        and of the modules in them, alone: it takes fewer runs, and says what was not tried. The step is judged whole;
        a change of a line that other modules share is tried in all of them, as typing does it.

    Raises what `emulate` does, ValueError for a name in `only` that no module has and for negative seconds,
    MemoryError where the machine has not the memory that any search takes.
    """
    if not callable(loss):
        name = type(loss).__name__
        raise TypeError(f"diagnose: loss is of type {name}; give a function that computes it")
    check_model(model, "diagnose")
    check_seconds(seconds, "diagnose")
    parse_attention(attention)
    trainee = Trainee(model, optimizers_of(optimizer, "diagnose"))
    is_searched = searched_format(format) is not None and order is None and attention == "fused"
    if only is not None and (quick or not is_searched or is_fully_sharded(model)):
        raise ValueError("diagnose: only= narrows a search, and quick=True, a policy and a sharded model have none")
    if not is_searched or is_fully_sharded(model):
        return observed(trainee, loss, Policy(format, order, {}), scale, attention)
    refuse_without_memory("diagnose", model, trainee.optimizers, quick)
    program = program_of(model, loss, str(format), trainee.optimizers, scale)
    program.only = None if only is None else chosen_modules(model, only)
    progress = Progress(seconds)
    report = find_remedy(program, progress, quick)
    if quick or only is not None or report.is_stopped:
        return report
    if not progress.has_time(purpose="what no outcome shows, in an emulated step"):
        return replace(report, untried=progress.untried_words)
    return with_facts(report, program)

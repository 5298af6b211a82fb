"""`gradient_errors`: whether a training sees the formats of a policy, and which products to leave out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from halfscope.torch.counts.ranks import is_fully_sharded
from halfscope.torch.emulate.emulation import check_model
from halfscope.torch.gradient_errors.kept_products import OPTIMIZERS, SEEN, Judge, alone, by_number_of_layers, fewest
from halfscope.torch.gradient_errors.policy_products import PolicyProducts, by_kind
from halfscope.torch.gradient_errors.ranked_errors import Choice, GradientErrors
from halfscope.torch.gradient_errors.step_gradients import Loss, Step, StepErrors
from halfscope.torch.steps.evaluation import batches_of


def gradient_errors(
    model: torch.nn.Module,
    loss: Loss,
    batches: Iterable[Any],
    policy: str | Mapping[str, str] = "nvfp4",
    *,
    exceptions: Mapping[str, Any] | None = None,
    optimizer: str = "adam",
    limit: float = SEEN,
    seed: int = 0,
) -> GradientErrors:
    """Errors that a policy's formats of operands make in a step's gradients, over what batches differ by.

    An error is the sum of squares of the difference between the gradients with the operands rounded and FP32's, over
    all trained weights; the noise is the variance of FP32's gradients from batch to batch. Both are of one step from
    the weights as they are, computed by `emulate`: for all products, for the forward, data-gradient and
    weight-gradient products, and for each product of each layer alone. If all products together exceed the limit,
    the fewest of the ranking are sought whose leaving out brings the error within it.

    loss: the scalar loss of a batch, as the training has it: `lambda model, batch: ...`.
    batches: two or more, of the training's size; eight give intervals.
    policy, exceptions: as `emulate` has them; one with formats of operands.
    optimizer: "adam", for those that divide by the gradient's size: the part of an error that multiplies a weight's
        gradient by one number in all batches is taken away. "sgd": the whole error counts.
    limit: error over noise, below which no effect on a training is expected. Layers are looked at above it alone.
    seed: of stochastic rounding, and of the intervals.

    A forward and a backward pass of each batch for each of these errors. The model is called in the mode that it is in;
    gradients, buffers and random numbers are as before afterwards.

    Raises ValueError for a policy without formats of operands, fewer than two batches, and gradients that are not
    finite in FP32 or do not differ; TypeError for what `emulate` refuses and for models that fully_shard has sharded.
    """
    check_model(model, "gradient_errors")
    if is_fully_sharded(model):
        raise TypeError("gradient_errors: the model is sharded by fully_shard; give it before that, on one process")
    given, judge = _batches(batches), _judge(optimizer, limit)
    products, step = PolicyProducts(model, policy, exceptions or {}), Step(model, loss, given)
    names = products.names(lambda emulation: step.gradients(given[0], emulation))
    errors = StepErrors(step, products, seed)
    kinds = by_kind(names)
    without = [[name for name in names if name not in own] for own in kinds.values()]
    whole, *each = errors.leaving([[], *without])
    is_seen = judge.seen(whole) > judge.limit
    choice = _choice(errors, names, judge) if is_seen else Choice((), whole, errors.typed([]), {}, ())
    return GradientErrors(products, judge, whole, dict(zip(kinds, each)), choice, len(given))


def _choice(errors: StepErrors, names: list[str], judge: Judge) -> Choice:
    units = alone(errors, names)
    left = fewest(errors, sorted(names, key=lambda name: -judge.seen(units[name])), judge)
    (within,) = errors.leaving([left])
    return Choice(tuple(left), within, errors.typed(left), units, by_number_of_layers(errors, units, judge))


def _batches(batches: Iterable[Any]) -> tuple[Any, ...]:
    found = batches_of(batches, "gradient_errors: batches", "eight or more")
    if len(found) < 2:
        raise ValueError("gradient_errors: one batch has no noise; give eight or more, as the training draws them")
    return found


def _judge(optimizer: str, limit: float) -> Judge:
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"gradient_errors: optimizer={optimizer!r}; give one of {', '.join(map(repr, OPTIMIZERS))}")
    if not (isinstance(limit, (int, float)) and 0 <= limit < float("inf")):
        raise ValueError(f"gradient_errors: limit={limit!r}; give a number from 0 on")
    return Judge(optimizer, float(limit))

"""`sensitivity`: predicted cost of formats in each layer of a model, and the choice of a mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from halfscope.torch.emulate.emulation import check_model
from halfscope.torch.sensitivity.calibration import ENOUGH, Calibration
from halfscope.torch.sensitivity.gradient_pass import find_units
from halfscope.torch.sensitivity.loss_families import family_of
from halfscope.torch.sensitivity.measurement import Subject, drawn_scores
from halfscope.torch.sensitivity.operand_images import RIGHT, SIDES, operand_formats
from halfscope.torch.sensitivity.ranked_units import Sensitivity
from halfscope.torch.sensitivity.static_scales import keep_maxima
from halfscope.torch.sensitivity.units import all_groups, checked_groups
from halfscope.torch.steps.evaluation import batches_of

FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3", "bf16")


def sensitivity(
    model: torch.nn.Module,
    batches: Iterable[Any],
    formats: Iterable[str] = FORMATS,
    loss: Any = None,
    *,
    call: Callable[[torch.nn.Module, Any], torch.Tensor] | None = None,
    groups: Iterable[Iterable[str]] | None = None,
    mask: Callable[[Any], torch.Tensor] | None = None,
    weights_only: bool = False,
    kv_cache: bool = False,
    seed: int = 0,
) -> Sensitivity:
    """Predicts, for each layer and format, how far the layer's rounded operands take the model from FP32, in nats.

    A unit is a module whose products have a weight: linear layers, convolutions, recurrent layers, attention with
    weights of its own; of an embedding the weight alone has the format. Both operands of the forward product are
    rounded as `emulate` rounds them, and multiplied in FP32; all else stays FP32. With g the gradient of the loss by a
    unit's result, labels being drawn from the model's own output, and dY the result's error, a score is the sum of
    squares of <g, dY> over twice the terms of the loss: over sequences from 100 on, else over tokens.

    batches: four or more, of data that the model is to run on; a tensor, a tuple of arguments, or a mapping of
        arguments by name, without labels. The first axis of the output counts the sequences.
    formats: names as `emulate(exceptions=)` has operands in: "nvfp4", "mxfp8_e4m3", "bf16", "fp8_e4m3+current". Scales
        are each tensor's own; "fp8_e4m3+static" and "nvfp4+static" have one for a unit's input in all batches, made
        of its largest number in these.
    loss: "softmax" over the last axis (None), "gaussian" for squared errors, "bernoulli" for binary labels; or
        PyTorch's cross_entropy, whose classes lie along axis 1, mse_loss, binary_cross_entropy_with_logits.
    call: output of the model for a batch, where that is not model(batch) or its `logits`.
    groups: units that share a format, in place of those found: linear layers of one module with the same input, such
        as q, k and v. [] for none.
    mask: for a batch, which terms of the loss count; of the output's shape without the axis of classes.
    weights_only: rounds the weights alone.
    kv_cache: the keys and values that each scaled_dot_product_attention takes are a unit too, "layers.0:kv_cache":
        scored, in blocks along the width of a head, and not in the budget of `choose`.
    seed: of the drawn labels and of the intervals.

    One forward and one backward pass for each batch in evaluation mode, without gradients of weights; one more of the
    first, and a forward pass of each for static scales. The model, its gradients and all random numbers are as before
    afterwards.

    Raises ValueError for an unknown format, a loss whose labels cannot be drawn, no batch and numbers that are not
    finite in FP32; TypeError for batches and outputs of other types, and for models that `emulate` refuses.
    """
    check_model(model, "sensitivity")
    if torch.is_inference_mode_enabled():
        raise RuntimeError("sensitivity: inference mode keeps no gradients; call it outside of torch.inference_mode()")
    given = operand_formats(formats, (RIGHT,) if weights_only else SIDES)
    if kv_cache and any(format.is_static for format in given.values()):
        raise ValueError("sensitivity: kv_cache=True has the scale of each tensor; leave out formats with +static")
    every = batches_of(batches, "sensitivity: batches", ENOUGH)
    calibration = Calibration(model, every, family_of(loss), call, mask, kv_cache)
    units = find_units(calibration)
    keep_maxima(calibration, units, given.values())
    scored = [name for name in units.by_name if name not in units.without_gradient]
    chosen = units.found_groups() if groups is None else checked_groups(groups, scored)
    subject = Subject(calibration, units, all_groups(chosen, scored), given, seed)
    return Sensitivity(subject, drawn_scores(subject))

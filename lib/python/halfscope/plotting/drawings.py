"""The figures of an experiment for which there are records, as SVG, for reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from matplotlib.figure import Figure

from halfscope import plotting
from halfscope.plotting.gradients import NAMES
from halfscope.plotting.style import MANY, add_note
from halfscope.plotting.svg import svg_of
from halfscope.results import Experiment
from halfscope.results.loss_scales import GRADIENTS, baseline, compares_scales, shown_scale
from halfscope.results.loss_weights import weight_note


class Drawing(NamedTuple):
    """One figure of an experiment, as SVG."""

    name: str
    description: str  # for those who cannot see it
    svg: bytes


def draw(experiment: Experiment) -> list[Drawing]:
    """The figures for which there are records; of very many trainings at loss scales only what they say together."""
    evidence = plotting.harm_by_predictor(experiment)
    if evidence:
        windows = plotting.usable_windows(experiment)
        words = "Loss scales that do no harm, by task, and the advisor's"
        return [
            *([_drawing("usable_windows", words, windows)] if windows else []),
            _drawing("harm_by_predictor", "Harm of each training against predictors of it", evidence),
        ]
    if not any(experiment.runs.values()):
        return []
    candidates = (
        *_arm_figures(experiment),
        *_map_figures(experiment),
        *_later_figures(experiment),
        *_gradient_figures(experiment),
        *_scale_figures(experiment),
        *_operand_figures(experiment),
    )
    note = weight_note(experiment)
    drawn = [(name, description, figure) for name, description, figure in candidates if figure]
    for _, _, figure in drawn:
        if note:
            add_note(figure, note)
    return [_drawing(name, description, figure) for name, description, figure in drawn]


def _arm_figures(experiment: Experiment) -> Iterator[tuple[str, str, Figure | None]]:
    """The arms beside each other; of very many arms only the curves, whose colours are the order of the arms."""
    few = len(experiment.arms) <= MANY
    arms = [arm for arm, runs in experiment.runs.items() if runs]
    if few:
        yield "scoreboard", f"{experiment.metric_label} of every arm", plotting.scoreboard(experiment)
    yield "samples", "Images that the generators of the arms have made", plotting.sample_sheets(experiment)
    yield "loss_curves", "Training loss of every arm over steps", plotting.loss_curves(experiment)
    yield "metric_curves", f"{experiment.metric_label} of every arm over steps", plotting.metric_curves(experiment)
    if few:
        yield "moving_scales", "Loss scales that move while training, over steps", plotting.moving_scales(experiment)
    yield "mean_errors", "Errors of means over ranks, and stagnated adds", plotting.mean_errors(experiment)
    words = "Training loss over steps on the most ranks, by all-reduce"
    yield "losses_on_ranks", words, plotting.losses_on_ranks(experiment)
    words = "Training loss at the end by the number of ranks and all-reduce"
    yield "losses_by_ranks", words, plotting.losses_by_ranks(experiment)
    words = "Loss of FP16 against FP32, and flushed share, by the weight of the loss"
    yield "loss_weight_curve", words, plotting.loss_weight_curve(experiment)
    if compares_scales(experiment):
        words = f"{experiment.metric_label} and lost gradients by loss scale"
        yield "scale_curve", words, plotting.scale_curve(experiment)
    # Where the loss scale is the question, updates are no part of the answer while all arms have a master copy.
    if few and (not compares_scales(experiment) or _lacks_master_copy(experiment)):
        if any(not run.counters("updates").empty for arm in arms for run in experiment.runs[arm]):
            yield "lost_updates", "Share of updates lost over steps", plotting.lost_updates(experiment)
        if any(experiment.histogram(arm, "update_ratio").elements for arm in arms):
            figure = plotting.update_ratio_histogram(experiment)
            yield "update_ratios", "Histogram of update sizes beside their weights", figure


def _map_figures(experiment: Experiment) -> Iterator[tuple[str, str, Figure | None]]:
    """Figures of where the techniques' effects begin."""
    words = "Harm of weights of 16 bits by learning rate, network and optimizer"
    yield "where_master_copy", words, plotting.where_master_copy(experiment)
    words = "Harm of missing loss scaling by the positions that a loss averages over"
    yield "where_loss_scaling", words, plotting.where_loss_scaling(experiment)
    words = "Errors of sums by length beside their closed form, and harm of training with them"
    yield "where_fp32_sums", words, plotting.where_fp32_sums(experiment)


def _later_figures(experiment: Experiment) -> Iterator[tuple[str, str, Figure | None]]:
    """Figures of the experiments after 2018."""
    yield "mean_squares", "Adam's mean square over steps, by its format", plotting.mean_squares(experiment)
    yield "fp4_costs", "Arms by their cost, beside published numbers", plotting.fp4_costs(experiment)
    words = "Zeros of weight gradients over steps, by the quantizer that makes them"
    yield "causes_of_zeros", words, plotting.causes_of_zeros(experiment)
    yield "sum_errors", "Errors of FP8 sums by their number of terms", plotting.sum_errors(experiment)


def _lacks_master_copy(experiment: Experiment) -> bool:
    """Whether an arm updates weights in another format than FP32."""
    formats = (runs[0].config.get("master_weight", "fp32") for runs in experiment.runs.values() if runs)
    return any(not written.startswith("fp32") for written in formats)


def _scale_figures(experiment: Experiment) -> Iterator[tuple[str, str, Figure | None]]:
    """How gradients fare at the loss scales of the arms, and would at others."""
    if not compares_scales(experiment):
        return
    yield "scale_window", "Flushed and overflowing gradients by loss scale", plotting.scale_window(experiment)
    for role in GRADIENTS:
        words = f"{NAMES[role]} flushed to zero, by layer and step"
        yield f"flushed_{role}s", words, plotting.flushed_map(experiment, role)
    words = "Flushed gradients of every tensor as predicted and as counted"
    yield "predictions", words, plotting.predicted_and_counted(experiment)


def _gradient_figures(experiment: Experiment) -> Iterator[tuple[str, str, Figure | None]]:
    """The histograms of the gradients of FP32, with a loss scale beside none where that is the question."""
    arms = [arm for arm, runs in experiment.runs.items() if runs]
    scale = shown_scale(experiment) if compares_scales(experiment) else None
    for role in GRADIENTS if scale else reversed(GRADIENTS):
        first = [arm for arm in (baseline(experiment), *arms) if arm]
        arm = next((arm for arm in first if experiment.histogram(arm, role).elements), None)
        if arm is None:
            continue
        words = f"Exponents of the {NAMES[role].lower()} of {arm}"
        if scale:
            figure = plotting.scaled_gradient_histogram(experiment, arm, role, scale)
            yield f"{role}s", f"{words}, unscaled and times 2^{scale}", figure
        else:
            yield f"{role}s", words, plotting.gradient_histogram(experiment, arm, role)
    # Where the loss scale is the question, the maps of flushed gradients say more, unless weights alone are observed.
    if not compares_scales(experiment) or not any(
        experiment.histogram(arm, "activation_gradient").elements for arm in arms
    ):
        words = "Weight gradients below the format's smallest number, over steps"
        yield "small_gradients", words, plotting.small_gradients(experiment)


def _operand_figures(experiment: Experiment) -> Iterator[tuple[str, str, Figure | None]]:
    """Losses by the formats of operands, and of tensors in blocks, in each arm that has some."""
    for arm, runs in experiment.runs.items():
        if runs:
            words = f"Operand elements flushed and clipped by {arm}, by layer and step"
            yield f"operands_{arm}", words, plotting.operand_map(experiment, arm)
            words = f"Elements of the tensors of {arm} flushed and clipped, by tensor and step"
            yield f"blocks_{arm}", words, plotting.block_map(experiment, arm)
            words = f"Delayed scales of {arm} beside those of the step's own magnitudes"
            yield f"delayed_scales_{arm}", words, plotting.delayed_scales(experiment, arm)


def _drawing(name: str, description: str, figure: Figure) -> Drawing:
    return Drawing(name, description, svg_of(figure))

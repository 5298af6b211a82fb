"""All figures: those that compare arms take an experiment, the others what `halfscope.analyze`, `replay`
and `halfscope.torch.sensitivity` return."""

from __future__ import annotations

from halfscope.plotting.after_2018 import causes_of_zeros, fp4_costs, mean_squares, sum_errors
from halfscope.plotting.all_reduces import losses_by_ranks, losses_on_ranks, mean_errors
from halfscope.plotting.channel_costs import channel_costs
from halfscope.plotting.curves import loss_curves, metric_curves
from halfscope.plotting.dot_products import dot_errors, dot_errors_by_length
from halfscope.plotting.format_costs import cost_map, frontier
from halfscope.plotting.gradients import gradient_histogram, value_histogram
from halfscope.plotting.harm import harm_by_predictor
from halfscope.plotting.heatmap import flushed_map
from halfscope.plotting.left_layers import left_layers
from halfscope.plotting.loss_scales import scale_curve, scale_window
from halfscope.plotting.loss_weights import loss_weight_curve
from halfscope.plotting.maps import where_fp32_sums, where_loss_scaling, where_master_copy
from halfscope.plotting.operands import block_map, delayed_scales, operand_map
from halfscope.plotting.predictions import predicted_and_counted
from halfscope.plotting.replays import moving_scales, replayed_scales
from halfscope.plotting.samples import sample_sheets
from halfscope.plotting.scaled_gradients import scaled_gradient_histogram
from halfscope.plotting.scores import scoreboard
from halfscope.plotting.small_gradients import small_gradients
from halfscope.plotting.updates import lost_updates, ratio_histogram, update_ratio_histogram
from halfscope.plotting.usable_windows import usable_windows
from halfscope.plotting.windows import scale_windows

__all__ = [
    "block_map",
    "causes_of_zeros",
    "channel_costs",
    "cost_map",
    "delayed_scales",
    "dot_errors",
    "dot_errors_by_length",
    "flushed_map",
    "fp4_costs",
    "frontier",
    "gradient_histogram",
    "harm_by_predictor",
    "left_layers",
    "loss_curves",
    "loss_weight_curve",
    "losses_by_ranks",
    "losses_on_ranks",
    "lost_updates",
    "mean_errors",
    "mean_squares",
    "metric_curves",
    "moving_scales",
    "operand_map",
    "predicted_and_counted",
    "ratio_histogram",
    "replayed_scales",
    "sample_sheets",
    "scale_curve",
    "scale_window",
    "scale_windows",
    "scaled_gradient_histogram",
    "scoreboard",
    "small_gradients",
    "sum_errors",
    "update_ratio_histogram",
    "usable_windows",
    "value_histogram",
    "where_fp32_sums",
    "where_loss_scaling",
    "where_master_copy",
]

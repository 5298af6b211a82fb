"""The report of loss-scale experiments: its figures, and the tables that older results have no records for."""

from __future__ import annotations

from pathlib import Path

from halfscope.plotting.drawings import draw
from halfscope.report import report_page
from halfscope.report.section import section_of
from halfscope.report.tables import arm_table
from halfscope.results import Experiment, read_experiment
from synthetic_scales import DETECTION, write_scale_results
from test_report import Page

GRADIENTS = ["activation_gradients", "weight_gradients"]
MAPS = ["flushed_activation_gradients", "flushed_weight_gradients"]


def names(experiment: Experiment) -> list[str]:
    return [drawing.name for drawing in draw(experiment)]


def page(experiment: Experiment) -> Page:
    return Page(report_page([section_of(experiment, [])]))


def test_figures_of_a_loss_scale_experiment(detection: Experiment) -> None:
    arms = ["scoreboard", "loss_curves", "metric_curves", "moving_scales", "scale_curve"]
    drawings = draw(detection)
    assert [drawing.name for drawing in drawings] == [*arms, *GRADIENTS, "scale_window", *MAPS, "predictions"]
    assert drawings[5].description == "Exponents of the activation gradients of fp32, unscaled and times 2^3"


def test_figures_of_a_sweep_leave_out_what_31_arms_cannot_show(sweep: Experiment) -> None:
    assert names(sweep) == ["loss_curves", "metric_curves", "scale_curve", *GRADIENTS, "scale_window", *MAPS]


def test_figures_without_fp32(tmp_path: Path) -> None:
    experiment = read_experiment(write_scale_results(tmp_path, DETECTION[1:], seeds=1))
    arms = ["scoreboard", "loss_curves", "metric_curves", "moving_scales", "scale_curve"]
    assert names(experiment) == [*arms, *reversed(GRADIENTS), *MAPS]


def test_other_experiments_keep_their_figures(experiment: Experiment) -> None:
    arms = ["scoreboard", "loss_curves", "lost_updates", "update_ratios"]
    assert names(experiment) == [*arms, *reversed(GRADIENTS), "small_gradients"]


def test_columns_of_gradients_and_skipped_steps(detection: Experiment, experiment: Experiment) -> None:
    text = page(detection).text
    head = "divergedupdates lostgradients flushedFP16 would flushgradients overflowingsteps skipped"
    assert head in text
    assert "fp16_dynamic0.5280.524 to 0.5320 of 250.0 %25.0 %\N{EN DASH}0 %3.5" in text
    assert "the share that a cast of their gradients to FP16 would flush" in text
    older = arm_table(experiment)
    assert "gradients flushed" not in older and "would flush" not in older


def test_a_metric_that_should_be_small_says_so(tmp_path: Path) -> None:
    words = {"metric": "test perplexity", "lower_is_better": True}
    assert "test perplexity (lower is better)" in page(read_experiment(write_scale_results(tmp_path, **words))).text


def test_predictions_are_a_table_with_words(detection: Experiment) -> None:
    found = page(detection)
    assert found.open == []
    assert "conv1activation gradient1,00050.0 % → 25.0 %50.0 % → 25.0 %" in found.text
    assert "12 of 16 counted shares are lower than predicted" in found.text and "exact zero" in found.text
    assert found.text.count("Every tensor") == 1


def test_no_predictions_no_table(sweep: Experiment) -> None:
    assert "predicted" not in page(sweep).text


def test_the_configuration_of_many_arms_is_what_they_share_and_what_they_do_not(sweep: Experiment) -> None:
    text = page(sweep).text[page(sweep).text.index("Settings in which the arms differ") :]
    assert "all arms\nmodeldetector" in text
    assert "armloss_scaleactivation_gradient\nfp32nonefp32\nfp16_s0.06250.0625fp16" in text
    assert text.count("detector") == 2  # in the table, and in the command that repeats the experiment

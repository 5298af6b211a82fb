"""The advisor beside simpler rules, on made-up tasks whose answer is known."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from recording.advice_rules import (
    advice_rules,
    advised,
    below,
    best_constant,
    best_to_type,
    choice_table,
    constant,
    harm_table,
    interval,
    ours,
    right_by_task,
    right_of_all,
    share_right,
)
from recording.advice_tasks import Task, read_tasks
from recording.student import student_95
from synthetic import write_json

SCALES = range(-4, 17, 2)


def task(name: str, low: int, high: int, enough_from: int, overflow_beyond: int) -> Task:
    """Trained once at each scale; unharmed from 2^low to 2^high."""
    trainings = tuple((scale, not low <= scale <= high) for scale in SCALES)
    return Task(name, enough_from, overflow_beyond - 3, overflow_beyond, trainings)


NARROW = [task("low", -4, 2, -4, 3), task("middle", 4, 8, 4, 9), task("high", 12, 14, 11, 15)]


def lines_by_rule(table: str) -> dict[str, str]:
    """The lines of a table by what their first column says; it is the only one with single spaces."""
    return {line.split("  ")[0]: line for line in table.splitlines()}


def test_windows_that_lie_apart_show_skill_that_no_constant_has() -> None:
    total = len(NARROW) * len(SCALES)
    assert right_of_all(NARROW, ours) == total
    assert right_of_all(NARROW, below(best_constant(NARROW))) < total
    window = lines_by_rule(harm_table(NARROW))["the advisor's window"]
    assert f" {total} of {total} " in window and "100.0 (100.0 .. 100.0)" in window
    choice = lines_by_rule(choice_table(NARROW))
    assert "3 of 3" in choice["the advisor's scale"] and "0 of 3" in choice["1024"]
    assert "100.0 (100.0 .. 100.0)" in choice["1024"]  # points by which the advisor is better


def test_a_wide_window_shows_none() -> None:
    wide = [task("a", -4, 16, -4, 17), task("b", 0, 16, 0, 17)]
    choice = lines_by_rule(choice_table(wide))
    assert "2 of 2" in choice["the advisor's scale"] and "2 of 2" in choice["1024"]
    assert "0.0 (0.0 .. 0.0)" in choice["1024"]


def test_the_best_constant_is_right_in_most_tasks() -> None:
    """Against all constants one by one, on 200 sets of random windows."""
    draw = random.Random(4)
    for _ in range(200):
        tasks = []
        for name in "abcde":
            low = draw.randrange(-4, 14, 2)
            tasks.append(task(name, low, low + draw.randrange(0, 6, 2), low, low + 9))
        counts = {scale: sum(right_by_task(tasks, constant(scale))) for scale in range(-4, 17)}
        assert counts[best_to_type(tasks)] == max(counts.values())


def test_the_nearest_scale_below_counts() -> None:
    one = task("a", 4, 16, 4, 17)
    assert [one.trained_below(scale) for scale in (-9, -4, 5, 16, 24)] == [-4, -4, 4, 16, 16]
    assert [one.harmed_at(scale) for scale in (3, 4, 24)] == [True, False, False]
    assert (one.usable, one.width) == ([4, 6, 8, 10, 12, 14, 16], 12)


def test_distance_to_the_window() -> None:
    one = task("a", 4, 8, 4, 9)
    assert [one.outside(scale) for scale in (-6, 0, 3, 4, 7, 8, 10, 13)] == [10, 4, 1, 0, 0, 0, 2, 5]


def test_most_seeds_decide() -> None:
    trainings = ((0, True), (0, False), (0, False), (2, True), (2, True), (2, False))
    one = Task("a", 0, 0, 3, trainings, scaler_harms=(True, False, True))
    assert [one.harmed_at(scale) for scale in (0, 2)] == [False, True]
    assert one.scaler_harms_most


def test_a_dynamic_scaler_has_a_row_where_it_was_trained() -> None:
    assert "dynamic" not in choice_table(NARROW)
    tasks = [Task(one.name, one.enough_from, one.use, one.overflow_beyond, one.trainings, (False,)) for one in NARROW]
    assert "3 of 3" in lines_by_rule(choice_table(tasks))["dynamic scaling from 2^16"]


def test_an_interval_is_over_tasks() -> None:
    assert interval([1, 2, 3], 2) == "2.00 (-0.48 .. 4.48)"  # 4.303 / sqrt(3)


@pytest.mark.parametrize(
    ("degrees", "value"),
    [(1, 12.7062), (2, 4.3027), (5, 2.5706), (11, 2.2010), (20, 2.0860), (35, 2.0301), (120, 1.9799)],
)
def test_students_quantile_is_that_of_the_tables(degrees: int, value: float) -> None:
    assert student_95(degrees) == pytest.approx(value, abs=1e-4)


def test_wilsons_interval_holds_the_shares_that_do_not_contradict_the_count() -> None:
    """Its ends are where the normal test of a share is at its limit."""
    for right in range(4):
        tasks = [task("a", 4, 8, 4, 9)] * right + [task("b", -4, -2, 4, 9)] * (3 - right)
        shown = lines_by_rule(choice_table(tasks))["the advisor's scale"].split("%")[0]
        low, high = (float(part.strip(" )")) for part in shown.split("(")[1].split(")")[0].split(".."))
        for end in (low / 100, high / 100):
            if 0.005 < end < 0.995:
                deviation = abs(right / 3 - end) / math.sqrt(end * (1 - end) / 3)
                assert deviation == pytest.approx(1.96, rel=0.03)  # printed in whole percents


def test_diverged_trainings_count_as_harm(tmp_path: Path) -> None:
    lines = [
        {"task": "a", "scale_log2": 0, "harmed": False, "loss_ratio": 1.0},
        {"task": "a", "scale_log2": 16, "harmed": False, "loss_ratio": None},
    ]
    advice = [{"task": "a", "enough_from_log2": 0, "use_log2": 12, "overflow_beyond_log2": 15}]
    write_json(
        tmp_path / "cpu/advice-validity/summary.json",
        {"format_version": 1, "harm": {"advice": advice, "trainings": lines}},
    )
    (found,) = read_tasks(tmp_path)
    assert found.trainings == ((0, False), (16, True))
    assert share_right(found, ours) == 1 and right_by_task([found], advised) == [True]


def test_the_page_has_the_records_tables() -> None:
    root = Path(__file__).resolve().parents[3]
    text = (root / "docs/experiments/advice.md").read_text()
    assert advice_rules(root / "experiments/recorded", "advice-validity") in text
    summary = json.loads((root / "experiments/recorded/cpu/advice-validity/summary.json").read_text())
    assert len(read_tasks(root / "experiments/recorded")) == len(summary["harm"]["advice"]) >= 12

"""The advisor beside simpler rules, on made-up tasks whose answer is known."""

from __future__ import annotations

import json
from pathlib import Path

from recording.advice_rules import (
    Task,
    advice_rules,
    below,
    best_constant,
    choice_table,
    harm_table,
    interval,
    ours,
    read_tasks,
    right_of_all,
)
from synthetic import write_json

SCALES = range(-4, 17, 2)


def task(name: str, low: int, high: int, enough_from: int, overflow_beyond: int) -> Task:
    """Trained once at each scale; unharmed from 2^low to 2^high."""
    trainings = tuple((scale, not low <= scale <= high) for scale in SCALES)
    return Task(name, enough_from, overflow_beyond - 3, overflow_beyond, trainings)


NARROW = [task("low", -4, 2, -4, 3), task("middle", 4, 8, 4, 9), task("high", 12, 14, 11, 15)]


def test_windows_that_lie_apart_show_skill_that_no_constant_has() -> None:
    total = len(NARROW) * len(SCALES)
    assert right_of_all(NARROW, ours) == total
    assert right_of_all(NARROW, below(best_constant(NARROW))) < total
    window = next(line for line in harm_table(NARROW).splitlines() if line.startswith("the advisor's window"))
    assert f" {total} of {total} " in window and "100.0 (100.0 .. 100.0)" in window
    choice = {line[:30].strip(): line for line in choice_table(NARROW).splitlines()}
    assert "0 of 3" in choice["the advisor's scale"] and "3 of 3" in choice["1024"]


def test_a_wide_window_shows_none() -> None:
    wide = [task("a", -4, 16, -4, 17), task("b", 0, 16, 0, 17)]
    choice = {line[:30].strip(): line for line in choice_table(wide).splitlines()}
    assert "0 of 2" in choice["the advisor's scale"] and "0 of 2" in choice["1024"]


def test_the_nearest_scale_below_counts() -> None:
    one = task("a", 4, 16, 4, 17)
    assert [one.trained_below(scale) for scale in (-9, -4, 5, 16, 24)] == [-4, -4, 4, 16, 16]
    assert [one.harmed_at(scale) for scale in (3, 4, 24)] == [True, False, False]


def test_an_interval_is_over_tasks() -> None:
    assert interval([1, 2, 3], 2) == "2.00 (-0.48 .. 4.48)"  # 4.303 / sqrt(3)


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
    assert found.share_right(ours) == 1


def test_the_page_has_the_records_tables() -> None:
    root = Path(__file__).resolve().parents[3]
    text = (root / "docs/experiments/advice.md").read_text()
    assert advice_rules(root / "experiments/recorded") in text
    summary = json.loads((root / "experiments/recorded/cpu/advice-validity/summary.json").read_text())
    assert len(read_tasks(root / "experiments/recorded")) == len(summary["harm"]["advice"]) >= 12

"""Differences from baselines, as the pages show them: those by which the program judges, for every arm."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from halfscope.results.json_files import read_json
from recording.differences import differences_table, paired
from recording.source_tree import RECORDED
from synthetic import write_json

JUDGED = sorted(RECORDED.glob("cpu/*/summary.json"))


def line(values: list[float | None], seeds: list[int]) -> dict:
    return {"values": values, "seed_list": seeds}


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: path.parent.name)
def test_an_arms_difference_is_the_one_that_its_claim_is_judged_by(path: Path) -> None:
    summary = read_json(path)
    arms = {entry["arm"]: entry for entry in summary["arms"]}
    for expectation in summary["claim"]["expectations"]:
        judged = expectation["difference"]
        if expectation["arm"] not in arms or judged["pairing"] != "by_seed":
            continue
        arm, baseline = arms[expectation["arm"]], arms[expectation["baseline"]]
        found = paired(arm, baseline, summary["comparison"] == "ratio", summary["lower_is_better"])
        if judged["low"] is None:
            assert found is None
        else:
            assert found is not None
            assert found[:3] == pytest.approx([judged[key] for key in ("behind", "low", "high")], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("lower_is_better", [False, True])
def test_the_interval_holds_no_difference_in_95_of_100_samples_without_one(ratio: bool, lower_is_better: bool) -> None:
    generator = np.random.default_rng(5)
    holds = 0
    for _ in range(200):
        baseline = np.exp(generator.normal(0, 0.5, 12))
        arm = baseline * np.exp(generator.normal(0, 0.1, 12))
        seeds = list(range(12))
        found = paired(line(arm.tolist(), seeds), line(baseline.tolist(), seeds), ratio, lower_is_better)
        assert found is not None and found.low < found.behind < found.high
        assert found.detectable == pytest.approx((found.high - found.low) / 2)
        gain = np.mean(np.log(arm / baseline) if ratio else arm - baseline)
        assert (found.behind > 0) == (lower_is_better == bool(gain > 0))
        holds += found.low <= 0 <= found.high
    assert 178 <= holds <= 199


def test_seeds_are_paired_whatever_their_order_and_diverged_ones_left_out() -> None:
    seeds = list(range(8))
    baseline = [1.0 + seed for seed in seeds]
    arm = [value + 0.25 + 0.01 * seed for seed, value in enumerate(baseline)]
    shuffled = random.Random(3).sample(seeds, 8)
    expected = paired(line(arm, seeds), line(baseline, seeds), False, True)
    assert paired(line([arm[s] for s in shuffled], shuffled), line(baseline, seeds), False, True) == pytest.approx(
        expected
    )
    fewer = paired(line([None, *arm[1:]], seeds), line(baseline, seeds), False, True)
    assert fewer == pytest.approx(paired(line(arm[1:], seeds[1:]), line(baseline[1:], seeds[1:]), False, True))
    assert paired(line([None] * 7 + arm[7:], seeds), line(baseline, seeds), False, True) is None


def test_the_table_has_a_row_for_every_arm_with_a_baseline(tmp_path: Path) -> None:
    arms = [
        {"arm": "fp32", "baseline": "fp32", **line([10.0, 12.0, 11.0], [0, 1, 2])},
        {"arm": "near", "baseline": "fp32", **line([10.5, 12.5, 11.75], [0, 1, 2])},
        {"arm": "ended", "baseline": "fp32", **line([None, None, None], [0, 1, 2])},
        {"arm": "alone", "baseline": "", **line([1.0], [0])},
    ]
    summary = {"comparison": "points", "lower_is_better": False, "arms": arms}
    write_json(tmp_path / "cpu/one/summary.json", summary)
    assert [row.split() for row in differences_table(tmp_path, "one").splitlines()[1:]] == [
        ["near", "fp32", "-0.583", "-0.942", "..", "-0.225", "0.359", "3"],
        ["ended", "fp32", "-", "-", "-", "3"],
    ]

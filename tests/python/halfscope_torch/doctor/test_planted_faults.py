"""Planted faults: the line that `diagnose` names, and its remedy typed into the source and run in FP16."""

from __future__ import annotations

from itertools import count, islice
from pathlib import Path
from re import findall
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.torch import diagnose
from planted_faults import FAULTS, planted
from tie_faults import HEALTHY, TIES
from typed_remedies import Judged, distance, is_near, judge, load, outcome
from unforeseen_faults import UNFORESEEN

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
FORMATS = ("fp16", "bf16", "autocast", "autocast_bf16")
EVERY = {**FAULTS, **UNFORESEEN, **TIES}
MOST = 10  # seeds that are tried for each network that FP16 harms


def judged(kind: str, first: int, number: int, folder: Path) -> list[Judged]:
    """The first networks that FP16 harms, by the seeds from `first` on; those that FP32 breaks too are left out."""
    seeds = islice(count(first), MOST * number)
    harmed = (each for seed in seeds if (each := judged_if_harmed(seed, kind, folder)) is not None)
    found = list(islice(harmed, number))
    assert len(found) == number, f"{kind}: {len(found)} of {number} networks are harmed"
    return found


def judged_if_harmed(seed: int, kind: str, folder: Path) -> Judged | None:
    """None too where the planted lines do no harm: a gradient of some percent too small wants a loss scale alone."""
    source, path = planted(seed, kind, EVERY), folder / "harmed.py"
    path.write_text(source.source)
    exact = outcome(load(path), torch.float32)
    if not is_near(distance(exact, exact)):
        return None
    each = judge(source, folder)
    wants_scale = [advice.kind for advice in each.report.findings] == ["loss scale"]
    return each if (each.report.alarms and not wants_scale) or is_harmed(path, exact) else None


def is_harmed(path: Path, exact: tuple[float, torch.Tensor]) -> bool:
    try:
        half = outcome(load(path), torch.float16)
    except RuntimeError:  # a constant that PyTorch refuses to convert
        return True
    return not is_near(distance(half, exact))


def scores(found: list[Judged]) -> tuple[float, float, list[str]]:
    """Shares of the cause's line named and of remedies that work, and the wrong statements."""
    named = sum(each.is_named for each in found) / len(found)
    works = sum(each.works for each in found) / len(found)
    return named, works, [f"{each.planted.kind}: {each.why}\n{each.report}" for each in found if each.is_wrong]


def test_planted_faults_are_named_and_healed(tmp_path: Path) -> None:
    named, works, wrong = scores([each for kind in FAULTS for each in judged(kind, 0, 1, tmp_path)])
    assert wrong == [] and named >= 0.95 and works >= 0.85


def test_half_a_remedy_is_none(tmp_path: Path) -> None:
    """1 - p of FP32, whose logarithm in the format has a gradient that is 30 % off: the floor is infinite."""
    each = judge(planted(101, "near_one"), tmp_path)
    assert each.works and not each.is_wrong, each.report


def test_a_mask_that_its_scale_makes_infinite_gets_a_smaller_constant(tmp_path: Path) -> None:
    for each in judged("scaled_mask", 0, 4, tmp_path):
        assert [advice.kind for advice in each.report.findings] == ["constant"] and each.works, each.report


@pytest.mark.slow
def test_faults_without_a_rule_are_named_and_healed(tmp_path: Path) -> None:
    named, works, wrong = scores([each for kind in UNFORESEEN for each in judged(kind, 0, 3, tmp_path)])
    assert wrong == [] and named >= 0.95 and works >= 0.85


@pytest.mark.parametrize("kind", ["discounted", "finite_difference", "far_positions"])
def test_some_faults_without_a_rule_are_healed(kind: str, tmp_path: Path) -> None:
    """A constant's power, of which PyTorch rounds the constant; a difference in whose gradient two lines cancel."""
    _, works, wrong = scores(judged(kind, 1000, 1, tmp_path))
    assert wrong == [] and works == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_hundreds_of_planted_faults(kind: str, tmp_path: Path) -> None:
    named, works, wrong = scores(judged(kind, 100, 10, tmp_path))
    assert wrong == [] and named >= 0.85 and works >= 0.85


def decided(path: Path, dtype: torch.dtype) -> torch.Tensor:
    module = load(path)
    outcome(module, dtype)
    return module.net.decided


def told_and_counted(each: Judged, folder: Path) -> tuple[int, int, int]:
    """Changed decisions that the report tells, those of PyTorch's own FP16, and all of them."""
    path = folder / "counted.py"
    path.write_text(each.planted.source)
    exact = decided(path, torch.float32)
    own = decided(path, torch.float16) != exact
    ((told, of),) = set(findall(r"decides otherwise in (\d+) of (\d+)", " ".join(str(each.report).split())))
    assert int(of) == own.numel(), each.report
    return int(told), int(own.sum()), int(of)


@pytest.mark.parametrize("kind", TIES)
def test_ties_are_named_counted_and_healed(kind: str, tmp_path: Path) -> None:
    found = judged(kind, 0, 1, tmp_path)
    assert scores(found) == (1, 1, [])
    told, counted, every = told_and_counted(found[0], tmp_path)
    assert told and abs(told - counted) <= max(1, 0.1 * every), found[0].report


@pytest.mark.slow
def test_hundreds_of_ties(tmp_path: Path) -> None:
    named, works, wrong = scores([each for kind in TIES for each in judged(kind, 100, 12, tmp_path)])
    assert wrong == [] and named >= 0.95 and works >= 0.85


def healthy_networks(seeds: range, folder: Path, kind: str | None = None) -> list[str]:
    alarms = []
    for seed in seeds:
        path = folder / f"healthy{seed}.py"
        path.write_text(planted(seed, kind, HEALTHY).source)
        module = load(path)
        for format in FORMATS:
            report = diagnose(module.net, lambda of=module: loss_of(of), format)
            alarms += [] if report.is_healthy else [f"{kind} {seed} {format}\n{report}"]
    return alarms


def loss_of(module: Any) -> torch.Tensor:
    torch.manual_seed(7)
    return module.loss(module.net, module.inputs)


@pytest.mark.parametrize("kind", HEALTHY)
def test_decisions_without_lost_digits_are_healthy(kind: str, tmp_path: Path) -> None:
    assert healthy_networks(range(2), tmp_path, kind) == []


@pytest.mark.slow
def test_hundreds_of_healthy_decisions(tmp_path: Path) -> None:
    assert [alarm for kind in HEALTHY for alarm in healthy_networks(range(200, 225), tmp_path, kind)] == []


def test_healthy_networks_are_healthy(tmp_path: Path) -> None:
    assert healthy_networks(range(5), tmp_path) == []


@pytest.mark.slow
def test_fifty_healthy_networks_are_healthy(tmp_path: Path) -> None:
    assert healthy_networks(range(100, 150), tmp_path) == []


def test_a_judge_sees_a_remedy_that_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge's own test: a constant that heals nothing is a wrong statement."""
    from halfscope.torch.doctor.transformations import constants

    monkeypatch.setattr(constants, "short", lambda value: "1e-12")
    each = judge(planted(0, "eps_of_log"), tmp_path)
    assert each.is_wrong and not each.works


def test_every_kind_of_fault_is_planted() -> None:
    assert len(FAULTS) >= 24 and len(UNFORESEEN) >= 14 and len(TIES) >= 11
    for kind in EVERY:
        source = planted(0, kind, EVERY)
        lines = source.source.splitlines()
        assert source.lines and all(lines[number - 1].strip() for number in source.lines)

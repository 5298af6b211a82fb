"""The floor of round-off: an error that grows with the noise is a failure, a sign that flips is none."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

from halfscope.torch import diagnose
from halfscope.torch.doctor.autocast_calls import AutocastBlocks
from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.failures import Floor
from halfscope.torch.doctor.noisy_runs import Pair
from halfscope.torch.doctor.outcomes import Outcome
from halfscope.torch.doctor.program import Run, Trial

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
EXACT = Outcome(gradients={"weight": torch.tensor([1.0, 0.0])})
CALLS, UNIT = 9, 2.0**-11


def off_by(error: float) -> Outcome:
    return Outcome(gradients={"weight": torch.tensor([1.0, error])})


def reasons(error: float, noisy: list[float], noisier: list[float]) -> set[str]:
    floor = Floor(UNIT, CALLS)
    for each in noisy:
        floor.learn(off_by(each), EXACT)
    for each in noisier:
        floor.learn_jumps(off_by(each), EXACT, 4.0)
    return {alarm.reason for alarm in floor.alarms(off_by(error), EXACT)}


def test_round_off_that_grows_with_the_noise_is_amplified() -> None:
    assert reasons(0.24, [0.2, 0.28, 0.24], []) == {"amplified"}
    assert reasons(0.24, [0.2, 0.28, 0.24], [0.8, 1.0, 0.88]) == {"amplified"}
    assert reasons(0.9, [0.8, 0.95, 0.9], [1.0, 0.9, 1.1]) == {"amplified"}  # an error that cannot grow


def test_gradients_that_differ_less_than_those_of_two_batches_are_not_amplified() -> None:
    assert reasons(0.15, [0.12, 0.14, 0.16], [0.5, 0.6, 0.55]) == set()


@pytest.mark.parametrize(("left", "heals"), [(0.27, False), (0.16, False), (0.14, True)])
def test_a_remedy_leaves_at_most_half_of_amplified_round_off(left: float, heals: bool) -> None:
    """Any change of the roundings draws another error of the same size, here around the 28 % that are an alarm."""
    floor = Floor(2.0**-8, CALLS)
    for noisy in (0.25, 0.34, 0.3):
        floor.learn(off_by(noisy), EXACT)
    floor.learn_harm(off_by(0.3), EXACT, floor.alarms(off_by(0.3), EXACT))
    assert floor.is_healed(off_by(left), EXACT) is heals


def test_a_remedy_leaves_less_amplified_round_off_than_an_alarm_needs() -> None:
    floor = Floor(UNIT, CALLS)
    for noisy in (0.12, 0.14, 0.16):
        floor.learn(off_by(noisy), EXACT)
    assert not floor.alarms(off_by(0.15), EXACT) and not floor.is_healed(off_by(0.15), EXACT)


def test_a_sign_that_flips_is_not_amplified() -> None:
    assert reasons(0.24, [0.24, 0.001, 0.001], []) == set()  # in one run of three
    assert reasons(0.24, [0.24, 0.24, 0.24], [0.241, 0.24, 0.24]) == set()  # in every run, since a number is near 0


def test_a_flip_that_only_more_noise_shows_explains_an_error_of_its_size() -> None:
    small = [0.001] * 8
    assert reasons(0.06, small, []) == {"round-off"}
    assert reasons(0.06, small, [0.004] * 8) == {"round-off"}
    assert reasons(0.06, small, [0.004] * 7 + [0.06]) == set()


def test_a_flip_in_half_of_the_noisier_runs_explains_an_error_of_its_size() -> None:
    assert reasons(0.06, [0.001] * 8, [0.004] * 4 + [0.06] * 4) == set()


def test_gradients_that_are_within_their_floors_are_so_together() -> None:
    """A flip in one gradient is large there, and small beside the noise of all."""
    exact = Outcome(gradients={"a": torch.tensor([1.0, 0.0]), "b": torch.tensor([3.0, 0.0])})

    def off(a: float, b: float) -> Outcome:
        return Outcome(gradients={"a": torch.tensor([1.0, a]), "b": torch.tensor([3.0, b])})

    floor = Floor(UNIT, CALLS)
    for a in (0.001, 0.001, 0.2):
        floor.learn(off(a, 0.01), exact)
    floor.errors["gradients", "all gradients together"] = 0.01
    assert floor.alarms(off(0.15, 0.01), exact) == []
    assert {alarm.distance.name for alarm in floor.alarms(off(0.15, 0.3), exact)} == {"b", "all gradients together"}


def test_an_error_that_noise_may_explain_takes_more_noise_beside_one_that_is_amplified() -> None:
    """A gradient is off by 6 %, as in one noisy run of eight, and a number by 9 %, as in all of them."""

    def off(gradient: float, number: float) -> Outcome:
        weight = {"weight": torch.tensor([1.0, gradient])}
        return Outcome(numbers={"loss": torch.tensor([1.0, number])}, gradients=weight)

    def run(trial: Trial) -> Run:
        seeds.append(trial.seed)
        gradient = 0.06 if trial.seed == 7 else 0.001
        outcome = off(gradient * trial.noise / UNIT, 0.09 * trial.noise / UNIT)
        return Run(outcome, CallLog(frozenset(), {}), AutocastBlocks(False), set())

    seeds: list[int] = []
    pair = Pair(run, Trial(), off(0.06, 0.09), off(0.0, 0.0))
    floor = Floor(UNIT, CALLS)
    pair.learn(floor)
    assert {alarm.reason for alarm in floor.alarms(pair.narrow, pair.exact)} == {"round-off", "amplified"}
    assert [(alarm.reason, alarm.distance.name) for alarm in pair.alarms(floor)] == [("amplified", "loss")]
    assert seeds[:8] == list(range(1, 9))


@pytest.mark.parametrize("seed", range(24))
def test_a_step_whose_signs_flip_is_healthy(seed: int) -> None:
    generator = torch.Generator().manual_seed(1000 + seed)
    torch.manual_seed(seed)
    width = int(torch.randint(16, 96, (), generator=generator))
    model = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, 5))
    x, labels = torch.randn(16, 20, generator=generator), torch.arange(16) % 5
    assert not diagnose(model, lambda: functional.cross_entropy(model(x), labels), "fp16").findings


@pytest.mark.parametrize(("size", "error", "told"), [(0.05, 0.08, False), (0.05, 0.5, True), (1.0, 0.08, True)])
def test_a_small_gradient_may_be_off_by_some_percent(size: float, error: float, told: bool) -> None:
    """8 % of a gradient that is a twentieth of the other: less than a rounding of both together."""
    exact = Outcome(gradients={"small": torch.tensor([size, 0.0]), "large": torch.tensor([1.0, 0.0])})
    found = Outcome(gradients={"small": torch.tensor([size, error * size]), "large": torch.tensor([1.0, 0.0])})
    floor = Floor(UNIT, CALLS)
    floor.learn(exact, exact)
    assert ("small" in {alarm.distance.name for alarm in floor.alarms(found, exact)}) is told


def test_noise_that_was_not_learned_decides_nothing() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(16, 16), nn.Tanh()] * 3
    model, x = nn.Sequential(*layers), 30 + torch.randn(8, 16)
    report = diagnose(model, lambda: (model(x) - model(x * 1.01)).square().sum() * 1e3, "bf16", seconds=0.0)
    assert not report.findings and "Not decided" in str(report) and not report.is_healthy


@pytest.mark.parametrize("seed", range(60))
def test_a_quick_look_calls_a_small_healthy_step_healthy(seed: int) -> None:
    """Means near 0, whose error one noisy run underrates now and then."""
    torch.manual_seed(seed)
    model = nn.Linear(4, 4)
    assert diagnose(model, lambda: model(torch.ones(2, 4)).mean(), quick=True).is_healthy


def test_a_quick_look_tells_an_error_far_beyond_one_noisy_run() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8), 30 + torch.randn(4, 8)
    report = diagnose(model, lambda: (model(x).abs() * 0.01 + 4096 - 4096).mean(), quick=True)
    assert report.findings and "the loss is 0, in FP32 0." in " ".join(str(report).split())

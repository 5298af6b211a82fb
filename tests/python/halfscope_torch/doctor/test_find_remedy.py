"""`find_remedy` on planted faults: the line that it names, and its remedy typed into the source and run in FP16."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

import planted_faults
import victims
from doc_blocks import read_blocks
from halfscope.torch import find_remedy
from planted_faults import FAULTS, planted
from recording.source_tree import ROOT
from typed_remedies import Judged, distance, is_near, judge, load, outcome

pytestmark = pytest.mark.torch
FORMATS = ("fp16", "bf16", "autocast", "autocast_bf16")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def judged(kinds: list[str], seeds: range, folder: Path) -> list[Judged]:
    """Faults that harm: those of which the emulation or PyTorch's own FP16 shows nothing are left out."""
    found = []
    for kind in kinds:
        for seed in seeds:
            each = judge(planted(seed, kind), folder)
            if each.report.alarms or is_harmed(each, folder):
                found.append(each)
    return found


def is_harmed(each: Judged, folder: Path) -> bool:
    path = folder / "harmed.py"
    path.write_text(each.planted.source)
    exact = outcome(load(path), torch.float32)
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
    found = judged(list(FAULTS), range(1), tmp_path)
    named, works, wrong = scores(found)
    assert len(found) > 0.7 * len(FAULTS)
    assert wrong == [] and named >= 0.95 and works >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_hundreds_of_planted_faults(kind: str, tmp_path: Path) -> None:
    named, works, wrong = scores(judged([kind], range(100, 110), tmp_path))
    assert wrong == [] and named >= 0.85 and works >= 0.85


def healthy_networks(seeds: range, folder: Path) -> list[str]:
    alarms = []
    for seed in seeds:
        path = folder / f"healthy{seed}.py"
        path.write_text(planted(seed, None).source)
        module = load(path)
        for format in FORMATS:
            report = find_remedy(module.net, lambda of=module: of.loss(of.net, of.inputs), format)
            alarms += [] if report.is_healthy else [f"{seed} {format}\n{report}"]
    return alarms


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


class Squared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layer(x)
        return h * h


def squared() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return Squared(), 1000.0 * torch.ones(2, 4)


def test_autocast_in_the_closure_is_run_as_it_is() -> None:
    model, x = squared()

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", torch.float16):
            return model(x).float().mean()

    report = find_remedy(model, loss)
    assert "its own autocast" in report.about and "`h * h`" in str(report) and "overflows" in str(report)
    assert "in FP32 348069" in str(report)


def test_half_in_the_closure_is_run_as_it_is() -> None:
    model, x = squared()
    report = find_remedy(model, lambda: (model(x).half() * 2).float().mean())
    assert "its own autocast and casts" in report.about and report.alarms and not report.is_healthy


def test_a_model_of_16_bits_is_compared_with_fp32() -> None:
    model, x = squared()
    model.half()
    report = find_remedy(model, lambda: model(x.half()).float().mean())
    assert "`h * h` overflows" in str(report)
    assert all(weight.dtype is torch.float16 for weight in model.parameters())


def test_the_loss_outside_of_the_model_is_looked_at() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8), 40 * torch.randn(4, 8)

    def entropy(z: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(z, -1)
        return -(p * torch.log(p + 1e-10)).sum(-1).mean()

    report = find_remedy(model, lambda: entropy(model(x)))
    assert report.advice[0].site.startswith("test_find_remedy.py") and "logarithm of 0" in str(report)


def test_another_decision_is_a_failure() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 200), 0.01 * torch.randn(16, 8)
    report = find_remedy(model, lambda: (model(x) + 5).argmax(-1), "bf16")
    assert any(alarm.reason == "decision" for alarm in report.alarms)


def test_gradients_that_vanish_want_a_loss_scale() -> None:
    model, step, _ = victims.fp16_without_scaler()
    report = find_remedy(model, step)
    assert report.advice[0].kind == "loss scale" and "GradScaler(init_scale=" in report.advice[0].change


def test_a_running_average_that_stays_zero_is_healthy() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 1, bias=False), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4)
    )
    x = torch.randn(4, 1, 8, 8)
    for format in FORMATS:
        assert find_remedy(model, lambda: model(x).abs().mean(), format).is_healthy


def test_a_loss_that_is_constant_by_construction_is_healthy() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)), torch.randn(8, 16)
    for format in FORMATS:
        assert find_remedy(model, lambda: model(x).square().mean(), format).is_healthy


def test_a_deep_residual_net_of_few_pictures_has_no_line_to_change() -> None:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU()) for _ in range(14)]
    model, x = nn.Sequential(*blocks, nn.Linear(16, 3)), torch.randn(4, 16)
    report = find_remedy(model, lambda: functional.cross_entropy(model(x), torch.arange(4) % 3), "bf16")
    assert report.advice == () and (report.is_healthy or "no line to change" in str(report))


def test_state_that_is_ill_before_the_step_is_said_first() -> None:
    model = nn.Linear(4, 2)
    model.weight.data[0, 0] = float("nan")
    report = find_remedy(model, lambda: model(torch.randn(3, 4)).mean())
    assert "weight holds 1 of 8 elements that are NaN" in str(report) and report.runs == 0


def test_a_fault_of_fp32_blames_no_format() -> None:
    model = nn.Linear(4, 2)
    report = find_remedy(model, lambda: torch.log(functional.relu(model(torch.ones(3, 4))) * 0).mean())
    assert "no format is to blame" in str(report) and "torch.log" in str(report)


def test_what_nothing_heals_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from halfscope.torch.doctor.examination import Examination

    monkeypatch.setattr(Examination, "heals", lambda *_: False)
    model, x = squared()
    report = find_remedy(model, lambda: model(x).mean())
    assert "nothing that was tried heals this" in str(report) and "write" not in str(report)


def test_weights_gradients_and_random_numbers_are_left_alone() -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(8, 4)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (model(inputs) * 3e4).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    gradient, kept, numbers = model[0].weight.grad, inputs.clone(), torch.get_rng_state()
    state = {key: value.clone() for key, value in optimizer.state[model[0].weight].items()}
    find_remedy(model, step, optimizer=optimizer, seconds=10)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model[0].weight.grad is gradient and torch.equal(inputs, kept)
    assert torch.equal(torch.get_rng_state(), numbers)
    assert all(torch.equal(value, state[key]) for key, value in optimizer.state[model[0].weight].items())


def test_bits_are_those_of_pytorch_in_16_bits() -> None:
    from halfscope.formats import Format
    from halfscope.torch.doctor.program import Program, Trial

    torch.manual_seed(1)
    model, x = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)), torch.randn(8, 16)
    program = Program(model, lambda: model(x).sum(), [], Format.of("bf16"))
    ours = program.run(Trial()).outcome
    model.bfloat16()
    theirs = model(x.bfloat16()).sum()
    theirs.backward()
    assert ours.loss == float(theirs.detach())
    for name, weight in model.named_parameters():
        assert torch.equal(ours.gradients[name], weight.grad.float()), name


def test_it_refuses_what_it_cannot_see() -> None:
    with pytest.raises(TypeError, match="give a torch.nn.Module"):
        find_remedy(lambda x: x, lambda: 0)
    with pytest.raises(TypeError, match="give a function that computes it"):
        find_remedy(nn.Linear(2, 2), torch.ones(1))
    with pytest.raises(TypeError, match="give the eager model"):
        find_remedy(torch.compile(nn.Linear(2, 2)), lambda: 0)
    with pytest.raises(ValueError, match="fp17"):
        find_remedy(nn.Linear(2, 2), lambda: 0, "fp17")


def test_the_search_ends_with_its_seconds() -> None:
    model, x = squared()
    report = find_remedy(model, lambda: model(x).mean(), seconds=0.0)
    assert "ended after 0 s" in str(report) and not report.is_healthy


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    code, text, *_ = read_blocks(ROOT / "docs" / "guides" / "how-diagnose-works.md")
    (tmp_path / "train.py").write_text(code.code)
    run = [sys.executable, "train.py"]
    assert text.code == subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def test_every_kind_of_fault_is_planted() -> None:
    assert len(planted_faults.FAULTS) >= 23
    for kind in planted_faults.FAULTS:
        source = planted(0, kind)
        lines = source.source.splitlines()
        assert source.lines and all(lines[number - 1].strip() for number in source.lines)

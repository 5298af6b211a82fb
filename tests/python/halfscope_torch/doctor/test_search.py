"""`diagnose`: how a step is run, what counts as a failure, what is said, and what is left as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

import victims
from doc_blocks import read_blocks
from halfscope.torch import diagnose
from recording.source_tree import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
FORMATS = ("fp16", "bf16", "autocast", "autocast_bf16")


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

    report = diagnose(model, loss)
    assert "its own autocast" in report.about and "`h * h`" in str(report) and "overflows" in str(report)
    assert "in FP32 348069" in str(report)


def test_half_in_the_closure_is_run_as_it_is() -> None:
    model, x = squared()
    report = diagnose(model, lambda: (model(x).half() * 2).float().mean())
    assert "its own autocast and casts" in report.about and report.alarms and not report.is_healthy


def test_a_model_of_16_bits_is_compared_with_fp32() -> None:
    model, x = squared()
    model.half()
    report = diagnose(model, lambda: model(x.half()).float().mean())
    assert "`h * h` overflows" in str(report)
    assert all(weight.dtype is torch.float16 for weight in model.parameters())


def test_the_loss_outside_of_the_model_is_looked_at() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8), 40 * torch.randn(4, 8)

    def entropy(z: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(z, -1)
        return -(p * torch.log(p + 1e-10)).sum(-1).mean()

    report = diagnose(model, lambda: entropy(model(x)))
    assert str(report.findings[0].place).startswith("test_search.py") and "logarithm of 0" in str(report)


def test_another_decision_is_a_failure() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 200), 0.01 * torch.randn(16, 8)
    report = diagnose(model, lambda: (model(x) + 5).argmax(-1), "bf16")
    assert any(alarm.reason == "decision" for alarm in report.alarms)


@pytest.mark.parametrize("seed", range(8))
def test_a_decision_that_follows_a_near_tie_is_no_fault(seed: int) -> None:
    """The second one compares numbers of other elements, since the first one chose these."""
    torch.manual_seed(seed)
    model, x = nn.Linear(6, 1), torch.randn(64, 6)
    places = 1000 * torch.rand(64)

    def loss() -> torch.Tensor:
        scores = model(x).squeeze(1)
        chosen = scores.topk(32).indices
        late = (places[chosen] > 500).float()
        return (functional.softplus(scores[chosen]) * (0.5 + late)).mean()

    assert not diagnose(model, loss, "bf16").findings


def test_a_script_that_refuses_the_type_of_the_format_runs_without_it() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8), 40 * torch.randn(4, 8)

    def loss(gain: float) -> torch.Tensor:
        z = gain * model(x)
        if z.dtype is torch.bfloat16 or z.dtype is torch.float16:
            raise TypeError(f"numbers of {z.dtype}")
        return torch.exp(z).log1p().mean()

    report = diagnose(model, lambda: loss(0.01), "bf16")
    assert report.is_healthy and "the script itself ends: TypeError: numbers of torch.bfloat16" in str(report)
    report = diagnose(model, lambda: loss(1.0), "fp16")
    assert "softplus" in report.findings[0].change and "TypeError: numbers of torch.float16" in str(report)


def test_an_error_of_the_script_in_any_type_is_its_own() -> None:
    model = nn.Linear(4, 4)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        diagnose(model, lambda: model(torch.ones(2, 5)).mean())


def test_gradients_that_vanish_want_a_loss_scale() -> None:
    model, step, _ = victims.fp16_without_scaler()
    report = diagnose(model, step)
    assert report.findings[0].kind == "loss scale" and "GradScaler(init_scale=" in report.findings[0].change


def test_a_running_average_that_stays_zero_is_healthy() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 1, bias=False), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4)
    )
    x = torch.randn(4, 1, 8, 8)
    for format in FORMATS:
        assert diagnose(model, lambda: model(x).abs().mean(), format).is_healthy


def test_a_loss_that_is_constant_by_construction_is_healthy() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)), torch.randn(8, 16)
    for format in FORMATS:
        assert diagnose(model, lambda: model(x).square().mean(), format).is_healthy


def test_a_deep_residual_net_of_few_pictures_has_no_line_to_change() -> None:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU()) for _ in range(14)]
    model, x = nn.Sequential(*blocks, nn.Linear(16, 3)), torch.randn(4, 16)
    report = diagnose(model, lambda: functional.cross_entropy(model(x), torch.arange(4) % 3), "bf16")
    assert report.findings == () and (report.is_healthy or "no line to change" in " ".join(str(report).split()))


def test_state_that_is_ill_before_the_step_is_said_first() -> None:
    model = nn.Linear(4, 2)
    model.weight.data[0, 0] = float("nan")
    report = diagnose(model, lambda: model(torch.randn(3, 4)).mean())
    assert "weight holds 1 of 8 elements that are NaN" in str(report) and report.runs == 0


def test_a_fault_of_fp32_blames_no_format() -> None:
    model = nn.Linear(4, 2)
    report = diagnose(model, lambda: torch.log(functional.relu(model(torch.ones(3, 4))) * 0).mean())
    assert "no format is to blame" in str(report) and "torch.log" in str(report)


def test_what_nothing_heals_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from halfscope.torch.doctor.examination import Examination

    monkeypatch.setattr(Examination, "heals", lambda *_: False)
    model, x = squared()
    report = diagnose(model, lambda: model(x).mean())
    assert "nothing that was tried heals this" in str(report) and "write" not in str(report)


def test_what_heals_these_inputs_alone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from halfscope.torch.doctor.examination import Examination

    bases = []
    monkeypatch.setattr(Examination, "healed_run", lambda _, trial, moves: bases.append(trial) or None)
    model, x = squared()
    text = " ".join(str(diagnose(model, lambda: model(x).mean())).split())
    assert "heals it on these inputs; nothing that was tried heals slightly smaller ones too, " in text
    assert "write" not in text and "nothing that was tried heals this" not in text
    assert {each.lifts_inputs for each in bases} == {False, True}


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
    diagnose(model, step, optimizer=optimizer, seconds=10)
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
    with pytest.raises(TypeError, match="diagnose: model=.*; give a module of PyTorch"):
        diagnose(lambda x: x, lambda: 0)
    with pytest.raises(TypeError, match="give a function that computes it"):
        diagnose(nn.Linear(2, 2), torch.ones(1))
    with pytest.raises(TypeError, match="diagnose: the model is compiled"):
        diagnose(torch.compile(nn.Linear(2, 2)), lambda: 0)
    with pytest.raises(ValueError, match="fp17"):
        diagnose(nn.Linear(2, 2), lambda: 0, "fp17")


def test_the_search_ends_with_its_seconds() -> None:
    model, x = squared()
    report = diagnose(model, lambda: model(x).mean(), seconds=0.0)
    assert "ended after 0 s" in str(report) and not report.is_healthy


def test_ctrl_c_ends_the_search_and_what_is_known_is_told() -> None:
    """In a run while remedies are sought; before the step was judged there is nothing to tell."""
    model, x = squared()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    runs = 0

    def loss() -> torch.Tensor:
        nonlocal runs
        runs += 1
        if runs == stop:
            raise KeyboardInterrupt
        return model(x).mean()

    stop = 9
    report = diagnose(model, loss)
    assert report.is_stopped and runs == stop and report.runs == stop, (runs, report.runs)
    assert " s, by Ctrl-C: " in " ".join(str(report).split()) and "overflows" in str(report), str(report)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    runs, stop = 0, 2
    with pytest.raises(KeyboardInterrupt):
        diagnose(model, loss)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    code, text, *_ = read_blocks(ROOT / "docs" / "guides" / "how-diagnose-works.md")
    (tmp_path / "train.py").write_text(code.code)
    run = [sys.executable, "train.py"]
    assert text.code == subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def test_a_part_in_inference_mode_is_followed() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(6, 4)

    def loss() -> torch.Tensor:
        with torch.inference_mode():
            factor = model(x).exp().mean()
        return (model(x) * factor.item()).square().mean()

    assert diagnose(model, loss).is_healthy
    with torch.no_grad():
        model.bias += 12  # exp(12) is beyond FP16
    assert "`model(x).exp()` overflows" in " ".join(str(diagnose(model, loss)).split())


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp"])
def test_a_step_within_a_transform_is_refused_in_one_line(transform: str) -> None:
    """Without a verdict: nothing of it is rounded."""
    model, x = nn.Linear(4, 3), torch.randn(6, 4)
    weights = dict(model.named_parameters())
    losses = {
        "vmap": lambda: torch.func.vmap(lambda row: model(row).sum())(x).sum(),
        "grad": lambda: torch.func.grad(lambda row: torch.func.functional_call(model, weights, (row,)).sum())(x).sum(),
        "jvp": lambda: torch.func.jvp(model, (x,), (torch.ones_like(x),))[1].sum(),
    }
    with pytest.raises(NotImplementedError, match="^a step within torch.func's vmap, grad or jvp, whose tensors have"):
        diagnose(model, losses[transform])

"""`check` on generated networks, healthy and with planted faults, against PyTorch's own FP16 and other counts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

from halfscope import reporting
from halfscope.torch import check, watch
from halfscope.torch.doctor.report import Diagnosis
from planted_faults import FAULTS, planted
from typed_remedies import distance, is_near, load, outcome

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def network(folder: Path, seed: int, kind: str | None = None):
    path = folder / f"net_{kind}_{seed}.py"
    path.write_text(planted(seed, kind).source)
    return path, load(path)


def checked(module, format: str = "fp16", factor: float = 1.0) -> reporting.Report:
    return check(module.net, lambda: module.loss(module.net, module.inputs) * factor, format=format)


def is_harmed(path: Path) -> bool:
    """Whether PyTorch's own FP16 spoils the step."""
    try:
        half = outcome(load(path), torch.float16)
    except RuntimeError:  # a constant that PyTorch refuses to convert
        return True
    return not is_near(distance(half, outcome(load(path), torch.float32)))


def healthy_networks(seeds: range, folder: Path) -> list[str]:
    """Reports that are wrong: a first line other than "Nothing to change", though PyTorch's own FP16 is right."""
    wrong = []
    for seed in seeds:
        path, module = network(folder, seed)
        assert not is_harmed(path)
        for format in ("fp16", "autocast"):
            report = checked(module, format)
            first = str(report).splitlines()[0]
            if len(report) or first != "Nothing to change: the step in FP16 is FP32's but for round-off.":
                wrong.append(f"{seed} {format}\n{report}")
    return wrong


def test_healthy_networks_have_nothing_to_change(tmp_path: Path) -> None:
    assert healthy_networks(range(5), tmp_path) == []


@pytest.mark.slow
def test_a_hundred_healthy_networks_have_nothing_to_change(tmp_path: Path) -> None:
    assert healthy_networks(range(200, 300), tmp_path) == []


def faulty_networks(kinds: list[str], seeds: range, folder: Path) -> tuple[int, int, list[str]]:
    """Networks that PyTorch's own FP16 spoils, those whose first line names a planted line, and silent reports."""
    harmed = named = 0
    silent = []
    for kind in kinds:
        for seed in seeds:
            path, module = network(folder, seed, kind)
            if not is_harmed(path):
                continue
            report, harmed = checked(module), harmed + 1
            if not len(report):
                silent.append(f"{kind} {seed}\n{report}")
                continue
            first = report.findings[0].to_dict()
            lines = planted(seed, kind).lines
            is_named = first["line"] in lines or any(f"line {line}" in first["change"] for line in lines)
            named += is_named and first["file"] == str(path)
    return harmed, named, silent


def test_planted_faults_are_in_the_first_line(tmp_path: Path) -> None:
    kinds = random.Random(5).sample(sorted(FAULTS), 8)
    harmed, named, silent = faulty_networks(kinds, range(1), tmp_path)
    assert harmed >= 5 and silent == [] and named >= harmed - 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_hundreds_of_planted_faults_are_in_the_first_line(kind: str, tmp_path: Path) -> None:
    harmed, named, silent = faulty_networks([kind], range(300, 306), tmp_path)
    assert silent == [] and named >= 0.8 * harmed


def test_the_loss_scale_is_that_of_a_watch(tmp_path: Path) -> None:
    """The same rule, on the same gradients, counted in a training that is watched."""
    told = 0
    for seed in range(16):
        _, module = network(tmp_path, seed)
        if any(isinstance(layer, nn.BatchNorm1d) for layer in module.net.modules()):
            continue  # a bias in front of one has round-off for a gradient, which a watch counts
        factor = 2.0 ** random.Random(seed).randint(-34, -4)
        report = checked(module, "autocast", factor)
        optimizer = torch.optim.SGD(module.net.parameters(), lr=0.0)
        with watch(module.net, every=1, optimizer=optimizer, operations=False) as watched:
            (module.loss(module.net, module.inputs) * factor).backward()
            optimizer.step()
        advice = watched.advise_scale()
        low, high = advice.joint_window_log2
        found = [each for each in report.findings if each.kind == "loss scale"]
        assert found or low <= 0 <= high, f"{factor}\n{report}"
        assert all(advice.verdict.splitlines()[0].startswith(each.change) for each in found)
        told += len(found)
    assert 2 <= told <= 10


class Small(nn.Module):
    """Layers whose output is small, so that all that harms is the size of the gradients."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        rng = random.Random(seed)
        width = rng.choice([8, 16, 32])
        self.layers = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 4))
        self.inputs, self.targets = torch.randn(rng.choice([4, 16]), 8), torch.randint(4, (16,))

    def loss(self, factor: float) -> torch.Tensor:
        targets = self.targets[: len(self.inputs)]
        return functional.cross_entropy(self.layers(self.inputs), targets) * factor


def underflow(gradient: torch.Tensor, scale: float) -> float:
    """Cost of a cast at a scale, over the norm, by PyTorch's own FP16; infinite where it overflows."""
    cast = (gradient * scale).half().double() / scale
    return float((cast - gradient.double()).norm() / gradient.double().norm())


@pytest.mark.parametrize("seed", range(6))
def test_gradients_that_are_too_small_get_the_scale_to_type(seed: int) -> None:
    model, factor = Small(seed), 2.0 ** random.Random(seed).randint(-32, -24)
    report = check(model, lambda: model.loss(factor), format="autocast")
    finding = report.findings[0]
    assert finding.kind == "loss scale" and finding.change.startswith("Loss scale 2^")
    scale = 2.0 ** int(finding.change.partition("2.0**")[2].partition(")")[0])
    model.loss(factor).backward()
    costs = [(underflow(p.grad, 1.0), underflow(p.grad, scale)) for p in model.parameters()]
    assert max(now for now, _ in costs) > 0.2 and max(then for _, then in costs) <= 0.2
    assert "every result and gradient is FP32's but for round-off" in finding.sure, report


def test_a_scaler_in_the_step_is_the_scale_in_use() -> None:
    """Its gradients carry the scale: another one is told where it does not fit, and tried in the scaler."""
    model = Small(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step_with(scale: float):
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)

        def step() -> torch.Tensor:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                loss = model.loss(2.0**-26)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        return step

    right, small = check(model, step_with(2.0**24)), check(model, step_with(2.0**4))
    assert "the step has 1.67772e+07" in right.about and len(right) == 0, right
    assert "the step has 16" in small.about and small.findings[0].kind == "loss scale"
    assert small.findings[0].sure.startswith("tried at 2^") and len(small) == 1


@pytest.mark.parametrize("seed", range(8))
def test_lost_updates_are_those_of_pytorch(seed: int) -> None:
    model, rng = Small(seed), random.Random(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=10.0 ** rng.uniform(-6, 0))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model.loss(1.0)
        loss.backward()
        optimizer.step()
        return loss

    report = check(model, step, optimizer)
    before = [weight.detach().clone() for weight in model.parameters()]
    step()
    pairs = [(old, weight.detach() - old) for old, weight in zip(before, model.parameters())]
    nonzero = sum(int((change != 0).sum()) for _, change in pairs)
    lost = sum(
        int(((change != 0) & ((old.half().float() + change).half() == old.half())).sum()) for old, change in pairs
    )
    words = f"updates: {nonzero} elements; FP16 weights lose {100 * lost / nonzero:.3g} % of them"
    assert words in " ".join(str(report).split())
    told = [each for each in report.findings if each.kind in ("lost updates", "state")]
    assert bool(told) == (lost >= 0.05 * nonzero), report


def test_one_finding_for_a_line_and_three_of_a_kind() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(8)))
    names = random.Random(0).sample([name for name, _ in model.named_parameters()], 10)
    with torch.no_grad():
        for name in names:
            model.get_parameter(name)[0] = random.Random(name).choice([float("nan"), float("inf"), 1e6])
    report = check(model, lambda: model(torch.ones(1, 2)).sum())
    assert [each.kind for each in report.findings] == ["state before"] * 4
    assert report.findings[3].change == "7 more of the same kind"
    ill = [name for name, _ in model.named_parameters() if name in names]
    assert [each.about for each in report.findings[:3]] == ill[:3] and ill[3] in report.findings[3].why
    assert "step: its state is ill before it" in report.about


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layer(x)
        return torch.log(torch.sigmoid(h) * 1e-9) + torch.log(torch.sigmoid(-h) * 1e-9)


def test_two_faults_of_a_line_are_one_finding() -> None:
    torch.manual_seed(0)
    model, x = Twice(), torch.randn(4, 4)
    report = check(model, lambda: model(x).mean())
    lines = [(each.place.file, each.place.line) for each in report.findings if each.place is not None]
    assert lines and len(lines) == len(set(lines))


def test_state_of_an_optimizer_that_is_ill_is_told() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.state[model.weight]["exp_avg"][0, 0] = float("inf")
    report = check(model, lambda: model(torch.ones(1, 2)).sum(), optimizer)
    assert report.findings[0].change.startswith("restore exp_avg of weight in Adam from a checkpoint")


def test_a_step_that_is_wrong_in_fp32_blames_no_format() -> None:
    model = nn.Linear(2, 2)
    report = check(model, lambda: torch.log(model(torch.ones(1, 2)).sum() * 0))
    assert "no format is to blame" in str(report).splitlines()[0] + str(report).splitlines()[1]


def test_constants_that_the_step_refutes_are_not_told() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.fill = nn.Linear(4, 4), -1e9

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.layer(x).masked_fill(torch.eye(4) > 0, self.fill), -1)

    torch.manual_seed(0)
    model, x = Masked(), torch.randn(4, 4)
    report = check(model, lambda: (model(x) * x).mean())
    assert len(report) == 0 and "did no harm in this step" in report.about, report


def test_what_may_not_be_checked_is_refused_in_one_line() -> None:
    model = nn.Linear(2, 2)

    def step() -> torch.Tensor:
        return model(torch.ones(1, 2)).sum()

    with pytest.raises(TypeError, match="check: model is of type str; give a torch.nn.Module"):
        check("model", step)
    with pytest.raises(TypeError, match="check: loss is of type Tensor; give a function without arguments"):
        check(model, step())
    with pytest.raises(TypeError, match="check: optimizer is of type int"):
        check(model, step, 3)
    with pytest.raises(ValueError, match=r"check: format='fp17'.*autocast"):
        check(model, step, format="fp17")
    with pytest.raises(TypeError, match="check: the model is compiled"):
        check(torch.compile(model), step)


class Chaotic(nn.Module):
    """A logistic map, which doubles round-off in each of its steps."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.sigmoid(self.layer(x))
        for _ in range(24):
            h = 3.97 * h * (1 - h)
        return h


@pytest.mark.parametrize("seconds", [0.01, 30.0])
def test_a_search_without_a_remedy_names_what_it_knows(seconds: float) -> None:
    model = Chaotic()
    inputs = torch.randn(16, 4)
    report = check(model, lambda: model(inputs).square().mean(), seconds=seconds)
    assert len(report) >= 1 and report.findings[0].place is not None and report.findings[0].sure, report


def test_round_off_without_a_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small(5)
    found = Diagnosis(about="Looked at: x", alarms=(object(),), spread="Round-off is amplified.", runs=9)
    monkeypatch.setitem(check.__globals__, "examine", lambda *_: found)
    report = check(model, lambda: model.loss(1.0), format="autocast")
    assert str(report).startswith("no line is to change: train in FP32, or with larger batches\n  Why: Round-off is")
    assert "  Sure: 9 runs of the step" in str(report) and len(report) == 1


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_a_step_that_throws_its_gradients_away_is_looked_at(kind: type[torch.optim.Optimizer]) -> None:
    """`zero_grad` stands last in many loops: then no gradient is left, and the loss has had its backward pass."""
    model = Small(2)
    optimizer = kind(model.parameters(), lr=0.1)

    def step() -> torch.Tensor:
        with torch.autocast("cpu", torch.float16):
            loss = model.loss(1.0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    report = check(model, step)
    assert len(report) == 0 and "updates: " in report.about and "Error" not in report.about, report
    assert "5 gradients" in report.about or "7 gradients" in report.about


@pytest.mark.parametrize("result", [lambda _: None, lambda loss: float(loss.detach()), lambda _: {}])
def test_a_function_that_returns_no_loss_is_told_so(result: Any) -> None:
    model = Small(3)
    report = check(model, lambda: result(model.loss(1.0)))
    assert str(report).startswith("return the loss, as a tensor") and len(report) == 1


def test_a_pass_without_a_backward_pass_is_called_so() -> None:
    model = Small(4).requires_grad_(False)
    report = check(model, lambda: model.loss(1.0), format="autocast")
    assert str(report).startswith("Nothing to change: the forward pass in FP16 is FP32's but for round-off.")
    assert "backward pass: no loss that depends on a weight came back" in report.about


@pytest.mark.parametrize("how", ["weights", "autocast"])
def test_the_format_is_the_one_that_the_step_has(how: str) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    inputs = torch.randn(8, 4)
    if how == "weights":
        model, inputs = model.bfloat16(), inputs.bfloat16()
        with torch.no_grad():
            model[0].bias[0] = 1e5  # beyond FP16, not beyond BF16

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
            return model(inputs).square().mean() * 1e-12

    report = check(model, loss)
    assert str(report).startswith("Nothing to change: the step in BF16"), report


def test_state_in_16_bits_is_told_only_of_weights_that_have_them() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    optimizer = torch.optim.Adam(model.parameters())
    report = check(model, lambda: model(x).square().mean(), optimizer)
    assert len(report) == 0 and str(report).startswith("Nothing to change"), report
    model, narrow = nn.Linear(8, 8).half(), x.half()
    optimizer = torch.optim.Adam(model.parameters())
    report = check(model, lambda: model(narrow).square().mean(), optimizer)
    assert "eps of Adam = 1e-08 is 0 in FP16" in str(report)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("norm", ["BatchNorm1d", "LayerNorm"])
def test_a_gradient_that_is_round_off_asks_for_no_loss_scale(seed: int, norm: str) -> None:
    """A bias in front of a batch norm has none; the same bias far from the loss has one, which is small."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 24), getattr(nn, norm)(24), nn.Linear(24, 3))
    inputs, labels = torch.randn(16, 24), torch.arange(16) % 3

    def loss(factor: float) -> torch.Tensor:
        return nn.functional.cross_entropy(model(inputs), labels) * factor

    assert str(check(model, lambda: loss(1.0))).startswith("Nothing to change")
    assert check(model, lambda: loss(1e-6), format="autocast").findings[0].change.startswith("Loss scale 2^")

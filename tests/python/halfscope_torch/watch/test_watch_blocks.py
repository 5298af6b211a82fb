"""watch(format=...) of a block format: counts by tensor and role, and the training that the report names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope.torch
from halfscope import count_blocks, plotting
from halfscope.report.page import write_report
from halfscope.results import read_experiment
from halfscope.torch import watch
from halfscope.torch.watch.watch import Watch

ROLES = ("activation", "activation_gradient", "weight", "weight_gradient")


class Image(torch.nn.Module):
    """A convolution, whose channels are the second axis, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 48, 3)
        self.fc = torch.nn.Linear(48, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.conv(x).mean((2, 3)))


def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("format", ["mxfp4", "nvfp4", "block(fp8_e4m3, 1x16, e8m0/floor)"])
def test_counts_are_those_of_the_tensors(format: str) -> None:
    torch.manual_seed(0)
    model = Image()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: dict[tuple[str, str], torch.Tensor] = {}
    for name, layer in model.named_children():
        layer.register_forward_hook(lambda _m, _i, y, name=name: seen.update({(name, "activation"): y.detach()}))
        layer.register_full_backward_hook(
            lambda _m, _i, y, name=name: seen.update({(name, "activation_gradient"): y[0].detach()})
        )
    with watch(model, 1, optimizer=optimizer, format=format) as watched:
        step(model, optimizer, normal(4, 3, 8, 8))
    for name, layer in model.named_children():
        seen[f"{name}.weight", "weight"] = layer.weight.detach()
        seen[f"{name}.weight", "weight_gradient"] = layer.weight.grad
    table = watched.blocks()
    assert set(table) == set(seen) and watched.format == format
    for (name, role), tensor in seen.items():
        expected = count_blocks(tensor.contiguous(), format, axis=1 if tensor.dim() == 4 else -1)
        assert table[name, role].counts == expected, (name, role)


def test_steps_add_up_and_other_steps_are_not_watched() -> None:
    model = torch.nn.Linear(40, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with watch(model, 2, optimizer=optimizer, format="mxfp8_e4m3", observe_roles="optimizer_state") as watched:
        for _ in range(5):
            step(model, optimizer, normal(8, 40))
    table = watched.blocks()
    assert watched.steps == 5 and "MXFP8 E4M3 over 3 watched steps:" in watched.verdict
    assert {role for _, role in table} == {*ROLES, "optimizer_state"}
    assert table["", "activation"].counts.elements == 3 * 8 * 32
    assert table["weight.exp_avg", "optimizer_state"].counts.blocks == 3 * 32 * 2
    assert len(table.to_pandas()) == len(table) and "exp_avg_sq" in str(table)


def with_outliers() -> torch.nn.Sequential:
    """Two layers, the first with a column of large weights: their blocks flush all others, and the norm hides it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Tanh(), torch.nn.Linear(96, 64))
    with torch.no_grad():
        model[0].weight[:, ::32] *= 2**10
    return model


def test_the_report_names_the_layer_to_leave_out_and_a_training_that_runs(capsys: pytest.CaptureFixture) -> None:
    model = with_outliers()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watch(model, 1, optimizer=optimizer, format="mxfp4") as watched:
        step(model, optimizer, normal(16, 64))
    print(watched.report)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("Train in MXFP4, leave out 0 first: halfscope.torch.emulate(model, ")
    assert re.search(r"0\.weight's weights \(9\d\.\d % flushed, median", printed)
    assert "Not looked at: blocks along other axes" in printed
    call = re.search(r"halfscope\.torch\.emulate\(.*?optimizer=optimizer\)", printed)
    assert call is not None
    with eval(call[0], {"halfscope": halfscope, "model": model, "optimizer": optimizer}) as emulated:
        step(model, optimizer, normal(16, 64))
    assert {layer for layer, _ in emulated.operands()} == {"2"}


def test_one_layer_that_loses_most_of_its_weights_stands_out() -> None:
    model = torch.nn.Sequential(with_outliers()[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer, format="mxfp4") as watched:
        step(model, optimizer, normal(16, 64))
    assert watched.verdict.startswith("Train in MXFP4, leave out 0 first: ")


def test_nothing_stands_out_of_normal_numbers() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watch(model, 1, optimizer=optimizer, format="mxfp4") as watched:
        step(model, optimizer, normal(64, 64))
    assert watched.verdict.startswith("Train in MXFP4, no tensor stands out: ")


def test_scales_that_underflow_are_told() -> None:
    model = torch.nn.Linear(64, 64, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
        model.weight[0] = 2.0**-20
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer, format="nvfp4") as watched:
        step(model, optimizer, normal(16, 64))
    assert watched.blocks()["weight", "weight"].counts.flushed_by_scale == 64
    assert "weight's weights (64 elements lost to scales of 0)" in watched.verdict
    assert "largest underflow to 0; E8M0 scales, as of mxfp4, reach further." in watched.verdict


def test_elements_that_are_not_finite_come_first() -> None:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs = normal(16, 64)
    inputs[0, 0] = float("inf")
    with watch(model, 1, optimizer=optimizer, format="mxfp4") as watched:
        step(model, optimizer, inputs)
    assert watched.verdict.startswith("Look at the inputs and the loss first: ")
    assert "the model's outputs (64 of 1024)" in watched.verdict


def test_gradients_beyond_all_formats_are_not_judged() -> None:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer, format="nvfp4_16x16") as watched:
        (model(normal(16, 64)).sum() * float("inf")).backward()
        optimizer.step()
    assert watched.verdict.startswith("Lower the loss scale first, or look at the loss: no gradient of the w")
    assert "NVFP4 16x16 over 1 watched step:" in watched.verdict


def test_a_page_at_loss_scales_is_refused() -> None:
    model = torch.nn.Linear(64, 64)
    with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), format="mxfp4") as watched:
        pass
    with pytest.raises(ValueError, match="^explore: each block of mxfp4 has a scale"):
        watched.explore()


def test_without_a_step_nothing_is_claimed() -> None:
    model = torch.nn.Linear(64, 64)
    with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), format="mxfp4") as watched:
        pass
    assert watched.verdict.startswith("No number has been seen: train a step first.")


@pytest.mark.parametrize("method", ["histograms", "histogram", "advise_scale", "explore", "trace"])
def test_methods_for_a_loss_scale_say_what_has_the_counts(method: str) -> None:
    model = torch.nn.Linear(64, 64)
    with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), format="mxfp4") as watched:
        pass
    with pytest.raises(ValueError, match=rf"^{method}: each block of mxfp4 has a scale of its own.*blocks\(\)"):
        getattr(watched, method)()


def recorded(folder: Path, steps: int, every: int) -> Watch:
    """A training with outliers, whose loss is the number of the step."""
    model = with_outliers()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watch(model, every, optimizer=optimizer, format="mxfp4", out=folder) as watched:
        for loss in range(steps):
            step(model, optimizer, normal(16, 64))
            watched.log(float(loss))
    return watched


def test_records_have_the_counts_of_each_watched_step(tmp_path: Path) -> None:
    watched = recorded(tmp_path / "mine", steps=4, every=2)
    experiment = read_experiment(tmp_path / "mine")
    (run,) = experiment.runs["watched"]
    assert run.config["format"] == run.format == "mxfp4"
    assert list(run.steps["loss"]) == [0, 1, 2, 3] and run.histograms == {}
    frame = run.counters("blocks")
    assert sorted(set(frame["step"])) == [1, 2, 4]
    summed = frame.groupby(["tensor", "role"])[["elements", "flushed", "blocks"]].sum()
    for key, row in ((key, watched.blocks()[key]) for key in watched.blocks()):
        assert list(summed.loc[key]) == [row.counts.elements, row.counts.flushed, row.counts.blocks]
    assert 0.9 < frame.set_index(["step", "tensor", "role"]).loc[(4, "0.weight", "weight"), "flushed"] / (64 * 96) < 1
    assert experiment.summary["title"] == "A PyTorch model, watched for MXFP4"
    assert experiment.summary["verdict"] == watched.verdict


def test_the_page_of_the_records_has_a_map_of_tensors(tmp_path: Path) -> None:
    watched = recorded(tmp_path / "mine", steps=3, every=1)
    page = write_report(tmp_path / "mine").read_text()
    assert "Train in MXFP4, leave out 0 first: " in page and "watched for MXFP4" in page
    figure = plotting.block_map(read_experiment(tmp_path / "mine"), "watched")
    assert figure is not None
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows[0] == "0 (output)" and rows[-4:] == [
        "0.weight",
        "2.weight",
        "0.weight (gradient)",
        "2.weight (gradient)",
    ]
    flushed = np.asarray(figure.axes[0].collections[0].get_array())[rows.index("0.weight")]
    expected = watched.blocks()["0.weight", "weight"].flushed_fraction
    assert flushed == pytest.approx([100 * expected] * 3, rel=1e-2)


def test_elements_that_are_lost_leave_valid_json(tmp_path: Path) -> None:
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs = normal(16, 64)
    inputs[0, 0] = float("inf")
    with watch(model, 1, optimizer=optimizer, format="mxfp4", out=tmp_path / "mine"):
        step(model, optimizer, inputs)
    text = (tmp_path / "mine/watched/seed0/metrics.jsonl").read_text()
    assert "NaN" not in text and "Infinity" not in text
    (line,) = map(json.loads, text.splitlines())
    assert line["blocks"][0]["nonfinite"] == 64


def test_the_configuration_has_the_format_of_the_gradients(tmp_path: Path) -> None:
    model = torch.nn.Linear(64, 64).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer, format="mxfp4", out=tmp_path / "mine"):
        step(model, optimizer, normal(16, 64).bfloat16())
    config = json.loads((tmp_path / "mine/watched/seed0/config.json").read_text())
    assert config["activation_gradient"] == "bf16" and config["format"] == "mxfp4"


class Written:
    """A SummaryWriter that keeps its scalars."""

    def __init__(self) -> None:
        self.scalars: dict[tuple[str, int], float] = {}

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars[name, step] = value

    def add_histogram_raw(self, *_: object, **__: object) -> None:
        raise AssertionError("blocks have no histogram of the loss scale")

    def flush(self) -> None:
        pass


def test_tensorboard_gets_errors_and_flushed_shares() -> None:
    model = with_outliers()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    board = Written()
    with watch(model, 1, optimizer=optimizer, format="mxfp4", tensorboard=board) as watched:
        step(model, optimizer, normal(16, 64))
    row = watched.blocks()["0.weight", "weight"]
    assert board.scalars["flushed by mxfp4, weight/0.weight", 1] == row.flushed_fraction > 0.9
    assert board.scalars["signal over noise of mxfp4, dB, weight/0.weight", 1] == row.decibels
    assert board.scalars["loss scale, log2", 1] == 0


def test_formats_without_blocks_have_histograms() -> None:
    model = torch.nn.Linear(64, 64)
    with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), format="fp8_e4m3") as watched:
        pass
    with pytest.raises(ValueError, match=r"^blocks: fp8_e4m3 has none; histograms\(\) has its counts"):
        watched.blocks()

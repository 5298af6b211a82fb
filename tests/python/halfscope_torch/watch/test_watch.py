"""halfscope.torch.watch on models whose gradients, updates and layers are known."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope.plotting.drawings import draw
from halfscope.results import read_experiment
from halfscope.torch import watch
from halfscope.torch.device import waiting
from planted import ELEMENTS, Fused, FusedScaler, Planted, Scale, Scaler, records, train
from recording.source_tree import PROGRAM


def test_planted_underflow_is_counted(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "planted") as watched:
        train(model, optimizer, 1)
    (step,) = records(tmp_path / "planted", "metrics.jsonl")
    tensors = {(line["tensor"], line["role"]): line for line in step["tensors"]}
    assert len(tensors) == 6
    for key in (("second", "activation_gradient"), ("first.weight", "weight_gradient")):
        assert {name: tensors[key][name] for name in ("elements", "zeros", "flushed", "subnormal", "overflow")} == {
            "elements": ELEMENTS, "zeros": 50, "flushed": 300, "subnormal": 650, "overflow": 0
        }  # fmt: skip
    assert tensors["second", "activation"]["max_abs"] == 1
    # 1 - 2^-20 and 1 - 2^-30 are both 1 in FP16, and 1 - 2^-30 is in FP32.
    assert [(line["nonzero"], line["lost"]) for line in step["updates"]] == [(650, 650)] * 2
    assert "flushes 31.6 % of the activation gradients and 31.6 % of the weight gradients" in watched.verdict
    # Half of the smallest number of FP16 is 2^-25; the largest gradient overflows at 2^36.
    advice = watched.advise_scale()
    assert advice.joint_window_log2[1] == 35
    assert advice.verdict in watched.verdict
    assert "lose 100.0 % of the updates: keep an FP32 master copy" in watched.verdict


def test_scaled_gradients_are_counted_as_the_backward_pass_makes_them(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = Scaler(1024.0, skips={2})
    with watch(model, 1, optimizer=optimizer, scaler=scaler, out=tmp_path / "scaled") as watched:
        train(model, optimizer, 3, scaler)
    steps = records(tmp_path / "scaled", "metrics.jsonl")
    assert [(line["scale"], line["skipped"]) for line in steps] == [(1024, False), (1024, True), (512, False)]
    assert [len(line["updates"]) for line in steps] == [2, 0, 2]
    for line in steps:
        tensors = {(tensor["tensor"], tensor["role"]): tensor for tensor in line["tensors"]}
        assert tensors["second", "activation_gradient"]["scale"] == line["scale"]
        assert tensors["second", "activation_gradient"]["flushed"] == 0
        assert (tensors["second.weight", "weight_gradient"]["scale"], len(tensors)) == (line["scale"], 6)
        assert tensors["second.weight", "weight_gradient"]["flushed"] == 0
    assert "flushes 31.6 % of the activation gradients and 31.6 % of the weight gradients" in watched.verdict
    assert "step" not in vars(optimizer) and "update" not in vars(scaler)  # closing unwraps what nobody wrapped again


def test_no_scale_fits() -> None:
    layers = torch.nn.ModuleDict({"low": Scale(), "high": Scale()})
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.0)
    with watch(layers, 1, optimizer=optimizer) as watched:
        (
            layers["low"](torch.ones(ELEMENTS)) * 2.0**-40 + layers["high"](torch.ones(ELEMENTS)) * 2.0**10
        ).sum().backward()
        optimizer.step()
    assert watched.advise_scale().verdict in watched.verdict
    assert "no single scale fits" in watched.verdict


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_watch_advises_as_analyze_does_on_the_same_gradients(tmp_path: Path) -> None:
    """One advisor: the report, advise_scale, analyze and the command of that name say the same."""
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    torch.manual_seed(1)
    with watch(model, 1, optimizer=optimizer) as watched:
        (1e-4 * model(torch.randn(64, 20)).square().mean()).backward()
        optimizer.step()
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    histograms = watched.histograms("weight_gradient")
    assert sorted(histograms) == sorted(gradients)
    of_weights = halfscope.advise_scale(histograms)
    analysis = halfscope.analyze(gradients)
    assert of_weights.recommended_scale_log2 is not None
    assert of_weights.recommended_scale == analysis.recommended_scale
    assert of_weights.joint_window_log2 == analysis.joint_window_log2
    # Arrays of these names may hold weights, and a last line says so; the file's name says that it holds none.
    assert analysis.verdict.partition("\n  If these are weights")[0] == of_weights.verdict
    np.savez(tmp_path / "gradients.npz", **gradients)
    told = json.loads(
        subprocess.run(
            [PROGRAM, "analyze", tmp_path / "gradients.npz", "--json"], capture_output=True, check=True
        ).stdout
    )
    assert told["verdict"] == of_weights.verdict
    assert told["recommended_scale_log2"] == of_weights.recommended_scale_log2
    outputs = {f"{name} (output)": found for name, found in watched.histograms("activation_gradient").items()}
    everything = {**outputs, **histograms}
    assert watched.advise_scale().verdict == halfscope.advise_scale(everything).verdict
    assert halfscope.advise_scale(everything).verdict in watched.verdict


def test_every_tenth_step_of_the_chosen_layers(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = tmp_path / "chosen"
    with watch(model, 10, include="*second*", exclude=["*.weight"], optimizer=optimizer, out=out) as watched:
        train(model, optimizer, 25)
    assert watched.steps == 25
    found = records(out, "histograms.jsonl")
    assert {line["step"] for line in found} == {1, 10, 20} and {line["tensor"] for line in found} == {"second"}
    assert [line["step"] for line in records(out, "metrics.jsonl")] == list(range(1, 26))


def test_watching_changes_no_number_and_closing_leaves_no_trace() -> None:
    weights = []
    for watches in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(ELEMENTS, 7), torch.nn.ReLU(inplace=True), torch.nn.Linear(7, ELEMENTS)
        )
        optimizer = torch.optim.Adam(model.parameters())
        watched = watch(model, 1, optimizer=optimizer) if watches else None
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        train(model, optimizer, 3)
        schedule.step()
        if watched:
            watched.close()
            watched.close()
            train(model, optimizer, 1)
            assert watched.steps == 3
            assert not any(module._forward_hooks for module in model.modules())
        else:
            train(model, optimizer, 1)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_shared_layers_tuples_and_half_precision_are_counted_together() -> None:
    cell = torch.nn.LSTM(8, 8)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    watched = watch(cell, 1, optimizer=optimizer)
    first, state = cell(torch.ones(5, 2, 8))
    cell(first, state)[0].sum().backward()
    seen = watched._watcher._seen.histograms["activation", ""]
    assert seen.elements == 2 * (5 * 2 * 8 + 2 * 2 * 8)
    watched.close()


def test_the_records_can_be_drawn(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 5, optimizer=optimizer, out=tmp_path / "drawn") as watched:
        for step in range(20):
            watched.log(1.0 / (step + 1))
            train(model, optimizer, 1)
    experiment = read_experiment(tmp_path / "drawn")
    assert experiment.summary["verdict"] == watched.verdict
    assert (experiment.runs["watched"][0].steps["loss"] == 1 / np.arange(1, 21)).all()
    names = {drawing.name for drawing in draw(experiment)}
    assert {"loss_curves", "lost_updates", "update_ratios", "weight_gradients", "activation_gradients"} <= names


@pytest.mark.parametrize("options", [{"every": 0}, {"include": "nothing"}, {"exclude": "*"}])
def test_what_watch_refuses(options: dict) -> None:
    model = Planted()
    with pytest.raises(ValueError, match="^watch: "):
        watch(model, **options, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def test_arrays_of_pytorch() -> None:
    values = torch.tensor([0.1, 70000.0, 1e-8])
    rounded = halfscope.round(values, "fp16")
    assert isinstance(rounded, torch.Tensor) and torch.equal(rounded, values.half().float())
    wide = values.detach().bfloat16()
    assert torch.equal(halfscope.round(wide, "bf16"), wide.float())
    for unreadable in (torch.empty(2, device="meta"), torch.ones(2).to_sparse()):
        with pytest.raises((TypeError, ValueError)):
            halfscope.round(unreadable, "fp16")


def test_steps_that_are_not_watched_have_no_hooks() -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 3, optimizer=optimizer) as watched:
        for step in range(1, 8):
            hooked = {bool(module._forward_hooks) for module in (model.first, model.second)}
            assert hooked == {step in (1, 3, 6)}
            train(model, optimizer, 1)
    assert watched.histogram("activation").elements == 3 * 2 * ELEMENTS


class Odd(torch.nn.Module):
    """Parameters of every kind: sparse gradients, none, no axis, no element, transposed, half and double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 3, sparse=True)
        self.scalar = torch.nn.Parameter(torch.tensor(2.0))
        self.empty = torch.nn.Parameter(torch.empty(0, 4))
        self.transposed = torch.nn.Parameter(torch.ones(3, 5).t())
        self.narrow = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.wide = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        rows = self.table(indices) * self.scalar * self.narrow * self.wide
        return (rows @ self.transposed.t().double()).sum() + self.empty.sum()


@pytest.mark.parametrize("way", ["ON_HOST", "BY_PYTORCH"])
def test_parameters_of_every_kind(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(waiting.countings, "cpu", getattr(waiting, way))
    torch.manual_seed(0)
    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.tensor([1, 4, 4])).backward()
        gradients = {name: p.grad.to_dense() for name, p in model.named_parameters() if p.grad is not None}
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimizer.step()
    assert watched.histograms("weight_gradient") == {
        name: halfscope.Histogram(gradient) for name, gradient in gradients.items()
    }
    assert set(gradients) == {"table.weight", "scalar", "empty", "transposed", "narrow", "wide"}
    after = dict(model.named_parameters())
    for name, found in watched.histograms("update_ratio").items():
        wide = torch.float64 if before[name].dtype is torch.float64 else torch.float32
        weights = before[name].to(wide)
        assert found == halfscope.update_ratios(weights, after[name].detach().to(wide) - weights)
    assert watched.histograms("weight_gradient")["table.weight"].zeros == 8 * 3


def test_optimizers_that_unscale_and_skip_by_themselves(tmp_path: Path) -> None:
    model = Planted()
    optimizer, scaler = Fused(model.parameters(), lr=1.0), FusedScaler(1024.0, skips={2})
    with watch(model, 1, optimizer=optimizer, scaler=scaler, out=tmp_path / "fused") as watched:
        train(model, optimizer, 3, scaler)
    steps = records(tmp_path / "fused", "metrics.jsonl")
    assert [(line["scale"], line["skipped"]) for line in steps] == [(1024, False), (1024, True), (512, False)]
    assert [len(line["updates"]) for line in steps] == [2, 0, 2]
    for found in watched.histograms("weight_gradient").values():
        cast = found.what_if(1)
        assert (cast.elements, cast.flushed, cast.subnormal) == (3 * ELEMENTS, 3 * 300, 3 * 650)
    assert {tensor["scale"] for tensor in steps[0]["tensors"] if tensor["role"] == "weight_gradient"} == {1024}

"""halfscope.torch.watch on models whose gradients, updates and layers are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope  # noqa: E402
from halfscope.drawings import draw  # noqa: E402
from halfscope.results import read_experiment  # noqa: E402
from halfscope.torch import watch  # noqa: E402

ELEMENTS = 1000
TINY, SMALL = 2.0**-30, 2.0**-20  # of the gradients: what FP16 flushes, what it makes subnormal


class Planted(torch.nn.Module):
    """Two layers that multiply; the loss gives 300 of 1000 outputs gradients that underflow."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = Scale()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(ELEMENTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x


def planted_gradient() -> torch.Tensor:
    gradient = torch.full((ELEMENTS,), SMALL)
    gradient[:300] = TINY
    gradient[-50:] = 0
    return gradient


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int, scaler=None) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(torch.ones(ELEMENTS)) * planted_gradient()).sum()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            (loss * scaler.get_scale()).backward()
            scaler.step(optimizer)
            scaler.update()


def records(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / "watched/seed0" / name).read_text().splitlines()]


class Scaler:
    """What `watch` needs of a GradScaler, which the CPU lacks in older versions: a step that is skipped is one."""

    def __init__(self, scale: float, skips: set[int] = frozenset()) -> None:
        self._scale, self._skips, self._steps = scale, skips, 0

    def get_scale(self) -> float:
        return self._scale

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self._steps += 1
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad /= self._scale
        if self._steps not in self._skips:
            optimizer.step()

    def update(self) -> None:
        if self._steps in self._skips:
            self._scale /= 2


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
    assert "flushes 31.6 % of the activation gradients and 31.6 % of the weight gradients" in watched.verdict()
    # Half of the smallest number of FP16 is 2^-25; the largest gradient overflows at 2^36.
    assert "from 2^6 to 2^35" in watched.verdict() and "2^32 is recommended" in watched.verdict()
    assert "lose 100.0 % of the updates: keep an FP32 master copy" in watched.verdict()


def test_scaled_gradients_are_counted_as_they_are_and_weight_gradients_without_the_scale(tmp_path: Path) -> None:
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
        assert (tensors["second.weight", "weight_gradient"]["scale"], len(tensors)) == (1, 6)
        assert tensors["second.weight", "weight_gradient"]["flushed"] == 300
    assert "flushes 31.6 % of the activation gradients" in watched.verdict()
    assert "step" not in vars(optimizer) and "update" not in vars(scaler)  # closing unwraps what nobody wrapped again


def test_no_scale_fits() -> None:
    layers = torch.nn.ModuleDict({"low": Scale(), "high": Scale()})
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.0)
    with watch(layers, 1, optimizer=optimizer) as watched:
        (layers["low"](torch.ones(ELEMENTS)) * 2.0**-40 + layers["high"](torch.ones(ELEMENTS)) * 2.0**10).sum().backward()
        optimizer.step()
    assert "No single scale fits: high" in watched.verdict() and "which low" in watched.verdict()


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
        model = torch.nn.Sequential(torch.nn.Linear(ELEMENTS, 7), torch.nn.ReLU(inplace=True), torch.nn.Linear(7, ELEMENTS))
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
    seen = watched._seen.histograms["activation", ""]
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
    assert experiment.summary["verdict"] == watched.verdict()
    assert (experiment.runs["watched"][0].steps["loss"] == 1 / np.arange(1, 21)).all()
    names = {drawing.name for drawing in draw(experiment)}
    assert {"loss_curves", "lost_updates", "update_ratios", "weight_gradients", "activation_gradients"} <= names


def test_advice_and_histograms() -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 3)
    found = watched.histograms("weight_gradient")
    assert list(found) == ["first.weight", "second.weight"]
    cast = found["second.weight"].what_if(1)
    assert (cast.elements, cast.flushed, cast.subnormal) == (3 * ELEMENTS, 3 * 300, 3 * 650)
    found["second.weight"].update(torch.ones(5))
    assert watched.histograms("weight_gradient")["second.weight"].elements == 3 * ELEMENTS
    assert watched.histograms("activation")["first"].max_abs == 1
    assert watched.histogram("weight_gradient").elements == 2 * 3 * ELEMENTS
    advice = watched.advise_scale(tolerance=0.01)
    assert advice.joint_window_log2 == (6, 35) and len(advice.fits) == 4
    assert watched.advise_scale(tolerance=0.4).joint_window_log2[0] == -4  # the tiny ones may go
    with pytest.raises(ValueError, match="role 'weights'; give one of"):
        watched.histograms("weights")


def test_the_trace_can_be_replayed(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = Scaler(1024.0)
    with watch(model, 1, optimizer=optimizer, scaler=scaler, out=tmp_path / "mine") as watched:
        train(model, optimizer, 5, scaler)
    trace = watched.trace()
    assert [line["scale"] for line in trace] == [1024.0] * 5
    assert trace[0]["gradients"]["max_abs"] == SMALL * 1024 and trace[0]["gradients"]["finite"]
    found = halfscope.replay(trace, ["none", "1024", 2.0**36, "popart"])
    assert found.to_dict() == halfscope.replay(tmp_path / "mine/watched/seed0/metrics.jsonl", ["none", "1024", 2.0**36, "popart"]).to_dict()
    assert [run.overflowed for run in found.runs[:3]] == [0, 0, 5]  # 2^-20 times 2^36 is 65536
    assert found.runs[0].flushed == 300 / 950 and found.runs[1].flushed == 0


def test_float64_models_are_counted_exactly() -> None:
    """An update that float32 cannot tell from none, and gradients next to an edge of FP16."""
    torch.manual_seed(0)
    model = Scale().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    gradient = torch.full((ELEMENTS,), 2.0**-40, dtype=torch.float64)
    gradient[:400] = 2.0**-25 * (1 + 2.0**-50)  # becomes 2^-24, where 2^-25 becomes 0
    with watch(model, 1, optimizer=optimizer) as watched:
        (model(torch.ones(ELEMENTS, dtype=torch.float64)) * gradient).sum().backward()
        optimizer.step()
    found = watched.histograms("weight_gradient")["weight"].what_if(1)
    assert (found.flushed, found.subnormal) == (600, 400)
    assert watched.histograms("update_ratio")["weight"].nonzero == ELEMENTS
    assert "lose 100.0 % of the updates" in watched.verdict()


class Events:
    """What `watch` needs of a SummaryWriter."""

    def __init__(self) -> None:
        self.histograms, self.scalars = {}, {}

    def add_histogram_raw(self, tag: str, **about: object) -> None:
        self.histograms[tag, about.pop("global_step")] = about

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.scalars[tag, step] = value

    def flush(self) -> None:
        self.flushed = True


def test_tensorboard_gets_histograms_of_log2() -> None:
    model, writer = Planted(), Events()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 2, optimizer=optimizer, tensorboard=writer):
        train(model, optimizer, 3)
    assert {step for _, step in writer.histograms} == {1, 2} and writer.flushed
    found = writer.histograms["log2 weight_gradient/second.weight", 1]
    assert (found["min"], found["max"], found["num"]) == (-30, -19, 950)
    assert found["bucket_limits"] == list(range(-30, -18)) and found["bucket_counts"] == [0, 300, *[0] * 9, 650]
    assert found["sum"] == 300 * -29.5 + 650 * -19.5
    assert writer.scalars["flushed without loss scale/weight_gradient", 1] == 300 / 950
    assert writer.scalars["loss scale, log2", 2] == 0


def test_tensorboard_reads_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer, tensorboard=tmp_path):
        train(model, optimizer, 2)
    events = EventAccumulator(str(tmp_path), size_guidance={"histograms": 0}).Reload()
    (first, second) = events.Histograms("log2 weight_gradient/second.weight")
    assert (first.step, second.step) == (1, 2)
    value = first.histogram_value
    assert (value.min, value.max, value.num, sum(value.bucket)) == (-30, -19, 950, 950)
    assert [event.value for event in events.Scalars("loss scale, log2")] == [0, 0]


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboard" or "utils.tensorboard" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    model = Planted()
    with pytest.raises(ImportError, match="tensorboard= needs the package tensorboard: pip install tensorboard"):
        watch(model, 1, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), tensorboard=tmp_path)


@pytest.mark.parametrize("options", [{"every": 0}, {"include": "nothing"}, {"exclude": "*"}])
def test_what_watch_refuses(options: dict) -> None:
    model = Planted()
    with pytest.raises(ValueError, match="^watch: "):
        watch(model, **options, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def test_arrays_of_pytorch() -> None:
    values = torch.tensor([0.1, 70000.0, 1e-8])
    for tensor in (values, values.requires_grad_()):
        rounded = halfscope.round(tensor, "fp16")
        assert isinstance(rounded, torch.Tensor) and torch.equal(rounded, values.detach().half().float())
    wide = values.detach().bfloat16()
    assert torch.equal(halfscope.round(wide, "bf16"), wide.float())
    for unreadable in (torch.empty(2, device="meta"), torch.ones(2).to_sparse()):
        with pytest.raises((TypeError, ValueError)):
            halfscope.round(unreadable, "fp16")

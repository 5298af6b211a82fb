"""Outputs of halfscope.torch.watch: advice, histograms, a trace to replay, TensorBoard's events."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope import _core
from halfscope.results import loss_scales, read_experiment
from halfscope.results.loss_scales import gradient_name
from halfscope.torch import watch
from halfscope.torch.device.waiting import region_of
from planted import ELEMENTS, SMALL, Planted, Scale, Scaler, train


def test_the_step_that_asks_for_the_largest_scale_counts() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        for exponent in (-4, -20, -8):
            optimizer.zero_grad()
            (model(torch.ones(8, 1)).sum() * 2.0**exponent).backward()
            optimizer.step()
    # The output's gradients are 2^-20 in the second step, the weight's 2^-1 in the first.
    assert watched.advise_scale().joint_window_log2 == (-4, 16)


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
    advice = watched.advise_scale(tolerance=0)
    assert advice.joint_window_log2 == (6, 35) and len(advice.fits) == 4
    # The tiny ones may go; the small ones, 2^-20 or just below, round to FP16's smallest number at 2^-4.
    assert watched.advise_scale().joint_window_log2[0] == -4
    with pytest.raises(ValueError, match="role 'weights'; give one of"):
        watched.histograms("weights")


def test_the_advice_tells_outputs_from_weights_and_leaves_clipped_gradients_out(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), Scale())
    model[1].weight = torch.nn.Parameter(torch.ones(3))
    torch.nn.init.ones_(model[0].weight)
    torch.nn.init.zeros_(model[0].bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "mine") as watched:
        (model(torch.ones(8, 4)) * 2.0**-10).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0**-40)
        optimizer.step()
    assert watched.histograms("optimizer_gradient")
    advice = watched.advise_scale()
    names = ["1 (output)", "0 (output)", "0.weight", "0.bias", "1.weight"]
    assert [fit.name for fit in advice.fits] == names == list(advice.to_pandas().index)
    assert "underflow costs 1 (output), 0 (output)" in watched.verdict
    labels = [label.get_text() for label in advice.plot().axes[0].get_yticklabels()]
    assert labels == names
    assert loss_scales.advice(read_experiment(tmp_path / "mine"), "watched").verdict == advice.verdict


def test_the_trace_can_be_replayed(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = Scaler(1024.0)
    with watch(model, 1, optimizer=optimizer, scaler=scaler, out=tmp_path / "mine") as watched:
        train(model, optimizer, 5, scaler)
    trace = watched.trace()
    assert [line["scale"] for line in trace] == [1024.0] * 5
    assert trace[0]["gradients"]["max_abs"] == SMALL * 1024 and trace[0]["gradients"]["finite"]
    scalers = ["none", "1024", 2.0**36, "popart"]
    found = halfscope.replay(trace, scalers)
    assert found.to_dict() == halfscope.replay(tmp_path / "mine/watched/seed0/metrics.jsonl", scalers).to_dict()
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
    assert "lose 100.0 % of the updates" in watched.verdict


class Events:
    """A SummaryWriter as `watch` needs it."""

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


def test_tensorboard_names_another_format() -> None:
    model, writer = Planted(), Events()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer, tensorboard=writer, format="fp8_e4m3"):
        train(model, optimizer, 1)
    assert writer.scalars["flushed by fp8_e4m3 without loss scale/weight_gradient", 1] == 1.0


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


@pytest.mark.parametrize("size", [1, 31, 1024, 257 * 259])
@pytest.mark.parametrize("threads", [1, 3])
def test_moved_weights_are_counted_as_their_difference(size: int, threads: int) -> None:
    """Every float32 as a weight and as an update, in one pass beside the three that the package offers."""
    random = np.random.default_rng(size)
    before, after = (
        torch.from_numpy(random.integers(0, 1 << 32, size, dtype=np.uint32).view(np.float32)) for _ in "ab"
    )
    after[::2] = before[::2] * (1 + 1e-3 * torch.randn(len(after[::2])))
    after[::7] = before[::7]
    kept = _core.KeptWeights()
    _core.set_thread_count(threads)
    kept.keep([region_of(before), region_of(after)])
    (found, unmoved) = kept.moved([region_of(after), region_of(after)])
    update = after - before
    expected = halfscope.lost_updates(before, update)
    names = ("elements", "nonzero", "lost", "applied_over_intended")
    assert [getattr(found.counters, name) for name in names] == [getattr(expected, name) for name in names]
    assert found.ratios == halfscope.update_ratios(before, update)
    assert unmoved.ratios.nonzero == 0 and unmoved.counters.elements == size
    assert _core.count_floats([region_of(update), region_of(before)]) == [
        halfscope.Histogram(update),
        halfscope.Histogram(before),
    ]


def test_an_optimizer_may_put_other_weights_in_the_place_of_its_own() -> None:
    class Replacing(torch.optim.SGD):
        def step(self, closure=None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data = (parameter.data - 0.5).repeat(2)[::2]  # no longer contiguous

    model = Planted()
    optimizer = Replacing(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 1)
    ratios = watched.histograms("update_ratio")["second.weight"]
    assert (ratios.elements, ratios.nonzero, ratios.max_abs) == (ELEMENTS, ELEMENTS, 0.5)


def test_weights_that_are_laid_out_anew_are_compared_element_by_element() -> None:
    class Transposing(torch.optim.SGD):
        def step(self, closure=None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data = (parameter.data * 1.5).t().contiguous().t()

    model = torch.nn.Linear(5, 3, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.arange(1.0, 16.0).view(3, 5))
    optimizer = Transposing(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.ones(2, 5)).sum().backward()
        optimizer.step()
    ratios = watched.histograms("update_ratio")["weight"]
    assert ratios.nonzero == 15 and ratios.max_abs == 0.5


def test_a_page_of_the_gradients(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 3)
    watched.explore().write(tmp_path / "page.html")
    printed = " ".join(str(watched.report).split())
    assert printed.startswith(f"{' '.join(watched.verdict.split())} Not looked at: operations ")
    page = (tmp_path / "page.html").read_text()
    data = json.loads(re.search(r'<script type="application/json">(.*)</script>', page)[1])
    assert [tensor["name"] for tensor in data["tensors"]] == [
        gradient_name(role, name) for role, name in watched._totals.gradients()
    ]
    for tensor in data["tensors"]:
        found = watched.histograms(tensor["role"])[tensor["name"].removesuffix(" (output)")]
        ((zeros, nonfinite, _, counts, *_),) = tensor["cells"]
        assert zeros + nonfinite + sum(counts) == found.elements
    assert data["advice"]["verdict"] == watched.advise_scale().verdict

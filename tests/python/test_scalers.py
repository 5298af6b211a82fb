"""halfscope.LossScaler and replay: state machines by hand and beside replayed traces, frames, figures, bad traces."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import halfscope
from halfscope import LossScaler, plotting, replay
from halfscope.results import Experiment


def gradients(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(0, 2.0 ** (-8 + step % 9), 400).astype(np.float32)


def scaled(step: int, scale: float) -> halfscope.Histogram:
    return halfscope.Histogram(gradients(step).astype(np.float64) * scale)


def trace(steps: int) -> list[dict]:
    """Recorded at scale 1."""
    found = []
    for step in range(1, steps + 1):
        values = gradients(step)
        about = {"finite": True, "max_abs": float(np.abs(values).max()), "histogram": halfscope.Histogram(values)}
        found.append({"step": step, "scale": 1.0, "gradients": about})
    return found


def test_gradscaler_by_hand() -> None:
    scaler = LossScaler("dynamic", growth_interval=3)
    seen = []
    for finite in (True, False, True, True, True, False, False, True):
        seen.append(math.log2(scaler.scale))
        assert scaler.update(finite=finite) == (not finite)
    assert seen == [16, 16, 15, 15, 15, 16, 15, 14]
    assert scaler.options["growth_interval"] == 3 and scaler.options["backoff_factor"] == 0.5


def told(scaler: LossScaler, step: int) -> dict:
    """The step's gradients times the scaler's scale. LogMax looks at the largest itself, which a histogram rounds."""
    about = {"histogram": scaled(step, scaler.scale)}
    largest = float(np.abs(gradients(step)).max()) * scaler.scale
    return about | ({"max_abs": largest} if scaler.name == "openseq2seq_logmax" else {})


REPLAYED = [name for name, row in halfscope.list_scalers().iterrows() if row["replays"]]


@pytest.mark.parametrize("name", ["none", "1024", *REPLAYED[1:]])
def test_updates_go_where_a_replay_goes(name: str) -> None:
    """Told of the gradients times its own scale, a scaler does what the replay of the trace says."""
    expected = replay(trace(80), [name]).runs[0]
    scaler = LossScaler(name)
    for step, log2_scale in enumerate(expected.scale_log2, start=1):
        assert math.log2(scaler.scale) == pytest.approx(log2_scale, abs=1e-9)
        try:
            skipped = scaler.update(**told(scaler, step))
        except RuntimeError as error:
            assert expected.stopped == f"step {step}: {error}"
            break
        assert skipped == (step in expected.overflow_steps and scaler.needs != "none")
    assert len(expected.overflow_steps) > 0 or expected.final_scale_log2 < 21


def test_an_option_is_guessed_by_how_it_begins() -> None:
    with pytest.raises(ValueError, match="did you mean 'growth_factor'"):
        LossScaler("dynamic", growth=3)


def test_a_scaler_goes_on_from_its_state() -> None:
    one, other = LossScaler("headroom"), LossScaler("headroom")
    for step in range(1, 30):
        one.update(max_abs=float(step))
    other.load_state(one.state())
    for step in range(30, 60):
        assert one.scale == other.scale
        assert one.update(max_abs=2.0 ** (step % 20)) == other.update(max_abs=2.0 ** (step % 20))
    assert one.state() == other.state()
    with pytest.raises(ValueError, match="lacks 'widening'|lacks 'count'"):
        one.load_state({"scale": 1.0})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LossScaler("dynamik"), ValueError, "did you mean 'dynamic'"),
        (lambda: LossScaler("dynamic", patience=3), ValueError, "dynamic has no such option"),
        (lambda: LossScaler("dynamic", growth=3), ValueError, "unknown scaler option 'growth'"),
        (lambda: LossScaler("dynamic", growth_interval=0), ValueError, "give an integer from 1 to"),
        (lambda: LossScaler("dynamic", growth_interval=2.5), ValueError, "give an integer from 1 to"),
        (lambda: LossScaler("dynamic", growth_interval="often"), TypeError, "growth_interval= is no number"),
        (lambda: LossScaler("apex_amp", initial_scale=2.0**30), ValueError, "stays between min_scale"),
        (lambda: LossScaler(-3), ValueError, "give a positive number that FP32 holds"),
        (lambda: LossScaler(1024, initial_scale=3), ValueError, "is a constant"),
        (lambda: LossScaler(None), TypeError, "give a name or a number"),
        (lambda: LossScaler("dynamic").update(), ValueError, "dynamic looks at finite= of the gradients"),
        (lambda: LossScaler("headroom").update(finite=True), ValueError, "headroom looks at max_abs= of"),
        (lambda: LossScaler("popart").update(max_abs=1.0), ValueError, "popart looks at histogram= of"),
        (lambda: LossScaler("headroom").update(max_abs=-1.0), ValueError, "max_abs = -1 is negative"),
        (lambda: LossScaler("popart").update(histogram=halfscope.Histogram(format="bf16")), ValueError, "of FP16"),
    ],
)  # fmt: skip
def test_what_a_scaler_refuses(call, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_scaler_that_ends_the_run() -> None:
    scaler = LossScaler("headroom", initial_scale=1, min_scale=1, patience=3)
    assert scaler.update(finite=False) and scaler.update(finite=False)
    with pytest.raises(RuntimeError, match="3 steps in a row"):
        scaler.update(finite=False)


def test_frames_and_figure() -> None:
    found = replay(trace(40), ["dynamic", "megatron", 64])
    frame = found.to_pandas()
    assert list(frame.index) == ["dynamic", "megatron", "64"]
    assert frame["final_scale_log2"]["64"] == 6 and frame["skipped"]["megatron"] > 0
    assert found.scale_log2.shape == (40, 3) and (found.scale_log2["64"] == 6).all()
    axes = found.plot().axes[0]
    assert [line.get_label() for line in axes.lines if not line.get_label().startswith("_")] == list(frame.index)


def test_more_scalers_than_colours_have_a_panel_each() -> None:
    found = replay(trace(40), "all")
    panels = found.plot().axes
    assert [axes.get_title("left") for axes in panels[: len(found.runs)]] == [run.scaler for run in found.runs]
    assert not any(axes.get_visible() for axes in panels[len(found.runs) :])
    for axes, run in zip(panels, found.runs):
        (own,) = [line for line in axes.lines if line.get_label() == run.scaler]
        assert own.get_ydata().tolist() == list(run.scale_log2)
        assert len(axes.lines) >= len(found.runs)  # the others behind it
    assert {axes.get_ylim() for axes in panels} == {panels[0].get_ylim()}


def test_a_replay_after_the_end() -> None:
    steps = [{"step": i, "scale": 0.5, "gradients": {"finite": False, "max_abs": None}} for i in range(1, 40)]
    found = replay(steps, "deepspeed", initial_scale=4)
    (run,) = found.runs
    assert run.stopped and len(run.scale_log2) < 39
    assert found.scale_log2["deepspeed"].isna().sum() == 39 - len(run.scale_log2)
    assert "(ends the run)" in found.plot().axes[0].get_legend_handles_labels()[1][0]


def test_moving_scales_of_an_experiment(detection: Experiment, experiment: Experiment) -> None:
    figure = plotting.moving_scales(detection)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels and all("fp16_s" not in label for label in labels)
    assert plotting.moving_scales(experiment) is None


GOOD = {"step": 1, "scale": 2.0, "gradients": {"finite": True, "max_abs": 1.0}}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "it lacks 'step'"),
        (7, "expected an object with step, scale and gradients"),
        ({"step": 1, "scale": 2.0}, "it lacks 'gradients'; record it: halfscope run"),
        ({"step": 1, "scale": 2.0, "blocks": []}, "it was watched for a block format, .*; watch it for fp16$"),
        (GOOD | {"gradients": {}}, "it lacks 'finite'"),
        (GOOD | {"gradients": {"finite": 1}}, "finite: expected true or false"),
        (GOOD | {"gradients": {"finite": True}}, "it lacks 'max_abs'"),
        (GOOD | {"gradients": {"finite": True, "max_abs": -1}}, "max_abs = -1: expected a number of 0 or more"),
        (GOOD | {"scale": 0}, "scale = 0: expected a number of 1.401e-45 or more"),
        (GOOD | {"scale": "2"}, 'scale = "2": expected a number'),
        (GOOD | {"gradients": {"finite": True, "max_abs": 1, "histogram": {}}}, "histogram record: it lacks 'counts'"),
    ],
)
def test_bad_records(record: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + json.dumps(record) + "\n")
    with pytest.raises(ValueError, match=f"^record 2: {message}"):
        replay([GOOD, record], "dynamic")
    with pytest.raises(ValueError, match=f"trace.jsonl: line 3: {message}"):
        replay(path, "dynamic")


@pytest.mark.parametrize("scale", [math.nan, math.inf, -math.inf, object()])
def test_scales_that_json_does_not_have(scale: object) -> None:
    with pytest.raises(ValueError, match="^record 1: scale = .*: expected a number of 1.401e-45 or more"):
        replay([GOOD | {"scale": scale}], "dynamic")


@pytest.mark.parametrize("finite", [np.bool_(True), np.isfinite(np.ones(3)).all(), np.array(True)])
@pytest.mark.parametrize("max_abs", [np.float32(1.5), np.float16(1.5), np.longdouble(1.5), np.array(1.5)])
def test_records_may_hold_numpy_values(finite: object, max_abs: object) -> None:
    expected = replay([{"step": 7, "scale": 2, "gradients": {"finite": True, "max_abs": 1.5}}], "dynamic")
    gradients = {"finite": finite, "max_abs": max_abs}
    assert replay([{"step": np.int64(7), "scale": np.float64(2.0), "gradients": gradients}], "dynamic") == expected


def test_a_histogram_stands_for_its_record() -> None:
    def counts(step: dict) -> dict:
        return step | {"gradients": step["gradients"] | {"histogram": step["gradients"]["histogram"].record()}}

    steps = trace(20)
    assert replay(steps, "popart") == replay(map(counts, steps), "popart")
    about = {"finite": True, "max_abs": 1.0, "histogram": halfscope.Histogram(gradients(1), format="bf16")}
    with pytest.raises(ValueError, match="^record 2: a Histogram of bf16: give one of fp16$"):
        replay([steps[0], GOOD | {"gradients": about}], "popart")


def test_numpys_false_is_an_overflow() -> None:
    found = replay([{"step": 1, "scale": 2.0, "gradients": {"finite": np.bool_(False)}}], "dynamic")
    assert found.not_finite == 1 and found.runs[0].overflow_steps == (1,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: replay([], "dynamic"), ValueError, "there is no step in the trace"),
        (lambda: replay("/nowhere/trace.jsonl", "dynamic"), ValueError, "/nowhere/trace.jsonl: No such file"),
        (lambda: replay([GOOD], "dynamic", patience=3), ValueError, "patience: none of the scalers has this option"),
        (lambda: replay([GOOD], ["dynamik"]), ValueError, "did you mean 'dynamic'"),
        (lambda: replay([GOOD], "popart"), ValueError, "step 1 has no histogram"),
        (lambda: replay(GOOD, "dynamic"), TypeError, "a list of a dictionary per step"),
    ],
)
def test_what_replay_refuses(call, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_all_leaves_out_what_needs_histograms() -> None:
    with pytest.warns(UserWarning, match="leaving out popart: the trace has no histograms"):
        found = replay([GOOD], "all")
    assert len(found.runs) == len(REPLAYED) - 1


def test_what_no_trace_holds_is_not_replayed() -> None:
    assert set(halfscope.list_scalers().index) - set(REPLAYED) == {"layerwise"}
    with pytest.raises(ValueError, match="layerwise cannot be replayed"):
        replay([GOOD], "layerwise")

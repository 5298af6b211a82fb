"""The package and the command line on the same tensors and traces: the same numbers, to the last bit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import halfscope
from command import analyzed, command
from dlpack import bfloat16
from recording.source_tree import PROGRAM

LOGS = Path(__file__).parents[1] / "experiments" / "logs"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def assert_same(ours: dict, theirs: dict) -> None:
    """The same keys in the same order, the same integers, and the same doubles to the bit, written as Python does."""
    assert json.dumps(ours, indent=1) == json.dumps(theirs, indent=1)


def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    bits = random.integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
    wide = random.normal(0, 1, 50_000) * 2.0 ** random.uniform(-45, 10, 50_000)
    return {
        "gradient": random.normal(0, 1e-7, (1000, 1049)).astype(np.float32),  # longer than a block of the summary
        "every.bit.pattern": bits,
        "half": random.normal(0, 1e-5, (7, 11, 13)).astype(np.float16),
        "double": wide,
        "beyond float32": np.array([1e-320, 1e300, -1e-50, 1.0, 2.0**-24 * (1 - 2.0**-50)]),
        "zeros": np.zeros(9, np.float32),
        "empty": np.zeros((3, 0), np.float32),
        "one": np.array(0.1, np.float32),
    }


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("fp16", {}),
        ("bf16", {"tolerance": 0.02}),
        ("fp8_e4m3", {"headroom": 0}),
        ("fp8_e5m2", {"tolerance": 0.5, "headroom": 7}),
        ("e5m10", {}),
        ("e4m5", {}),
    ],
)
def test_analyze(format: str, options: dict, tmp_path: Path) -> None:
    found = tensors()
    np.savez(tmp_path / "tensors.npz", **found)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    theirs = analyzed(tmp_path / "tensors.npz", "--format", format, *words)
    assert_same(halfscope.analyze(found, format=format, **options).to_dict(), theirs)


def test_analyze_finds_a_scale(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    found = {f"layer{i}": random.normal(0, 1e-6 * 2**i, (4, 500)).astype(np.float32) for i in range(12)}
    np.savez(tmp_path / "tensors.npz", **found)
    analysis = halfscope.analyze(found)
    assert analysis.recommended_scale_log2 is not None and "it fits all 12 tensors" in analysis.verdict
    assert_same(analysis.to_dict(), analyzed(tmp_path / "tensors.npz"))


def test_analyze_bfloat16(tmp_path: Path) -> None:
    values = np.random.default_rng(9).normal(0, 1e-6, 5000).astype(np.float32)
    values = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    data = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    entry = {"layer": {"dtype": "BF16", "shape": [len(values)], "data_offsets": [0, len(data)]}}
    header = json.dumps(entry).encode()
    path = tmp_path / "tensors.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    assert_same(halfscope.analyze({"layer": bfloat16(values)}).to_dict(), analyzed(path))


def trace(histograms: bool = True) -> list[dict]:
    """Sixty steps at two scales, of which every seventh is not finite."""
    random = np.random.default_rng(10)
    steps = []
    for step in range(1, 61):
        scale = 1024.0 if step < 30 else 3000.0
        values = (random.normal(0, 2.0 ** random.integers(-12, -2), 500) * scale).astype(np.float32)
        finite = step % 7 != 0
        largest = float(np.abs(values.astype(np.float16)).max())
        gradients = {"finite": finite, "max_abs": largest if finite else None}
        if histograms:
            gradients["histogram"] = halfscope.Histogram(values).record()
        steps.append({"step": step, "scale": scale, "gradients": gradients})
    return steps


@pytest.mark.parametrize(
    ("scalers", "options"),
    [
        ("all", {}),
        (["dynamic", "megatron", "1024", "0.5"], {"growth_interval": 5}),
        (["headroom", "fairseq", "deepspeed"], {"initial_scale": 2.0**20, "margin": 2, "min_scale": 2.0**-3}),
    ],
)
def test_replay(scalers: str | list[str], options: dict, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(step) + "\n" for step in trace()))
    names = scalers if isinstance(scalers, str) else ",".join(scalers)
    words = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    theirs = json.loads(command("replay", path, "--scaler", names, *words))
    for source in (path, str(path), trace()):
        assert_same(halfscope.replay(source, scalers, **options).to_dict(), theirs)


@pytest.mark.parametrize(
    ("unit", "left", "right"),
    [
        ("mxf8f6f4", "mxfp8_e4m3", "mxfp6_e2m3/floor"),
        ("mxf4", "mxfp4/even", "mxfp4"),
        ("mxf4nvf4", "nvfp4", "nvfp4/four_over_six_mae_448"),
        ("mxf4nvf4", "block(fp4_e2m1, 1x16, e8m0/rceil)", "block(fp4_e2m1, 1x16, e8m0/floor)"),
    ],
)
def test_products_of_blocks(unit: str, left: str, right: str) -> None:
    random = np.random.default_rng(2)
    a, b = (random.normal(size=(2, 20, 70)) * 2.0 ** random.integers(-9, 9, (2, 20, 70))).astype(np.float32)
    lines = [" ".join(f"0x{bits:08x}" for bits in [*x.view(np.uint32), *y.view(np.uint32), 0]) for x, y in zip(a, b)]
    words = [PROGRAM, "calc", "dot", "--order", unit, "--input", f"{left},{right}", "--stdin"]
    answers = subprocess.run(words, input="\n".join(lines), capture_output=True, check=True, text=True).stdout
    theirs = np.array([int(line.split()[0], 16) for line in answers.splitlines()], np.uint32)
    ours = [halfscope.matmul(x, y[:, None], operands=(left, right), order=unit)[0] for x, y in zip(a, b)]
    np.testing.assert_array_equal(theirs, np.array(ours, np.float32).view(np.uint32))


@pytest.mark.parametrize("name", ["deepspeed", "megatron"])
def test_replay_of_a_log(name: str) -> None:
    path = LOGS / f"{name}.log"
    theirs = json.loads(command("replay", path, "--scaler", "all", "--set", "growth_interval=20"))
    with pytest.warns(UserWarning, match="leaving out .*: a log does not hold the gradients' magnitudes"):
        ours = halfscope.replay(path, "all", growth_interval=20)
    assert_same(ours.to_dict(), theirs)
    assert ours.log is not None and ours.log.format == name
    assert list(ours.to_pandas()["gradients"]) == [run["gradients"] for run in theirs["scalers"]]
    assert list(ours.scale_log2.index) == theirs["step_numbers"]
    assert len(ours.scale_log2.columns) == len(ours.runs)
    assert ours.plot().axes


WRITTEN = {
    "csv": "step,loss_scale,grad_norm\n1,65536,inf\n2,32768,1.5\n3,32768,nan\n",
    "cut": "step,loss_scale\n1,65536\n2,32768\n3,32",
    "two scales": "step=50 loss_scale=64 disc/loss_scale=8\nstep=100 loss_scale=32 disc/loss_scale=8\n",
    "trainer": "{'loss': '0', 'grad_norm': 'nan', 'epoch': 0.1}\n{'loss': '2', 'grad_norm': '1.5', 'epoch': 0.2}\n",
    "nested": '{"step": 1, "scaler": {"scale": 64}}\n{"step": 2, "scaler": {"scale": 32}}\n',
    "stopped": "iteration=92 loss: 2.5\nFloatingPointError: Loss became infinite or NaN at iteration=93!\n",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_verdict_on_a_log_is_that_of_the_command(name: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(WRITTEN[name])
    theirs = json.loads(command("replay", path, "--scaler", "dynamic"))
    ours = halfscope.replay(path, "dynamic")
    assert ours.verdict == theirs["verdict"] != ""
    assert_same(ours.to_dict(), theirs)
    alone = halfscope.replay(path)
    assert alone.verdict == ours.verdict
    assert_same(alone.to_dict(), json.loads(command("replay", path)))


def test_a_trace_wants_scalers() -> None:
    step = {"step": 1, "scale": 65536, "gradients": {"finite": True, "max_abs": 12.5}}
    with pytest.raises(ValueError, match="^replay: a trace needs scalers"):
        halfscope.replay([step])


def test_a_log_that_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("epoch 1\n")
    with pytest.raises(ValueError, match="train.log: .* step"):
        halfscope.replay(path, "dynamic")
    with pytest.raises(ValueError, match="^headroom looks at the gradients' largest magnitude"):
        halfscope.replay(LOGS / "megatron.log", ["dynamic", "headroom"])


def test_the_scalers_and_their_options() -> None:
    listed = json.loads(subprocess.run([PROGRAM, "list", "scalers", "--json"], capture_output=True, check=True).stdout)
    ours = halfscope.list_scalers()
    assert list(ours.index) == [entry["name"] for entry in listed["scalers"]]
    for entry in listed["scalers"]:
        assert ours["summary"][entry["name"]] == entry["summary"]
        assert ours["options"][entry["name"]] == entry["options"]

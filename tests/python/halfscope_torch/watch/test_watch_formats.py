"""watch(format=...): counts, records, sentences and figures are about that format, and say so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope import plotting
from halfscope.report.page import write_report
from halfscope.results import read_experiment
from halfscope.results.loss_scales import advice, baseline
from halfscope.torch import watch
from halfscope.torch.device import waiting
from planted import ELEMENTS, Planted, Scale, records, train
from rounding_oracle import FORMATS, cast, lost


def spread(seed: int, low: int, high: int) -> torch.Tensor:
    """Numbers of either sign, with exponents from low to high; a tenth are zeros."""
    generator = np.random.default_rng(seed)
    values = generator.choice([-1, 1], ELEMENTS) * 2.0 ** generator.uniform(low, high, ELEMENTS)
    return torch.from_numpy(np.where(generator.random(ELEMENTS) < 0.1, 0, values).astype(np.float32))


def watched_step(format: str, folder: Path | None = None) -> tuple[object, dict[str, np.ndarray]]:
    """One step of w x with SGD, and what the tensors hold."""
    model = Scale()
    inputs, gradient = spread(1, -20, 17), spread(2, -138, 0)
    gradient[::2] = spread(3, -30, 0)[::2]
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0**-16)
    before = model.weight.detach().numpy().copy()
    with watch(model, 1, optimizer=optimizer, format=format, out=folder) as watched:
        (model(inputs) * gradient).sum().backward()
        optimizer.step()
    after = model.weight.detach().numpy()
    tensors = {
        "activation": (before * inputs.numpy()), "activation_gradient": gradient.numpy(),
        "weight_gradient": model.weight.grad.numpy(), "before": before, "update": after - before,
    }  # fmt: skip
    return watched, tensors


@pytest.mark.parametrize("format", FORMATS)
def test_counts_are_those_of_rounding_to_the_format(format: str, tmp_path: Path) -> None:
    watched, tensors = watched_step(format, tmp_path / "mine")
    (line,) = records(tmp_path / "mine", "metrics.jsonl")
    written = {record["role"]: record for record in line["tensors"]}
    for role in ("activation", "activation_gradient", "weight_gradient"):
        expected = cast(tensors[role], format)
        (found,) = watched.histograms(role).values()
        effect = found.what_if(1)
        assert (effect.flushed, effect.subnormal, effect.overflow) == expected and found.format == format
        assert tuple(written[role][key] for key in expected._fields) == expected
        assert watched.histogram(role) == found
    expected = lost(tensors["before"], tensors["update"], format)
    assert [update["lost"] for update in line["updates"]] == [expected] and expected > 0
    assert watched.format == format == watched.advise_scale().format


def test_the_oracle_is_float16() -> None:
    values = np.concatenate(
        [spread(1, -30, 17).numpy(), np.float32([65504, 65519.99, 65520, 2.0**-25, 2.0**-24 * 1.5])]
    )
    from rounding_oracle import rounded

    with np.errstate(over="ignore"):
        assert (rounded(values, "fp16") == values.astype(np.float16)).all()


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_fp16_is_what_was_always_written(tmp_path: Path) -> None:
    for name, options in (("a", {}), ("b", {"format": "fp16"}), ("c", {"format": "e5m10"})):
        model = Planted()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        with watch(model, 1, optimizer=optimizer, out=tmp_path / name / "mine", **options):
            train(model, optimizer, 2)
    first = files_of(tmp_path / "a")
    assert first == files_of(tmp_path / "b") == files_of(tmp_path / "c")
    assert not any(b'"format"' in contents for contents in first.values())


@pytest.mark.parametrize("format", ["bf16", "fp8_e4m3"])
def test_records_name_their_format_and_are_read_back(format: str, tmp_path: Path) -> None:
    watched, _ = watched_step(format, tmp_path / "mine")
    run = tmp_path / "mine/watched/seed0"
    assert json.loads((run / "config.json").read_text())["format"] == format
    assert {line["format"] for line in records(tmp_path / "mine", "metrics.jsonl")} == {format}
    assert {line["format"] for line in records(tmp_path / "mine", "histograms.jsonl")} == {format}
    experiment = read_experiment(tmp_path / "mine")
    found = experiment.histogram("watched", "weight_gradient")
    effect = watched.histogram("weight_gradient").what_if(1)
    assert found.format == format and found.outcome().flushed * found.elements == effect.flushed
    assert advice(experiment, baseline(experiment)).verdict == watched.advise_scale().verdict
    name = {"bf16": "BF16", "fp8_e4m3": "FP8 E4M3"}[format]
    page = write_report(tmp_path / "mine").read_text()
    assert f"A PyTorch model, watched for {name}" in page and f"<td>{format}</td>" in page
    assert f"As {name}, unscaled" in plotting.gradient_histogram(experiment, "watched").get_supxlabel()
    assert f"Updates lost in {name}" in plotting.lost_updates(experiment).axes[0].get_title(loc="left")
    assert f"Effect of {name} on" in plotting.scale_window(experiment).get_suptitle()
    assert f"become zero in {name}" in plotting.flushed_map(experiment).get_suptitle()
    scaled = plotting.scaled_gradient_histogram(experiment, "watched", "weight_gradient", 3)
    assert f"as {name} sees them" in scaled.get_suptitle()


def test_formats_are_not_mixed(tmp_path: Path) -> None:
    watched_step("bf16", tmp_path / "mine")
    with open(tmp_path / "mine/watched/seed0/histograms.jsonl", "a", encoding="utf-8") as file:
        record = {"step": 2, "tensor": "", "role": "weight_gradient", "scale": 1.0, **halfscope.Histogram().record()}
        file.write(json.dumps(record) + "\n")
    with pytest.raises(ValueError, match="^histograms for bf16 and fp16 cannot be merged; give those for one format$"):
        read_experiment(tmp_path / "mine").histogram("watched", "weight_gradient")
    watched, _ = watched_step("bf16")
    with pytest.raises(ValueError, match="the histogram is for bf16; loss scalers are replayed for fp16$"):
        halfscope.replay(watched.trace(), "dynamic")
    with pytest.raises(ValueError, match="line 1: the histogram is for bf16"):
        halfscope.replay(tmp_path / "mine/watched/seed0/metrics.jsonl", "dynamic")


def small_step(format: str, factor: float = 1.0, dtype: torch.dtype = torch.float32) -> str:
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, format=format) as watched:
        (model(factor * torch.randn(8, 16).to(dtype)).float().sum()).backward()
        optimizer.step()
    return watched.verdict


@pytest.mark.parametrize("format", ["bf16", "fp32", "tf32"])
def test_a_format_with_the_range_of_fp32_needs_no_loss_scale(format: str) -> None:
    assert f"No loss scale is needed: {format} has the exponents of FP32\n" in small_step(format)


def test_sentences_name_the_format() -> None:
    verdict = small_step("fp8_e4m3", 1e5)
    assert verdict.split("\n\n")[-1].startswith(
        "FP8 E4M3 overflows in the outputs of 1 of 1 layers, which no loss scale helps: "
    )
    assert "Keep these layers in FP32 or BF16.\n" in verdict
    assert "without loss scaling FP8 E4M3 flushes 0.0 % of the activation gradients" in verdict
    assert "FP8 E4M3 weights would lose" in verdict and "FP16" not in verdict
    assert "trainings" not in verdict  # FP16's were counted
    assert "in the run's own format, before any cast to BF16" in small_step("bf16", 3e38)


@pytest.mark.parametrize(
    ("format", "dtype", "says"),
    [
        ("bf16", torch.bfloat16, "were BF16 already"),
        ("fp32", torch.bfloat16, "were BF16 already"),
        ("fp16", torch.bfloat16, None),  # holds more than FP16
        ("fp8_e4m3", torch.bfloat16, None),
        ("fp8_e5m2", torch.float16, None),
        ("bf16", torch.float16, "were FP16 already"),
    ],
)
def test_gradients_that_their_own_format_has_flushed(format: str, dtype: torch.dtype, says: str | None) -> None:
    model = Scale().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, format=format) as watched:
        model(torch.ones(ELEMENTS, dtype=dtype)).sum().backward()
        optimizer.step()
    verdict = watched.verdict
    assert ("already" in verdict) is bool(says) and (says or "") in verdict
    if says:
        assert "Watch a run in FP32 to know." in verdict and f"From what {says[5:9]} has left: " in verdict


@pytest.mark.parametrize("format", ["bf16", "fp8_e4m3", "e5m7"])
def test_counts_by_pytorch_are_the_same(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched_step(format, tmp_path / "host")
    monkeypatch.setitem(waiting.countings, "cpu", waiting.BY_PYTORCH)
    watched_step(format, tmp_path / "device")

    def of(name: str, file: str) -> list[dict]:
        return sorted(records(tmp_path / name, file), key=lambda line: line.get("role", ""))

    assert of("host", "histograms.jsonl") == of("device", "histograms.jsonl")
    (host,), (device,) = of("host", "metrics.jsonl"), of("device", "metrics.jsonl")
    assert host["updates"][0]["lost"] == device["updates"][0]["lost"]
    assert host["gradients"] == device["gradients"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"format": "fp61"}, ValueError, "^watch: format='fp61': unknown format"),
        ({"format": "mxfp44"}, ValueError, "^watch: format='mxfp44': unknown block format 'mxfp44'; did you mean"),
        ({"format": "block(fp4_e2m1, 1x16, e8m0/up)"}, ValueError, "unknown rule of e8m0 scales: 'up'"),
        ({"format": "e9m3"}, ValueError, "^watch: format='e9m3': .*X from 2 to 8"),
        ({"format": 16}, TypeError, "^watch: format=16; give a name, such as 'bf16'"),
        ({"observe_roles": "weights"}, ValueError, "^watch: observe_roles='weights'; give 'optimizer_state'"),
        ({"observe_roles": ["optimizer_state", 3]}, ValueError, "^watch: observe_roles="),
    ],
)
def test_a_clear_error(options: dict, error: type, message: str) -> None:
    model = Planted()
    with pytest.raises(error, match=message) as raised:
        watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0), **options)
    assert "\n" not in str(raised.value)

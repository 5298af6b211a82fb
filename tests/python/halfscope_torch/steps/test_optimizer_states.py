"""State of optimizers after watched steps: Adam's m and v, SGD's momentum, beside NumPy's float16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from halfscope.torch import watch
from halfscope.torch.device import waiting
from planted import ELEMENTS, Planted, Scale, Scaler, records, train
from rounding_oracle import cast

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
ADAM = {"exp_avg", "exp_avg_sq"}
OPTIMIZERS = {
    "Adam": (lambda p: torch.optim.Adam(p, foreach=False), ADAM),
    "AdamW": (lambda p: torch.optim.AdamW(p, amsgrad=True), {*ADAM, "max_exp_avg_sq"}),
    "foreach": (lambda p: torch.optim.Adam(p, foreach=True), ADAM),
    "fused": (lambda p: torch.optim.Adam(p, fused=True), ADAM),
    "SGD": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), {"momentum_buffer"}),
    "RMSprop": (lambda p: torch.optim.RMSprop(p, momentum=0.9), {"square_avg", "momentum_buffer"}),
    "plain SGD": (lambda p: torch.optim.SGD(p, lr=0.1), set()),
}


def spread(seed: int) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    values = 2.0 ** generator.uniform(-30, 10, ELEMENTS)
    return torch.from_numpy(np.where(generator.random(ELEMENTS) < 0.1, 0, values).astype(np.float32))


def as_float16(values: np.ndarray) -> tuple[int, int, int]:
    """Flushed, subnormal, overflow of the nonzero ones, by NumPy's own float16."""
    with np.errstate(over="ignore"):
        half = np.abs(values[values != 0].astype(np.float16))
    return int((half == 0).sum()), int(((half > 0) & (half < np.float16(2.0**-14))).sum()), int(np.isinf(half).sum())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_are_counted_as_numpy_rounds_them(name: str, tmp_path: Path) -> None:
    make, keys = OPTIMIZERS[name]
    model = Planted()
    optimizer = make(model.parameters())
    expected: dict[str, np.ndarray] = {}
    with watch(model, 2, optimizer=optimizer, observe_roles="optimizer_state", out=tmp_path / "mine") as watched:
        for step in (1, 2, 3):
            optimizer.zero_grad()
            (model(torch.ones(ELEMENTS)) * spread(step)).sum().backward()
            optimizer.step()
            if step < 3:  # the watched ones
                for parameter_name, parameter in model.named_parameters():
                    for key in keys:
                        values = optimizer.state[parameter][key].numpy().copy()
                        tensor = f"{parameter_name}.{key}"
                        expected[tensor] = np.append(expected.get(tensor, np.float32([])), values)
    found = watched.histograms("optimizer_state")
    assert found.keys() == expected.keys() and len(found) == 2 * len(keys)
    for tensor, values in expected.items():
        effect = found[tensor].what_if(1)
        assert (effect.flushed, effect.subnormal, effect.overflow) == as_float16(values)
        assert effect.flushed > 0 or name == "RMSprop"  # whose momentum is of normalised steps
        assert found[tensor].zeros == int((values == 0).sum()) > 0
    lines = [line for line in records(tmp_path / "mine", "histograms.jsonl") if line["role"] == "optimizer_state"]
    assert {(line["step"], line["tensor"]) for line in lines} == {(step, name) for step in (1, 2) for name in expected}
    steps = [line["tensors"] for line in records(tmp_path / "mine", "metrics.jsonl") if "tensors" in line]
    for tensor in expected:
        counters = [line for step in steps for line in step if line["tensor"] == tensor]
        assert sum(line["flushed"] for line in counters) == as_float16(expected[tensor])[0]


def test_the_verdict_tells_states_apart() -> None:
    model = Scale()
    optimizer = torch.optim.Adam(model.parameters())
    with watch(model, 1, optimizer=optimizer, observe_roles=["optimizer_state"]) as watched:
        (model(torch.ones(ELEMENTS)) * torch.tensor([2.0**-14, 2.0**12]).repeat(ELEMENTS // 2)).sum().backward()
        optimizer.step()
    # exp_avg is a tenth of the gradient, exp_avg_sq a thousandth of its square.
    assert (
        "FP16 optimizer state would flush 0.0 % of exp_avg and 50.0 % of exp_avg_sq: keep it in FP32."
        in watched.verdict
    )
    model, optimizer = Scale(), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)
    with watch(model, 1, optimizer=optimizer, observe_roles="optimizer_state", format="fp8_e4m3") as watched:
        (model(torch.ones(ELEMENTS)) * 2.0**10).sum().backward()
        optimizer.step()
    says = "FP8 E4M3 optimizer state would flush 0.0 % of momentum_buffer and overflow in 1000 elements of "
    assert f"{says}momentum_buffer: keep it in FP32." in watched.verdict


def test_it_is_counted_only_where_asked_for() -> None:
    model = Planted()
    optimizer = torch.optim.Adam(model.parameters())
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 1)
    assert watched.histograms("optimizer_state") == {} and "optimizer state" not in watched.verdict


def test_skipped_steps_leave_it_out() -> None:
    model = Planted()
    optimizer, scaler = torch.optim.Adam(model.parameters()), Scaler(1024.0, skips={1, 3})
    with watch(model, 1, optimizer=optimizer, scaler=scaler, observe_roles="optimizer_state") as watched:
        train(model, optimizer, 3, scaler)
    assert {found.elements for found in watched.histograms("optimizer_state").values()} == {ELEMENTS}


def test_state_in_16_bits_is_named() -> None:
    model = Scale().half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with watch(model, 1, optimizer=optimizer, observe_roles="optimizer_state") as watched:
        model(torch.ones(ELEMENTS).half()).sum().backward()
        optimizer.step()
    verdict = watched.verdict
    assert "Optimizer state: 1 tensor came as FP16 already (weight.momentum_buffer): 0 of 1000 elements are" in verdict
    assert "FP16 optimizer state would" not in verdict


def test_a_parameter_without_axes_and_a_loaded_state() -> None:
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.Adam(model.parameters())
    with watch(model, 1, optimizer=optimizer, observe_roles="optimizer_state") as watched:
        for _ in range(2):
            optimizer.zero_grad()
            (model.scale * 2.0**-20).backward()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
    found = watched.histograms("optimizer_state")
    assert found.keys() == {"scale.exp_avg", "scale.exp_avg_sq"}
    assert {histogram.elements for histogram in found.values()} == {2}


@pytest.mark.parametrize("format", ["bf16", "fp8_e5m2"])
@pytest.mark.parametrize("way", ["ON_HOST", "BY_PYTORCH"])
def test_other_formats(format: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(waiting.countings, "cpu", getattr(waiting, way))
    model = Scale()
    optimizer = torch.optim.Adam(model.parameters())
    with watch(model, 1, optimizer=optimizer, observe_roles="optimizer_state", format=format) as watched:
        (model(torch.ones(ELEMENTS)) * spread(0)).sum().backward()
        optimizer.step()
    for key in ADAM:
        effect = watched.histograms("optimizer_state")[f"weight.{key}"].what_if(1)
        expected = cast(optimizer.state[model.weight][key].numpy(), format)
        assert (effect.flushed, effect.subnormal, effect.overflow) == expected

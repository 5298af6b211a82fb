"""tools/bench_scale.py with a small network: each door is measured, and the figures are written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools"))
import bench_scale

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def small() -> bench_scale.Training:
    model, x = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)), torch.randn(4, 16)
    return bench_scale.training_of(model, lambda: model(x).square().mean())


def test_every_door_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_scale, "NETWORKS", {"small": small})
    out = tmp_path / "scale.json"
    assert bench_scale.main(["small", "--rounds", "1", "--out", str(out)]) == 0
    written = json.loads(out.read_text())
    (network,) = written["networks"]
    assert network["weights"] == 16 * 32 + 32 + 32 * 16 + 16 and written["torch"] and written["threads"] == 1
    assert [row["door"] for row in network["rows"]] == list(bench_scale.DOORS)
    for row in network["rows"]:
        assert row["times"] > 0 and row["peaks"] >= 1 and row["step"] > 0, row


def test_an_unknown_network_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench_scale.main(["gpt5"])
    assert "no network 'gpt5'; give some of gpt2, llama-0.3b" in capsys.readouterr().err

"""TOML of a mixture's experiment: what `halfscope run` makes of it, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn

from halfscope.torch import FormatMixture, sensitivity
from recording.source_tree import PROGRAM
from scored_networks import two_layers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
PARTS = ("query", "key", "value", "output")


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in PARTS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = nn.functional.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x))
        return x + self.output(mixed)


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = Attention(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x)


class Llama(nn.Module):
    """Attention of two layers, whose names are those of the simulator's llama."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1, self.layer2 = Layer(32), Layer(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer2(self.layer1(x))


def mixture(bits: float = 5.0, groups: Any = None, seed: int = 0) -> FormatMixture:
    torch.manual_seed(seed)
    model = Llama().eval()
    with torch.no_grad():
        model.layer1.attention.value.weight[3] *= 16
    batches = list(torch.randn(4, 8, 6, 32))
    return sensitivity(model, batches, list(LARGEST.values()), groups=groups).choose(bits=bits)


def run(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "run", file.name, *options], cwd=file.parent, capture_output=True, text=True)


LARGEST = {6.0: "nvfp4", 7.5: "mxfp6_e2m3", 448.0: "mxfp8_e4m3"}  # numbers of the formats' elements


def formats_of(folder: Path) -> dict[str, set[str]]:
    """Formats of the operands in a run's first record, by layer, from their largest numbers."""
    record = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
    found: dict[str, set[str]] = {}
    for operand in record["operands"]:
        found.setdefault(operand["layer"], set()).add(LARGEST[operand["largest"]])
    return found


@needs_program
@pytest.mark.parametrize("seed", range(3))
def test_the_simulator_trains_the_mixture(seed: int, tmp_path: Path) -> None:
    chosen = mixture(groups=[], seed=seed)
    file = tmp_path / "mixed.toml"
    file.write_text(chosen.experiment("fp4-components"))
    done = run(file, "--size", "smoke", "--seeds", "1", "--set", "steps=1", "--threads", "1")
    assert done.returncode == 0, done.stderr
    for arm in ("fp32", "mixture", "uniform"):
        assert (tmp_path / f"results/mixed/{arm}/seed0/status").read_text().startswith("DONE")
    assert formats_of(tmp_path / "results/mixed/mixture/seed0") == {
        unit: {format} for unit, format in chosen.formats.items()
    }
    uniform = set.union(*formats_of(tmp_path / "results/mixed/uniform/seed0").values())
    assert len(uniform) == 1 and uniform == {"nvfp4"}


@needs_program
def test_layers_by_other_names(tmp_path: Path) -> None:
    model, x = two_layers()
    chosen = sensitivity(model, list(x.split(64)), ["mxfp4", "mxfp8_e4m3"]).choose(bits=6)
    file = tmp_path / "own.toml"
    file.write_text(chosen.experiment("fp4-components", {"one": "layer1.attention.query", "two": "layer2*"}))
    assert run(file, "--list-runs").returncode == 0
    file.write_text(chosen.experiment("fp4-components"))
    done = run(file, "--size", "smoke", "--seeds", "1")
    assert done.returncode == 2 and "no layer is called that" in done.stderr


def test_what_is_refused() -> None:
    model, x = two_layers()
    chosen = sensitivity(model, list(x.split(64)), ["mxfp4", "mxfp8_e4m3"]).choose(bits=6)
    with pytest.raises(ValueError, match="experiment: layers has no name of the unit 'two'; give layers="):
        chosen.experiment("fp4-components", {"one": "layer1"})
    with pytest.raises(ValueError, match="experiment: layer 'a, b' of the unit 'one'; give a name"):
        chosen.experiment("fp4-components", {"one": "a, b", "two": "c"})
    static = sensitivity(model, list(x.split(64)), ["nvfp4+static"]).choose(bits=5)
    with pytest.raises(ValueError, match="experiment: nvfp4.static has static scales, which the simulator has not"):
        static.experiment("fp4-components")

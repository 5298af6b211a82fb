"""Every result of halfscope.torch has a report: its keys by the schema, its words, its HTML, and its old calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import ablate, check, diagnose, emulate, lint, rescale, sensitivity, watch
from json_schema import faults

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Masked(nn.Module):
    """A mask that overflows in FP16, and a loss whose gradients are small."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.layer(x).masked_fill(torch.ones(4, 4) > 0, -1e9)
        return torch.softmax(scores, -1)


def trained(door: Any, model: nn.Module, **options: Any) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    with door(model, optimizer=optimizer, **options) as found:
        for _ in range(2):
            optimizer.zero_grad()
            (model(torch.ones(4, 4)).square().mean() * 1e-6).backward()
            optimizer.step()
    return found


def of_watch() -> Any:
    return trained(watch, Masked(), every=1)


def of_emulate() -> Any:
    return trained(lambda model, **options: emulate(model, "fp16", **options), Masked())


def of_bisect() -> Any:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    with torch.no_grad():
        model[0].weight.fill_(1e5)
    with emulate(model, "fp16_pure") as emulated:
        model(torch.ones(1, 4))
    return emulated.bisect(lambda: bool(model(torch.ones(1, 4)).isfinite().all()))


def of_ablate() -> Any:
    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Linear(2, 1)
        return model, torch.optim.SGD(model.parameters(), lr=1e-3)

    def train(run: Any) -> float:
        for _ in range(2):
            loss = run.model(torch.ones(1, 2)).square().mean()
            loss.backward()
            run.optimizer.step()
        return float(loss.detach())

    return ablate(make, train, {"fp32": "fp32", "fp16": "fp16_pure"}, seeds=2)


def of_diagnose(**options: Any) -> Any:
    model = Masked()
    return diagnose(model, lambda: model(torch.ones(4, 4)).square().mean(), **options)


def of_sensitivity() -> Any:
    return sensitivity(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3)), [torch.randn(16, 4)])


def of_rescale() -> Any:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    with torch.no_grad():
        model[0].weight *= 65536
    return rescale(model, [torch.randn(16, 4)])


RESULTS = {
    "check": lambda: check(Masked(), lambda: 1.0 * Masked()(torch.ones(4, 4)).sum()),
    "lint": lambda: lint(Masked(), torch.optim.Adam(Masked().parameters())),
    "diagnose": of_diagnose,
    "watch": of_watch, "emulate": of_emulate, "bisect": of_bisect, "ablate": of_ablate,
    "sensitivity": of_sensitivity, "rescale": of_rescale,
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_has_a_report_whose_keys_are_the_schemas(kind: str) -> None:
    torch.manual_seed(0)
    result = RESULTS[kind]()
    report = result.report
    assert report.kind == kind and list(faults(report.to_dict())) == []
    assert len(report) >= 1 and len(report.to_pandas()) == len(report)
    words = " ".join(str(report).split())
    assert words.startswith(" ".join(result.verdict.split())) and result.verdict == report.verdict
    assert report.findings[0].change.split()[0] in words
    for old in (result.verdict, result.report):
        with pytest.raises(TypeError, match="write "):
            old()
    assert result._repr_html_().startswith("<pre")


PLACED = {**RESULTS, "policy": lambda: of_diagnose(format="fp16_mixed")}


@pytest.mark.parametrize("kind", ["lint", "watch", "emulate", "diagnose", "policy"])
def test_a_finding_knows_its_file_and_its_line(kind: str) -> None:
    torch.manual_seed(0)
    found = [each.to_dict() for each in PLACED[kind]().report.findings]
    places = {(each["file"], each["line"]) for each in found if each["line"] is not None}
    text = Path(__file__).read_text().splitlines()
    assert len(places) == 1
    file, line = places.pop()
    assert file == __file__ and "-1e9" in text[line - 1]
    (told,) = [each for each in found if each["line"] is not None]
    assert ".py:" not in told["change"]

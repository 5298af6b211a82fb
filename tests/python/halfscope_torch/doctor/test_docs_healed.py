"""Every remedy that a page shows is typed into the page's own code, which PyTorch then runs in its own FP16."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import halfscope.torch
from doc_blocks import Block, read_blocks
from halfscope.torch.doctor.typing_edits import typed
from recording.pages import pages
from recording.source_tree import ROOT
from typed_remedies import distance, is_near

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
DOORS = ("check", "diagnose")


def shown() -> list[tuple[Block, Block]]:
    """Code whose output is a remedy that was tried in a search, and that output; a library's line is not typed."""
    pairs = [pair for page in pages() for pair in pairwise(read_blocks(ROOT / page))]
    tried = [(code, text) for code, text in pairs if "  Sure: tried: loss, results" in text.code]
    return [(code, text) for code, text in tried if ", called from " not in text.code]


def names_of(pairs: list[tuple[Block, Block]]) -> list[str]:
    return [code.place for code, _ in pairs]


class Calls:
    """Calls of doors that a page's code makes: reports, models and losses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports: list[Any] = []
        self.models: list[torch.nn.Module] = []
        self.losses: list[Callable] = []
        for name in DOORS:
            monkeypatch.setattr(halfscope.torch, name, self._noted(getattr(halfscope.torch, name)))

    def _noted(self, door: Callable) -> Callable:
        def call(model: torch.nn.Module, loss: Callable, *rest: Any, **named: Any) -> Any:
            self.reports.append(door(model, loss, *rest, **named))
            self.models.append(model)
            self.losses.append(loss)
            return self.reports[-1]

        return call


def ran(path: Path) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def outcome(calls: Calls, names: dict[str, Any], dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    """Loss and gradients of the last call's step, computed by PyTorch in a type."""
    model, loss = calls.models[-1].to(dtype), calls.losses[-1]
    tensors = {key: each for key, each in names.items() if isinstance(each, torch.Tensor) and each.is_floating_point()}
    names.update({key: each.to(dtype) for key, each in tensors.items()})
    model.zero_grad()
    value = loss()
    value.backward()
    gradients = [weight.grad.double().flatten() for weight in model.parameters() if weight.grad is not None]
    return float(value.detach()), torch.cat(gradients)


def is_harmed(calls: Calls, names: dict[str, Any], exact: tuple[float, torch.Tensor]) -> bool:
    try:
        return not is_near(distance(outcome(calls, names, torch.float16), exact))
    except RuntimeError:  # a constant that PyTorch refuses to convert
        return True


def test_pages_show_remedies() -> None:
    pages_shown = {code.page.name for code, _ in shown()}
    assert pages_shown == {"README.md", "check.md", "which-layer-makes-nan.md", "how-diagnose-works.md"}


@pytest.mark.parametrize("place", names_of(shown()))
def test_a_page_is_healed_by_what_it_shows(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = next(pair for pair in shown() if pair[0].place == place)
    path = tmp_path / "train.py"
    path.write_text(code.code)
    calls = Calls(monkeypatch)
    names = ran(path)
    exact = outcome(calls, names, torch.float32)
    assert is_harmed(calls, names, exact)
    report = calls.reports[-1]
    edits = [edit for found in report.findings for edit in found.edits]
    assert edits and " ".join(report.findings[0].change.split()) in " ".join(text.code.split())
    path.write_text(typed(code.code, edits))
    names = ran(path)
    assert is_near(distance(outcome(calls, names, torch.float32), exact))
    assert is_near(distance(outcome(calls, names, torch.float16), exact)), path.read_text()

"""Experiments whose loss is multiplied by a constant below 1 say so in their summary or their claim."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recording.source_tree import ROOT

tomllib = pytest.importorskip("tomllib", reason="from Python 3.11 on")
DEFINITIONS = sorted((ROOT / "experiments/definitions").glob("*.toml"))
SAYS = re.compile(r"multiplied by|weight of (its|the) loss")


def weights_of(definition: dict) -> list[float]:
    """Every `loss_weight` of the small size."""
    parts = [definition.get("settings", {}), *definition.get("arm", {}).values(), definition.get("grid", {})]
    found = [part["loss_weight"] for part in parts if "loss_weight" in part]
    return [weight for entry in found for weight in (entry if isinstance(entry, list) else [entry])]


def is_said(definition: dict) -> bool:
    return SAYS.search(f"{definition['summary']} {definition['claim']['text']}") is not None


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_loss_that_is_multiplied_is_said(path: Path) -> None:
    definition = tomllib.loads(path.read_text())
    assert is_said(definition) or not any(weight < 1 for weight in weights_of(definition))


def test_some_are_multiplied_and_some_are_not() -> None:
    smallest = [min([1, *weights_of(tomllib.loads(path.read_text()))]) for path in DEFINITIONS]
    assert min(smallest) < 1 / 128 and smallest.count(1) > 10


def test_a_summary_that_is_silent_is_found() -> None:
    assert not is_said({"summary": "loss scales for a detector", "claim": {"text": "A scale of 8 is enough."}})

"""tools/bench_amp.py on the CPU with tiny networks, beside a stand-in for halfscope that is ten times as fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[3]

# Every step takes 1 ms, 2 ms where all trackers are on, after 100 ms for the first.
HALFSCOPE = """#!/bin/bash
echo "$*" >>"$calls"
case "$*" in *no-such-arm*|*"$refuses"*) echo "halfscope: $refuses: refused" >&2; exit 2 ;; esac
ms=1
while [ $# -gt 1 ]; do
  [ "$1" != --out ] || out="$2"
  case "$2" in steps=*) steps="${2#steps=}" ;; trackers=all) ms=2 ;; esac
  shift
done
mkdir -p "$out/e/a/seed0"
echo "{\\"seconds\\": $(awk "BEGIN { print 0.1 + $steps * $ms / 1000 }")}" >"$out/e/a/seed0/summary.json"
"""


def run(folder: Path, *words: str, refuses: str = "nothing") -> tuple[dict, list[str]]:
    program = folder / "halfscope"
    program.write_text(HALFSCOPE)
    program.chmod(0o755)
    command = [sys.executable, ROOT / "tools/bench_amp.py", "--device", "cpu", "--quick", "--out", folder / "amp.json"]
    environment = os.environ | {"calls": str(folder / "calls"), "refuses": refuses}
    subprocess.run([*command, "--halfscope", program, *words], check=True, capture_output=True, env=environment)
    calls = (folder / "calls").read_text().splitlines()
    return json.loads((folder / "amp.json").read_text()), calls


def test_both_sides_of_every_network(tmp_path: Path) -> None:
    record, calls = run(tmp_path, "--networks", "cnn,detector,language-model")
    assert [network["name"] for network in record["networks"]] == ["cnn", "detector", "language-model"]
    for network in record["networks"]:
        ours, theirs = network["halfscope"], network["torch"]
        assert ours["plain"]["ms"] == pytest.approx(1) and ours["watched"]["ms"] == pytest.approx(2)
        assert ours["execution"] == "emulated"  # on the CPU
        assert theirs["plain"]["ms"] > 0 and theirs["watched"]["ms"] > 0
        assert network["times_faster"]["watched"] == pytest.approx(theirs["watched"]["ms"] / 2)
    # Outputs and gradients of leaves, and the gradients of all weights.
    tensors = [network["torch"]["watched"]["tensors"] for network in record["networks"]]
    assert tensors[0] == 12 + 12 + 10 and all(count > 10 for count in tensors)
    assert all(f"batch={8}" in call for call in calls) and any("vocabulary=50" in call for call in calls)


def test_a_run_that_fails_is_recorded(tmp_path: Path) -> None:
    record, _ = run(tmp_path, "--networks", "cnn", refuses="trackers=all")
    network = record["networks"][0]
    assert network["halfscope"]["failed"] == "halfscope: trackers=all: refused"
    assert list(network["times_faster"]) == ["plain"]

"""tools/compare_runs.py names the first record, tensor or entry of metadata that differs."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools/compare_runs.py"


def compare(*words: Path | str) -> subprocess.CompletedProcess:
    command = [sys.executable, TOOL, *words]
    return subprocess.run(command, capture_output=True, text=True)


def write(folder: Path, lines: list[str], name: str = "metrics.jsonl") -> Path:
    (folder / "arm/seed0").mkdir(parents=True, exist_ok=True)
    (folder / "arm/seed0" / name).write_text("".join(line + "\n" for line in lines))
    return folder


RECORD = '{"step": 7, "tensors": [{"tensor": "fc1", "flushed": 4}], "loss": 0.5}'


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([RECORD, RECORD.replace("4}", "5}")], "line 2: step 7: tensors[0].flushed: 4 | 5"),
        ([RECORD, RECORD.replace(', "loss": 0.5', "")], "line 2: step 7: loss: only in the first"),
        ([RECORD, RECORD.replace("0.5", "0.50")], "line 2: step 7: written differently, the same values"),
        ([RECORD], "line 2: "),
        ([RECORD, RECORD, RECORD], "line 3: "),
        ([RECORD, "{"], "line 2: "),
    ],
)
def test_the_first_difference_is_described(tmp_path: Path, lines: list[str], says: str) -> None:
    one, other = write(tmp_path / "a", [RECORD, RECORD]), write(tmp_path / "b", lines)
    done = compare(one, other)
    assert done.returncode == 1 and f"arm/seed0/metrics.jsonl: {says}" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_the_same_bytes_are_the_same(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a", [RECORD]), write(tmp_path / "b", [RECORD])
    write(one, [RECORD], "summary.jsonl")  # no record of a step: not compared
    assert compare(one, other).returncode == 0
    write(one, [RECORD], "histograms.jsonl")
    done = compare(one, other)
    assert done.returncode == 1 and "histograms.jsonl: only below" in done.stdout


def write_checkpoint(folder: Path, numbers: dict[str, list[float]], **metadata: str) -> Path:
    header, data = {"__metadata__": metadata}, b""
    for name, values in numbers.items():
        content = struct.pack(f"<{len(values)}f", *values)
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    path = write(folder, [RECORD]) / "arm/seed0/checkpoint/state.safetensors"
    path.parent.mkdir()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


@pytest.mark.parametrize(
    ("numbers", "step", "says"),
    [
        ({"weight": [1, 2], "bias": [3]}, "7", None),
        ({"weight": [1, 2.5], "bias": [3]}, "7", "weight differs"),
        ({"weight": [1, 2], "bias": [-0.0]}, "7", "bias differs"),
        ({"weight": [1, 2]}, "7", "bias: only in the first"),
        ({"weight": [1, 2], "bias": [3], "moment": [0]}, "7", "moment: only in the second"),
        ({"weight": [1, 2], "bias": [3]}, "8", "metadata step differs"),
        ({"bias": [3], "weight": [1, 2]}, "7", "the same tensors in another order"),
    ],
)
def test_checkpoints_count_where_they_are_asked_for(
    tmp_path: Path, numbers: dict[str, list[float]], step: str, says: str | None
) -> None:
    one = write_checkpoint(tmp_path / "a", {"weight": [1, 2], "bias": [3]}, step="7")
    other = write_checkpoint(tmp_path / "b", numbers, step=step)
    assert compare(one, other).returncode == 0
    done = compare("--checkpoints", one, other)
    where = "arm/seed0/checkpoint/state.safetensors"
    expected = (1, f"{where}: {says}\n") if says else (0, "2 files of records and checkpoints: the same bytes\n")
    assert (done.returncode, done.stdout) == expected


def test_nothing_to_compare_is_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "a", [RECORD])
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "missing"):
        done = compare(one, folder)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1

"""Writes folders as they are under experiments/recorded, of a CPU and of a GPU."""

from __future__ import annotations

import json
from pathlib import Path

CPU_REPORT = """\
one: a title

  arm         seeds  test accuracy %  95 % interval  diverged  skipped  flushed  lost updates  ms/step
  fp32            1            59.72              -         -        0    4.4 %        85.7 %      8.5
  fp16_pure       1                -              -    1 of 1        0    0.0 %        20.4 %     24.5

  overflows
  fp16_pure: step 1: conv1.weight was first

  verdict: none
"""

GPU_REPORT = """\
one: a title

  arm         seeds  test accuracy %   95 % interval  diverged  skipped  flushed  lost updates  ms/step  peak MiB
  fp32            3            70.12  69.00 .. 71.24         -        0    4.4 %        85.7 %      1.5      2048
  fp16_mixed      3            70.02  68.90 .. 71.14    1 of 3        0    4.4 %        85.7 %      0.7      1024

  verdict: none
"""


def write_record(folder: Path, device: str, report: str, experiment: str = "one") -> None:
    place = folder / device / experiment
    place.mkdir(parents=True)
    (place / "report.txt").write_text(report)
    (place / "summary.json").write_text(json.dumps({"paper": "Section 3.1: FP32 is matched."}))

"""A wrong HALFSCOPE_ISA is an exception of Python, on one thread and on several, not the end of the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("halfscope._core")

SCRIPT = """
import sys
import numpy as np
import halfscope
from halfscope import _core

_core.set_thread_count(int(sys.argv[1]))
matrix = np.ones((512, 512), np.float32)
numbers = matrix.ravel()
calls = {
    "round": lambda: halfscope.round(numbers, "fp16"),
    "histogram": lambda: halfscope.Histogram().update(numbers),
    "matmul": lambda: halfscope.matmul(matrix, matrix, order="tensor_core(hopper)"),
    "sum": lambda: halfscope.sum(matrix, 0, order="fp16_pairwise"),
    "lost_updates": lambda: halfscope.lost_updates(numbers, numbers),
}
for name, call in calls.items():
    try:
        call()
        print(name, "computed")
    except ValueError as error:
        print(name, error)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_every_computation_refuses_an_unknown_name(threads: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, threads],
        env={**os.environ, "HALFSCOPE_ISA": "foo"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split(" ", 1)[0] for line in lines] == ["round", "histogram", "matmul", "sum", "lost_updates"]
    for line in lines:
        assert "unknown instruction set in HALFSCOPE_ISA 'foo'" in line
        assert "one of: baseline, avx2, avx512" in line

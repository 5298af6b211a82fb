"""Processes of a test that train together over gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from recording.source_tree import ROOT


def run_ranks(script: str, case: str, folder: Path, size: int = 2) -> list[str]:
    """Runs `script CASE RANK SIZE FOLDER`, by default beside this file, for each rank; returns their output."""
    path = Path(__file__).parent / script
    modules = (ROOT / "lib" / "python", Path(__file__).parents[1] / "cases")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, modules)), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", path, case, str(rank), str(size), folder],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(size)
    ]  # fmt: skip
    try:
        ended = [process.communicate(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, messages) in zip(started, ended):
        assert process.returncode == 0, messages
    return [printed for printed, _ in ended]

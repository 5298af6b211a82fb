"""A Slurm on this machine for the tests that need one, with its state in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = ROOT / "tools" / "loopback-slurm"
PORT = "17817"  # beside that of a Slurm which somebody tries the tools on


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which sbatch and its relatives find it. Skips where Slurm cannot be installed."""
    folder = tmp_path_factory.mktemp("slurm")
    port = {**os.environ, "HALFSCOPE_SLURM_PORT": PORT}
    started = subprocess.run([LOOPBACK, "start", folder], env=port, capture_output=True, text=True)
    if started.returncode != 0 and shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip(f"slurmctld cannot be installed: {started.stderr.strip().splitlines()[-1]}")
    assert started.returncode == 0, started.stderr
    try:
        yield {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        stopped = subprocess.run([LOOPBACK, "stop", folder], capture_output=True, text=True)
        assert stopped.returncode == 0, stopped.stderr

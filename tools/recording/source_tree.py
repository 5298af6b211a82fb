"""Places in this source tree."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "experiments" / "halfscope"
RECORDED = ROOT / "experiments" / "recorded"


def recorded_folder() -> Path:
    """experiments/recorded, or what HALFSCOPE_RECORDED names."""
    return Path(os.environ.get("HALFSCOPE_RECORDED") or RECORDED)

"""Figures of docs/start/which-format-for-which-layer.md, drawn by the page's own code.

usage: draw_sensitivity.py [FOLDER]

The page prints to standard output. FOLDER: notebooks/figures by default. Needs PyTorch, SciPy, matplotlib.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from halfscope import plotting
from halfscope.plotting.svg import svg_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/start/which-format-for-which-layer.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def draw(folder: Path) -> None:
    """Runs the page's code in a folder of its own, and writes what it draws."""
    names: dict[str, Any] = {"__name__": "__docs__"}
    with tempfile.TemporaryDirectory() as workplace:
        os.chdir(workplace)
        for code in PYTHON.findall(PAGE.read_text()):
            exec(compile(code, PAGE.name, "exec"), names)
        os.chdir(ROOT)
    figures = {
        "sensitivity_cost_map": plotting.cost_map(names["found"]),
        "sensitivity_frontier": plotting.frontier([names["mixture"], *names["others"]]),
        "sensitivity_channel_costs": plotting.channel_costs(names["channels"]),
    }
    for name, figure in figures.items():
        (folder / f"{name}.svg").write_bytes(svg_of(figure))


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "notebooks/figures").resolve())

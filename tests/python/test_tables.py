"""Names in the package: its public names, its version, and the tables of `halfscope list`."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import halfscope
from recording.source_tree import PROGRAM, ROOT

FINITE = ("fp6_e3m2", "fp6_e2m3", "fp4_e2m1")  # formats without infinity and NaN, which saturate


@pytest.fixture(scope="module")
def listed() -> dict:
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    return json.loads(subprocess.run([PROGRAM, "list", "--json"], capture_output=True, check=True).stdout)


@pytest.mark.parametrize("kind", ["formats", "orders", "scalers"])
def test_the_tables_are_those_of_halfscope_list(kind: str, listed: dict) -> None:
    table = getattr(halfscope, f"list_{kind}")()
    expected = {entry["name"]: entry["summary"] for entry in listed[kind] if entry["name"] != "cublas"}  # a GPU's alone
    assert table["summary"].to_dict() == expected


def test_formats_have_their_limits() -> None:
    table = halfscope.list_formats()
    for name, row in table.iterrows():
        limits = np.array([row["largest"], row["smallest_normal"], row["smallest"]], np.float32)
        assert (halfscope.round(limits, name) == limits).all()
        if name not in ("fp32", "tf32", "bf16"):  # whose limits are float32's
            above, below = halfscope.round(np.float32([2 * row["largest"], row["smallest"] / 2]), name)
            assert below == 0
            assert above == row["largest"] if name in FINITE else not above < np.inf
    assert table.loc["fp16", "largest"] == 65504 and table.loc["fp16", "smallest"] == 2.0**-24
    assert (table.loc["fp8_e4m3"][["exponent_bits", "mantissa_bits", "largest"]] == [4, 3, 448]).all()


def test_version() -> None:
    assert halfscope.__version__ == re.search(r"VERSION ([0-9.]+) DESC", (ROOT / "CMakeLists.txt").read_text())[1]


def test_public_names_alone_are_shown() -> None:
    code = (
        "import halfscope, sys; print(*dir(halfscope)); print(*{'torch', 'numpy', 'halfscope._core'} & {*sys.modules})"
    )
    names, loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert names.split() == sorted(["__version__", *halfscope.__all__]) and loaded == ""
    assert "results" in dir(halfscope)  # imported here
    for name in halfscope.__all__:
        assert getattr(halfscope, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'import_module2'"):
        halfscope.import_module2

"""halfscope.compare_formats beside `halfscope formats` and counts of arrays that NumPy rounds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import halfscope
from command import command
from halfscope import compare_formats

FORMATS = ["fp8_e4m3", "mxfp8_e4m3", "mxfp6_e2m3", "nvfp4", "mxfp4/floor", "bf16", "block(fp8_e4m3, 1x64, e8m0/rceil)"]
FILES_ONLY = {"files", "skipped"}


def weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    even = generator.normal(0, 0.02, (48, 128)).astype(np.float32)
    spread = (generator.normal(0, 0.01, (40, 200)) * 2.0 ** generator.normal(0, 2, (40, 200))).astype(np.float32)
    return {"q_proj": even, "down_proj": spread, "bias": np.zeros(8, np.float32)}


@pytest.mark.parametrize("axis", [-1, 0])
def test_the_same_as_the_command(tmp_path: Path, axis: int) -> None:
    path = tmp_path / "weights.npz"
    given = weights()
    outlier = given["q_proj"].copy()
    outlier[(slice(None), 7) if axis == -1 else 7] *= 1000  # in every row of the blocks' axis
    given["outlier"] = outlier
    np.savez(path, **given)
    theirs = json.loads(command("formats", path, *(f"--format={name}" for name in FORMATS), "--axis", axis))
    ours = compare_formats(given, FORMATS, axis=axis).to_dict()
    assert "columns" in ours["tensors"][-1]["formats"][0]
    assert ours.pop("verdict").replace("max_error=0.05", "--max-error 5% (default)") == theirs.pop("verdict")
    for tensor in theirs["tensors"]:
        del tensor["file"]
    assert ours == {key: theirs[key] for key in theirs if key not in FILES_ONLY}
    assert compare_formats(path, FORMATS, axis=axis).to_dict()["tensors"] == ours["tensors"]


@pytest.mark.parametrize(("limit", "cheapest"), [(0.01, "bf16"), (0.05, "mxfp6_e2m3"), (0.3, "nvfp4"), (1e-5, None)])
def test_the_cheapest_within_the_limit(limit: float, cheapest: str | None) -> None:
    found = compare_formats({"q_proj": weights()["q_proj"]}, ["bf16", "mxfp6_e2m3", "nvfp4"], max_error=limit)
    assert found.cheapest == cheapest
    assert str(found) == found.verdict and found.verdict.startswith(cheapest or "No format stays under max_error=1e-05")
    assert list(found.sums().query("fits").index[-1:]) == ([cheapest] if cheapest else [])


def test_frames_have_the_counts_of_rounded_arrays() -> None:
    given = weights()
    found = compare_formats(given, FORMATS)
    frame, sums = found.to_pandas(), found.sums()
    assert found.formats == tuple(FORMATS) and found.tensors == tuple(given)
    for name, array in given.items():
        for format in ("mxfp8_e4m3", "nvfp4", "bf16"):
            rounded = halfscope.round(array, format).astype(float)
            row = frame.loc[(name, format)]
            assert row["elements"] == array.size
            assert row["flushed"] == ((array != 0) & (rounded == 0)).sum()
            norm = np.linalg.norm(array.astype(float))
            error = np.linalg.norm(rounded - array) / norm if norm else 0
            assert row["relative_error"] == pytest.approx(error, rel=1e-6)
    assert found.counts("down_proj", "mxfp4/floor").clipped > 0
    without_exponents = {"elements", "flushed", "clipped", "blocks", "overflow_blocks"}
    alone = halfscope.count_blocks(given["down_proj"], "mxfp4/floor")
    assert all(frame.loc[("down_proj", "mxfp4/floor"), key] == getattr(alone, key) for key in without_exponents)
    assert (sums["flushed"] == frame["flushed"].groupby(level="format").sum()[sums.index]).all()
    assert sums.loc["mxfp4/floor", "worst_tensor"] == "down_proj"


def test_page(tmp_path: Path) -> None:
    path, html = tmp_path / "weights.npz", tmp_path / "weights.html"
    np.savez(path, **weights())
    command("formats", path, "--format", "mxfp4", "--format", "fp8_e4m3", "--html", html)
    theirs = html.read_text()
    found = compare_formats(weights(), ["mxfp4", "fp8_e4m3"], rules=True)
    ours = found.explorer("weights.npz in 2 formats").write(html).read_text()
    assert ours.replace("max_error=0.05", "--max-error 5% (default)") == theirs
    assert found.formats == ("mxfp4", "fp8_e4m3")  # the rules of the page are not among them
    assert "<title>3 tensors in 2 formats" in found.explorer().page()
    assert found.explorer().widget().data in theirs.replace("--max-error 5% (default)", "max_error=0.05")


def test_a_format_by_itself_and_twice() -> None:
    assert compare_formats(weights(), "mxfp4").formats == ("mxfp4",)
    assert compare_formats(weights(), ["mxfp4", "nvfp4", "mxfp4"]).formats == ("mxfp4", "nvfp4")


def test_a_page_needs_the_rules() -> None:
    with pytest.raises(ValueError, match="^explorer: the other scale rules were not counted; give compare_formats rul"):
        compare_formats(weights(), "mxfp4").explorer()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"formats": "mxfp5"}, ValueError, "^compare_formats: unknown .*'mxfp5'"),
        ({"formats": []}, ValueError, "^compare_formats: give at least one format"),
        ({"tensors": {}}, ValueError, "^compare_formats: give at least one tensor"),
        ({"tensors": [1.0]}, TypeError, "^compare_formats: give a dictionary of arrays by name, not list"),
        ({"tensors": {"w": "text"}}, TypeError, "^compare_formats: 'w'"),
        ({"axis": 1}, ValueError, "^compare_formats: 'bias': axis 1 of an array with 1 axis"),
        ({"formats": [b"mxfp4"]}, TypeError, r"^compare_formats: formats = \[b'mxfp4'\]: give names"),
        ({"formats": None}, TypeError, "^compare_formats: formats = None: give names"),
        ({"axis": 1.5}, TypeError, "^compare_formats: 'float' object cannot be interpreted as an integer"),
        ({"max_error": "5%"}, TypeError, "^compare_formats: max_error = '5%': give the error"),
        ({"max_error": -1.0}, ValueError, "^compare_formats: max_error = -1.0: give"),
        ({"max_error": float("nan")}, ValueError, "^compare_formats: max_error = nan: give"),
        ({"tensors": "nowhere.npz"}, ValueError, "nowhere.npz"),
    ],
)
def test_a_clear_error(given: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        compare_formats(given.pop("tensors", weights()), given.pop("formats", FORMATS), **given)
    assert "\n" not in str(raised.value)


def test_a_counter_of_what_was_not_compared() -> None:
    with pytest.raises(KeyError, match="'q' was not compared; there are q_proj"):
        compare_formats(weights(), "mxfp4").counts("q", "mxfp4")

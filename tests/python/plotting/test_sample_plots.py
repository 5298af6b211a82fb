"""Sheets of the images that generators have made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from halfscope import plotting
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from synthetic import write_results


def write_samples(run: Path, samples: np.ndarray) -> None:
    values = samples.astype("<f4").tobytes()
    entry = {"dtype": "F32", "shape": samples.shape, "data_offsets": [0, len(values)]}
    header = json.dumps({"samples": entry}).encode()
    (run / "samples.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + values)


def numbered(count: int, first: float, channels: int = 1) -> np.ndarray:
    """Images of 2x3 pixels, each of one shade: `first`, and an eightieth more from each image to the next."""
    shades = first + np.arange(count) / 80
    return np.broadcast_to(shades[:, None, None, None], (count, 2, 3, channels))


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    folder = write_results(tmp_path)
    write_samples(folder / "fp32/seed0", numbered(70, -1))
    write_samples(folder / "fp16_mixed/seed1", numbered(20, -0.5))
    return read_experiment(folder)


def sheets(experiment: Experiment) -> dict[str, np.ndarray]:
    figure = plotting.sample_sheets(experiment)
    assert figure is not None
    return {axes.get_title(loc="left"): np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images}


def test_each_arm_with_images_has_its_sheet(experiment: Experiment) -> None:
    found = sheets(experiment)
    assert list(found) == ["fp32", "fp16_mixed"]
    for arm, first, count in (("fp32", -1, 32), ("fp16_mixed", -0.5, 20)):
        assert found[arm].shape == (2 * 2, 16 * 3)
        for place in range(32):
            down, across = divmod(place, 16)
            tile = found[arm][2 * down : 2 * down + 2, 3 * across : 3 * across + 3]
            shade = (first + place / 80 + 1) / 2 if place < count else 1
            assert np.allclose(tile, shade, atol=1e-6), (arm, place)


def test_images_of_three_channels_keep_their_colours(tmp_path: Path) -> None:
    folder = write_results(tmp_path)
    write_samples(folder / "fp32/seed0", numbered(40, -1, channels=3))
    assert sheets(read_experiment(folder))["fp32"].shape == (4, 48, 3)


def test_a_report_has_the_sheets_where_there_are_any(experiment: Experiment, tmp_path: Path) -> None:
    assert "samples" in [drawing.name for drawing in draw(experiment)]
    assert b"data:image/png;base64" in next(drawing.svg for drawing in draw(experiment) if drawing.name == "samples")
    without = read_experiment(write_results(tmp_path / "without"))
    assert plotting.sample_sheets(without) is None
    assert "samples" not in [drawing.name for drawing in draw(without)]


def test_a_broken_file_is_named(experiment: Experiment) -> None:
    path = experiment.folder / "fp32/seed0/samples.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="samples.safetensors: holds no images"):
        plotting.sample_sheets(read_experiment(experiment.folder))

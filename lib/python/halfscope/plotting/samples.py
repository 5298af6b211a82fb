"""Images that generators have made, uncurated: the same noise for every arm."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from halfscope.plotting.style import new_figure
from halfscope.results.experiment import Experiment

ROWS, COLUMNS = 2, 16  # images in an arm's sheet


def sample_sheets(experiment: Experiment) -> Figure | None:
    """The first 32 images of each arm's first run that made any, two arms side by side; None where none did."""
    sheets = {
        arm: samples
        for arm, runs in experiment.runs.items()
        if (samples := next((run.samples for run in runs if run.samples is not None), None)) is not None
    }
    if not sheets:
        return None
    down = -(-len(sheets) // 2)
    figure = new_figure(height=0.3 + 0.68 * down)
    all_axes = figure.subplots(down, 2, squeeze=False).ravel()
    for axes in all_axes:
        axes.set_axis_off()
    for axes, (arm, samples) in zip(all_axes, sheets.items()):
        axes.imshow(_mosaic(samples), cmap="gray", vmin=0, vmax=1, interpolation="none")
        axes.set_title(arm, fontsize=8, loc="left", pad=2)
    figure.suptitle("Made images: the first 32 of the same noise, none left out", x=0.01, ha="left", fontsize=10)
    return figure


def _mosaic(samples: np.ndarray) -> np.ndarray:
    """Images (count, height, width, channels) from -1 to 1 as one from 0 to 1; places without an image are white."""
    _, height, width, channels = samples.shape
    tiles = np.ones((ROWS * COLUMNS, height, width, channels), np.float32)
    chosen = samples[: ROWS * COLUMNS]
    tiles[: len(chosen)] = np.clip((chosen + 1) / 2, 0, 1)
    tiles = tiles.reshape(ROWS, COLUMNS, height, width, channels).transpose(0, 2, 1, 3, 4)
    mosaic = tiles.reshape(ROWS * height, COLUMNS * width, channels)
    return mosaic if channels == 3 else mosaic[..., 0]

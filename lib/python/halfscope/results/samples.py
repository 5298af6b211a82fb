"""Images that a run's model has made, as the program writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def read_samples(path: Path) -> np.ndarray:
    """The tensor "samples" (count, height, width, channels) of a safetensors file, from -1 to 1.

    Raises ValueError, naming the file, where it has none of four axes.
    """
    contents = path.read_bytes()
    start = 8 + int.from_bytes(contents[:8], "little")
    try:
        entry = json.loads(contents[8:start])["samples"]
        first, last = entry["data_offsets"]
        values = np.frombuffer(contents[start + first : start + last], "<f4")
        count, height, width, channels = entry["shape"]
        return values.reshape(count, height, width, channels)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: holds no images; delete it, or train the run again") from error

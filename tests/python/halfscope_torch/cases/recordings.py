"""Recordings that models of speech train on in tests."""

from __future__ import annotations

import random
import wave
from array import array
from pathlib import Path

TRANSCRIPTS = ("aab", "it's", "o", "a b c", "zz", "hello", "no no", "x")


def write_recordings(folder: Path) -> None:
    """Noise of several lengths, with transcripts."""
    numbers = random.Random(1)
    for i, transcript in enumerate(TRANSCRIPTS):
        with wave.open(str(folder / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(array("h", [numbers.randrange(-9000, 9000) for _ in range(3000 + 400 * i)]).tobytes())
        (folder / f"{i}.txt").write_text(transcript)

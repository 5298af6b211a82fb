"""Made-up data for runs that are compared with each other: the same on every machine, of the real data's shape."""

from __future__ import annotations

import random
import struct
from pathlib import Path


def _idx(extents: list[int], values: bytes) -> bytes:
    """An idx file of unsigned bytes."""
    return struct.pack(f">BBBB{len(extents)}I", 0, 0, 8, len(extents), *extents) + values


def write_images(folder: Path, train: int = 2000, test: int = 400) -> Path:
    """Grey images of 28x28 in ten classes: a bright block whose place is the label, in noise."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = random.Random(1)
    for split, count in (("train", train), ("t10k", test)):
        labels = bytes(i % 10 for i in range(count))
        images = bytearray(noise.randbytes(count * 28 * 28))
        for i, label in enumerate(labels):
            row, column = divmod(label, 4)
            for y in range(9 * row, 9 * row + 9):
                start = i * 784 + y * 28 + 7 * column
                images[start : start + 7] = bytes(128 + value // 2 for value in images[start : start + 7])
        (folder / f"{split}-images-idx3-ubyte").write_bytes(_idx([count, 28, 28], bytes(images)))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(_idx([count], labels))
    return folder


def write_text(path: Path, words: int = 60000, distinct: int = 800) -> Path:
    """A text whose next word depends on the one before, of `distinct` words or, as some come twice, a few less."""
    chance = random.Random(2)
    vocabulary = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 8))) for _ in range(distinct)
    ]
    followers = {word: chance.choices(vocabulary, k=4) for word in vocabulary}
    word, sentence = vocabulary[0], []
    lines = []
    for _ in range(words):
        word = chance.choice(followers[word]) if chance.random() < 0.8 else chance.choice(vocabulary)
        sentence.append(word)
        if len(sentence) == 12:
            lines.append(" ".join(sentence) + ".")
            sentence.clear()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

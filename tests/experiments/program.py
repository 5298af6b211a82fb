"""Runs the program, named by the last argument of the test, on a small data set of its own."""

import fcntl
import gzip
import os
import pty
import random
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import wave
from pathlib import Path

PROGRAM = sys.argv.pop()
os.environ.pop("HALFSCOPE_ISA", None)
ARMS = ["fp32", "fp16_mixed", "fp16_no_master", "fp16_pure"]


def idx(extents, values):
    """The bytes of an idx file of unsigned bytes."""
    return struct.pack(f">BBBB{len(extents)}I", 0, 0, 8, len(extents), *extents) + bytes(values)


def write_data(folder, train=96, test=40):
    """Four idx files of 8x8 images whose bright quarter is the label."""
    folder.mkdir(parents=True)
    noise = random.Random(1)
    for split, count in (("train", train), ("t10k", test)):
        pixels, labels = [], []
        for i in range(count):
            label = i % 4
            labels.append(label)
            pixels += [
                noise.randrange(60) + (150 if (p // 32, p % 8 // 4) == divmod(label, 2) else 0) for p in range(64)
            ]
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx([count, 8, 8], pixels))
        (folder / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx([count], labels)))
    return folder


def halfscope(*words, **options):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, **options)


class OnTerminal:
    """Runs a program one of whose streams is a terminal of so many columns; `text` is what it wrote there."""

    def __init__(self, words, columns, stream="stdout", **variables):
        main, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen([str(word) for word in words], text=True, env={**os.environ, **variables},
                                   **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: terminal})
        os.close(terminal)
        content = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            content += piece
        os.close(main)
        self.stdout, self.stderr = process.communicate()
        self.returncode = process.returncode
        self.text = content.decode().replace("\r\n", "\n")


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        self.data = write_data(self.folder / "data")

    def text(self):
        """A text of a thousand words."""
        path = self.folder / "text.txt"
        path.write_text(" ".join(f"{first}{second}" for first in "abcde" * 10 for second in "abcdefghijklmnopqrst"))
        return path

    def recordings(self):
        """Five utterances of a second or less, one of which is a test."""
        folder = self.folder / "recordings"
        folder.mkdir(exist_ok=True)
        noise = random.Random(1)
        for name in "abcde":
            with wave.open(str(folder / f"{name}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes(noise.randbytes(2 * 8000))
            (folder / f"{name}.txt").write_text(name)
        return folder

    def pairs(self):
        """A hundred sentence pairs."""
        path = self.folder / "pairs.tsv"
        path.write_text("".join(f"the {'big ' * (i % 5)}cat {i}\tle {'gros ' * (i % 5)}chat {i}\n" for i in range(100)))
        return path

    def verses(self):
        """A hundred lines as the program bible prints them."""
        path = self.folder / "verses.txt"
        path.write_text("".join(f"{'Ge' if i % 2 else 'Psa'}1:{i} And the {'great ' * (i % 7)}light {i}\n" for i in range(1, 101)))
        return path

    def data_of(self, dataset):
        """A small file or folder that the data set reads; empty of one that is computed."""
        small = {"kjv_text": self.text, "spoken_digits": self.recordings, "numbers_to_words": self.pairs,
                 "gettext_en_fr": self.pairs, "masked_verses": self.verses, "verse_genre": self.verses,
                 "modular_sums": lambda: ""}
        return small.get(dataset, lambda: self.data)()

    def words(self, out, *more, steps=30, threads=1):
        return ["run", "master-copy", "--data", self.data, "--out", self.folder / out, "--set", f"steps={steps}",
                "--set", "batch=32", "--set", "checkpoint_every=7", "--threads", threads, *more]

    def run_ok(self, *words):
        result = halfscope(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def records(self, out):
        files = sorted((self.folder / out).rglob("*.jsonl")) + sorted((self.folder / out).rglob("*.safetensors"))
        self.assertTrue(files)
        return {str(f.relative_to(self.folder / out)): f.read_bytes() for f in files}

    def refuse(self, *words, says, status=2, **options):
        """The words end in `status` with one line on stderr that holds every text of `says`."""
        result = halfscope(*words, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for text in says:
            self.assertIn(text, lines[0])
        self.assertEqual(result.stdout, "")

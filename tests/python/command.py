"""Output of the program, for tests that compare it with the package."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from recording.source_tree import PROGRAM

FILES_ONLY = {"file", "tensors", "beyond_fp32"}  # keys of a tensor


def command(*words: object) -> str:
    return subprocess.run([PROGRAM, *map(str, words), "--json"], check=True, capture_output=True, text=True).stdout


def analyzed(path: Path, *words: object) -> dict:
    """`halfscope analyze --json` of a file, without what arrays in memory do not have."""
    theirs = json.loads(command("analyze", path, *words))
    theirs["tensors"] = [{key: tensor[key] for key in tensor if key not in FILES_ONLY} for tensor in theirs["tensors"]]
    return {key: theirs[key] for key in theirs if key not in {"files", "analysed"}}

"""Writes all that halfscope.torch says and computes into one file, or compares two such files word by word.

usage: python tests/python/torch_record write FILE [PATTERN ...]
       python tests/python/torch_record compare BEFORE AFTER
       python tests/python/torch_record list [PATTERN ...]

PATTERN: names of cases as in a shell, "watch/*"; all without one. Files are comparable that one machine wrote with one
PyTorch. Exit status of compare: 0 the same, 1 different, 2 no records.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:1] = [str(TESTS), str(TESTS.parents[1] / "lib" / "python")]
os.environ |= {"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"}

from torch_record.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], __doc__ or ""))

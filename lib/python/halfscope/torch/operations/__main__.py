"""Prints PyTorch's operations and their arithmetic under emulation: python -m halfscope.torch.operations [WORD ...]."""

from __future__ import annotations

import argparse
import sys

from halfscope.torch.operations.table import table_text


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m halfscope.torch.operations",
        description="Prints PyTorch's operations and their arithmetic under emulation, a line each.",
    )
    parser.add_argument("words", metavar="WORD", nargs="*", help="part of a name; all operations without one")
    words = parser.parse_args(arguments).words
    text = table_text(words)
    if not text:
        print(f"no name of the table has {' or '.join(words)} in it; without a word all are listed", file=sys.stderr)
        return 2
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

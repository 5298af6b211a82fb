"""Writes DIR/report.html and DIR/figures/*.svg: python -m halfscope.report DIR."""

from __future__ import annotations

import argparse
import os
import sys

from halfscope.report.page import write_report


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m halfscope.report",
        description="Draws the results in a folder: DIR/report.html, one file, and DIR/figures/*.svg.",
    )
    parser.add_argument("folder", metavar="DIR", help="a results folder, or an experiment's in it")
    try:
        print(write_report(parser.parse_args(arguments).folder, processes=os.cpu_count() or 1))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Writes DIR/report.html and DIR/figures/*.svg: python -m halfscope.report DIR."""

from __future__ import annotations

import sys

from halfscope.report.page import write_report


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m halfscope.report DIR", file=sys.stderr)
        return 2
    try:
        print(write_report(arguments[0]))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

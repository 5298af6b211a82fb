"""The program `halfscope`, which the package carries: the command of that name, and `python -m halfscope`.

It lies in the package's folder beside the compiled module, so that it is found wherever pip puts the package: in an
environment, with --user, with --target or editable.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn


def program() -> Path:
    """The path of the program. Raises FileNotFoundError for a package that was built without it."""
    compiled = find_spec("halfscope._core")
    if compiled is None or compiled.origin is None:
        raise FileNotFoundError("the package is not compiled: run 'pip install .' in the source tree")
    path = Path(compiled.origin).parent / "bin" / "halfscope"
    if not path.exists():
        raise FileNotFoundError(f"no program at {path}: the package was built with HALFSCOPE_PROGRAM=OFF")
    return path


def main() -> NoReturn:
    """Becomes the program, with this process's arguments: signals and the exit status are its own.

    `check` needs PyTorch, and is Python's own command.
    """
    if sys.argv[1:2] == ["check"]:
        from halfscope.check_command import run

        sys.exit(run(sys.argv[2:]))
    try:
        path = program()
    except FileNotFoundError as error:
        print(f"halfscope: {error}", file=sys.stderr)
        sys.exit(3)
    os.execv(path, ["halfscope", *sys.argv[1:]])

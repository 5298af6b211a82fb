"""The explorer's module run under Node.js, which has no page: its counts alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from halfscope import _core

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")


def run(folder: Path, script: str, given: Any) -> Any:
    """The value of `script`, the body of a function of `given` and of `explorer`, the module."""
    (folder / "explorer.mjs").write_text(_core.explorer_script())
    (folder / "given.json").write_text(json.dumps(given))
    (folder / "main.mjs").write_text(
        'import * as explorer from "./explorer.mjs";\nimport { readFileSync, writeFileSync } from "node:fs";\n'
        'const given = JSON.parse(readFileSync("given.json"));\n'
        f'const value = ((given) => {{\n{script}\n}})(given);\nwriteFileSync("value.json", JSON.stringify(value));\n'
    )
    subprocess.run(["node", "main.mjs"], cwd=folder, check=True)
    return json.loads((folder / "value.json").read_text())

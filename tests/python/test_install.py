"""The package as its users get it: installed from the source tree into a fresh environment, and the README's example."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps")


def first_example() -> str:
    """The README's first Python block that uses the package, and the one that goes on from there, but for a path."""
    text = (ROOT / "README.md").read_text()
    starts = ("import halfscope\n", "analysis = ")
    blocks = [re.search(rf"```python\n({start}.*?)```", text, re.DOTALL) for start in starts]
    lines = "".join(block[1] for block in blocks).splitlines(keepends=True)
    return "".join(line for line in lines if '"results/...' not in line)


def shown(example: str) -> list[str]:
    """What the comments behind print() say that it prints."""
    return re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)


def test_a_fresh_environment_runs_the_first_example(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=True)
    python = fresh / "bin" / "python"
    # What the package is built with and needs comes from this environment: a test downloads nothing.
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    subprocess.run([python, *INSTALL, str(ROOT)], env=environment, check=True)
    example = first_example()
    result = subprocess.run(
        [python, "-c", f"{example}\nimport sys; print(halfscope.__file__, file=sys.stderr)"],
        env=environment, cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert Path(result.stderr.strip()).is_relative_to(fresh)
    assert result.stdout.splitlines() == shown(example) and shown(example)
    installed = Path(result.stderr.strip()).parent
    stubs = (installed / "_core.pyi").read_text()
    assert (installed / "py.typed").exists()
    assert all(f"def {name}(" in stubs for name in ("round", "dot", "update", "window", "from_record"))


def test_without_the_compiled_module(tmp_path: Path) -> None:
    """The source tree alone reads and draws; what is compiled says how to get it."""
    shutil.copytree(ROOT / "lib/python/halfscope", tmp_path / "halfscope", ignore=shutil.ignore_patterns("*.so"))
    code = "import sys; sys.path.insert(0, '.'); sys.meta_path[:] = [f for f in sys.meta_path if 'scikit' not in repr(f).lower()]\n"
    code += "import halfscope, halfscope.results\ntry: halfscope.round\nexcept ImportError as error: print(error)"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "halfscope.round is compiled, and was not: run 'pip install .' in the source tree\n"

"""The installed package: the files of its wheel, and the example of docs/python.md in a fresh environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from doc_blocks import read_blocks, shown

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps")


def first_example() -> str:
    """The first two Python blocks of docs/python.md, of which the second goes on from the first."""
    blocks = [block.code for block in read_blocks(ROOT / "docs/python.md") if block.language == "python"]
    return "".join(blocks[:2])


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which the source tree is installed."""
    folder = tmp_path_factory.mktemp("installed") / "fresh"
    venv.create(folder, with_pip=True)
    # This environment has all that the package is built with and needs: a test downloads nothing.
    subprocess.run([folder / "bin/python", *INSTALL, str(ROOT)], env=environment(), check=True)
    return folder


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}


def test_a_fresh_environment_runs_the_first_example(fresh: Path, tmp_path: Path) -> None:
    example = first_example()
    result = subprocess.run(
        [fresh / "bin/python", "-c", f"{example}\nimport sys; print(halfscope.__file__, file=sys.stderr)"],
        env=environment(), cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert Path(result.stderr.strip()).is_relative_to(fresh)
    assert result.stdout.splitlines() == shown(example) and shown(example)
    installed = Path(result.stderr.strip()).parent
    stubs = (installed / "_core.pyi").read_text()
    assert (installed / "py.typed").exists()
    assert all(f"def {name}(" in stubs for name in ("round", "dot", "update", "window", "from_record"))


def test_the_wheel_holds_the_package_and_nothing_of_the_source_tree(fresh: Path) -> None:
    (record,) = fresh.glob("lib/python*/site-packages/halfscope-*.dist-info/RECORD")
    paths = [Path(line.split(",")[0]) for line in record.read_text().splitlines()]
    own = [path for path in paths if path.parts[0] == "halfscope" and path.suffix != ".pyc"]
    assert {path.parts[0] for path in paths} == {"halfscope", record.parent.name}
    assert {path.suffix for path in own} == {".py", ".pyi", ".so", ".css", ".typed"}  # no C++
    sources = {path for path in own if path.suffix in (".py", ".css", ".typed")}
    tree = ROOT / "lib/python"
    assert sources == {path.relative_to(tree) for path in tree.rglob("*.*") if path.suffix in (".py", ".css", ".typed")}
    site = record.parents[1]
    of_the_tree = re.compile(
        r"\bparents\[|experiments.recorded|build.{1,5}release|README|^(import|from) recording", re.MULTILINE
    )
    assert [path for path in sources if of_the_tree.search((site / path).read_text())] == []


def test_without_the_compiled_module(tmp_path: Path) -> None:
    """The source tree alone reads and draws; what is compiled says how to get it."""
    shutil.copytree(ROOT / "lib/python/halfscope", tmp_path / "halfscope", ignore=shutil.ignore_patterns("*.so"))
    code = "import sys; sys.path.insert(0, '.')\n"
    code += "sys.meta_path[:] = [finder for finder in sys.meta_path if 'scikit' not in repr(finder).lower()]\n"
    code += "import halfscope, halfscope.results\ntry: halfscope.round\nexcept ImportError as error: print(error)"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "halfscope.round is compiled, and was not: run 'pip install .' in the source tree\n"


@pytest.mark.parametrize(("old", "new"), [("plots", "plotting"), ("loss_scales", "results.loss_scales")])
def test_an_old_name_is_the_new_module_and_says_so(old: str, new: str) -> None:
    code = f"from halfscope import {old}; import halfscope.{new} as new; assert {old} is new"
    result = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:halfscope", "-W", "default::DeprecationWarning:__main__",
         "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "lib/python")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"DeprecationWarning: halfscope.{old} is now halfscope.{new}" in result.stderr

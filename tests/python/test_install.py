"""The installed package: its files, its program, and the example of docs/guides/python.md in a fresh environment."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from types import SimpleNamespace

import pytest

from doc_blocks import read_blocks, shown
from halfscope import program

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps")


def first_example() -> str:
    """The first two Python blocks of docs/guides/python.md, of which the second goes on from the first."""
    blocks = [block.code for block in read_blocks(ROOT / "docs/guides/python.md") if block.language == "python"]
    return "".join(blocks[:2])


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which the source tree is installed, once for all processes of a run of tests."""
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "installed"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "is_complete").exists():
            venv.create(folder, with_pip=True, clear=True)
            # This environment has all that the package is built with and needs: a test downloads nothing.
            subprocess.run([folder / "bin/python", *INSTALL, str(ROOT)], env=environment(), check=True)
            (folder / "is_complete").touch()
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
    assert {path.parts[0] for path in paths} == {"halfscope", record.parent.name, ".."}
    assert [path.name for path in paths if path.parts[0] == ".."] == ["halfscope"]  # the command
    kinds = (".py", ".css", ".json", ".html", ".txt", ".typed")
    assert {path.suffix for path in own} == {*kinds, ".pyi", ".so", ""}  # no C++
    assert [str(path) for path in own if path.suffix == ""] == ["halfscope/bin/halfscope"]
    sources = {path for path in own if path.suffix in kinds}
    tree = ROOT / "lib/python"
    assert sources == {path.relative_to(tree) for path in tree.glob("halfscope/**/*.*") if path.suffix in kinds}
    site = record.parents[1]
    of_the_tree = re.compile(r"\bparents\[|build.{1,5}release|README|^(import|from) recording", re.MULTILINE)
    assert [path for path in sources if of_the_tree.search((site / path).read_text())] == []


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), env=environment(), capture_output=True, text=True, **options)


def test_the_program_comes_with_the_package(fresh: Path, tmp_path: Path) -> None:
    as_command, as_module = [fresh / "bin/halfscope"], [fresh / "bin/python", "-m", "halfscope"]
    version = re.search(r"project\(halfscope VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for command in (as_command, as_module):
        assert run(*command, "--version", cwd=tmp_path, check=True).stdout.split()[-1] == version
        assert run(*command, "calc", "round", "0x3f801000", check=True).stdout.split() == ["0x3c00", "01"]
        wrong = run(*command, "calc", "sideways", "1")
        assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1


def test_what_is_compiled_needs_nothing_that_differs_between_distributions(fresh: Path) -> None:
    (installed,) = fresh.glob("lib/python*/site-packages/halfscope")
    (module,) = installed.glob("_core.*.so")
    for file in (module, installed / "bin/halfscope"):
        needed = {line.split()[0].split(".so")[0] for line in run("ldd", file, check=True).stdout.splitlines()}
        assert {Path(name).name for name in needed} <= {
            "linux-vdso", "libc", "libm", "libz", "libgcc_s", "libstdc++", "ld-linux-x86-64",
        }  # fmt: skip


@pytest.mark.parametrize("origin", ["_core.so", None])
def test_without_the_program(
    origin: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A package that was built without it, or not at all, says so."""
    spec = None if origin is None else SimpleNamespace(origin=str(tmp_path / origin))
    monkeypatch.setattr(program, "find_spec", lambda name: spec)
    with pytest.raises(SystemExit, match="3"):
        program.main()
    said = capsys.readouterr().err
    words = "run 'pip install .'" if origin is None else "the package was built with HALFSCOPE_PROGRAM=OFF"
    assert said.count("\n") == 1 and said.startswith("halfscope: ") and words in said


def test_without_the_compiled_module(tmp_path: Path) -> None:
    """The source tree alone reads and draws; what is compiled says how to get it."""
    shutil.copytree(ROOT / "lib/python/halfscope", tmp_path / "halfscope", ignore=shutil.ignore_patterns("*.so"))
    code = "import sys; sys.path.insert(0, '.')\n"
    code += "sys.meta_path[:] = [finder for finder in sys.meta_path if 'scikit' not in repr(finder).lower()]\n"
    code += "import halfscope, halfscope.results\ntry: halfscope.round\nexcept ImportError as error: print(error)"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "halfscope.round is compiled, and was not: run 'pip install .' in the source tree\n"

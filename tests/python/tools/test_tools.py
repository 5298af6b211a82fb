"""The shell tools in a copy of the tree where cmake, apt-get and the program are stand-ins that note what is asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import experiment_list
from recording.source_tree import PROGRAM
from synthetic import write_results

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
TOOLS = ("reproduce", "test", "figures", "notebooks", "bench")

STAND_IN = """\
[ "$1" = list ] || echo "halfscope $*" >>"$asked"
case "$1" in
  list) cat "$listed" ;;
  run) mkdir -p "$out/$2" && cp -r "$ready/$2/." "$out/$2" ;;
  report) echo "table of $2" ;;
esac
"""


QUICK = (
    "master-copy", "detection-loss-scale", "language-model-loss-scale", "segmentation-loss-scale", "scale-sweep",
    "scaler-comparison", "averaging-sweep", "negative-controls", "batchnorm-reduction", "softmax-reduction",
)  # fmt: skip
TEXT = ("language-model-loss-scale", "averaging-sweep", "softmax-reduction")
MIXED = ("scaler-comparison", "negative-controls")
LISTED = (*QUICK, "master-copy-sgd")


def kinds_of(name: str) -> list[str]:
    """The kinds of data that an experiment's arms train on."""
    return ["images", "text"] if name in MIXED else ["text"] if name in TEXT else ["images"]


def listing() -> dict:
    """What the stand-in program lists, as `halfscope list experiments --json`."""
    return {
        "experiments": [
            {
                "name": name, "arms": [{"name": f"on_{kind}", "data": kind} for kind in kinds_of(name)],
                "full_arms": [], "varied": "policy", "in_quick_set": name in QUICK,
            }
            for name in LISTED
        ]
    }  # fmt: skip


class Tree:
    """A copy of tools/ in `folder`, with results that the stand-in program "computes" into `out`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = folder / "asked"
        self.out = folder / "out"
        self.commands = folder / "commands"
        self.commands.mkdir()
        shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "lib").symlink_to(ROOT / "lib")
        (folder / "listed.json").write_text(json.dumps(listing()))
        for name in LISTED:
            write_results(folder / "ready", seeds=1, steps=10, name=name)
        self.command("cmake", '[ "$1" = --version ] && echo "cmake version 3.25.1" || echo "cmake $*" >>"$asked"')
        self.command("dpkg-query", 'echo "${missing:-no}" | grep -qw -- "${@: -1}" || echo installed')
        self.command("apt-get", 'echo "apt-get $*" >>"$asked"')
        self.script(folder / "build/release/experiments/halfscope", STAND_IN)
        self._make_environment()

    def command(self, name: str, body: str) -> None:
        self.script(self.commands / name, body)

    def script(self, path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def _make_environment(self) -> None:
        """A .venv that is this interpreter, but installs nothing, with the stamp of one that is up to date."""
        pip = '[[ "$1 $2" != "-m pip" ]] || exec echo "${@:2}" >>"$asked"'
        self.script(self.folder / ".venv/bin/python", f'{pip}\nexec "{sys.executable}" "$@"')
        stamp = 'echo "$(python3 --version; sha256sum <tools/requirements.txt)" >.venv/requirements.stamp'
        subprocess.run(["bash", "-c", stamp], cwd=self.folder, check=True)

    def run(self, tool: str, *options: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
        environment = os.environ | {
            "PATH": f"{self.commands}:{os.environ['PATH']}",
            "asked": str(self.asked), "out": str(self.out), "ready": str(self.folder / "ready"),
            "listed": str(self.folder / "listed.json"),
        } | variables  # fmt: skip
        command = [str(self.folder / "tools" / tool), *options]
        return subprocess.run(command, cwd=cwd or self.folder, env=environment, capture_output=True, text=True)

    def log(self) -> list[str]:
        return self.asked.read_text().splitlines() if self.asked.exists() else []


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize("tool", TOOLS)
def test_help(tree: Tree, tool: str) -> None:
    # From elsewhere, since a tool changes to the root before it reads its own help.
    result = tree.run(f"../tools/{tool}", "--help", cwd=Path("/"))
    assert result.returncode == 0 and f"tools/{tool}" in result.stdout
    assert tree.log() == []


@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_option(tree: Tree, tool: str) -> None:
    result = tree.run(tool, "--wrong", "--option")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert tree.log() == []


def test_reproduce_runs_the_quick_ablations_and_draws(tree: Tree) -> None:
    result = tree.run("reproduce", "--out", "out")
    assert result.returncode == 0, result.stderr
    out = tree.out
    assert tree.log() == [
        "cmake --preset release --log-level=WARNING -DHALFSCOPE_TESTS=OFF -DHALFSCOPE_BENCHMARKS=OFF",
        "cmake --build --preset release",
        *(f"halfscope run {name} --quick --out {out} --resume" for name in QUICK),
        *(f"halfscope report {out}/{name}" for name in QUICK),
    ]
    assert result.stdout.splitlines()[-1] == f"== report: {out}/report.html"
    assert (out / "report.html").stat().st_size > 10_000


def test_reproduce_writes_into_results_quick(tree: Tree) -> None:
    folder = str(tree.folder / "results/quick")
    assert tree.run("reproduce", out=folder).returncode == 0
    assert f"halfscope run master-copy --quick --out {folder} --resume" in tree.log()


def test_reproduce_all_runs_what_the_program_lists(tree: Tree) -> None:
    result = tree.run("reproduce", "--all", "--out", "out")
    assert result.returncode == 0, result.stderr
    runs = [line for line in tree.log() if line.startswith("halfscope run")]
    assert runs == [f"halfscope run {name} --seeds 3 --out {tree.out} --resume" for name in LISTED]


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_the_program_knows_the_quick_set_and_the_data() -> None:
    entries = experiment_list.list_experiments(PROGRAM)
    assert tuple(entry.name for entry in entries if entry.in_quick_set) == QUICK
    assert {entry.name: entry.data for entry in entries if entry.in_quick_set} == {
        name: kinds_of(name) for name in QUICK
    }
    assert {entry.name for entry in entries if not entry.in_quick_set} == {"master-copy-sgd", "accumulation-error"}
    assert all(set(entry.full_arms) <= set(entry.data_of) for entry in entries)


def test_a_program_that_cannot_list_fails_reproduce(tree: Tree) -> None:
    tree.script(tree.folder / "build/release/experiments/halfscope", 'echo "no list" >&2; exit 2')
    result = tree.run("reproduce")
    assert result.returncode == 3 and "halfscope list experiments --json: no list" in result.stderr


def test_reproduce_gives_each_experiment_its_own_data(tree: Tree) -> None:
    result = tree.run("reproduce", "--data", "my images", "--text", "my text", "--out", "out")
    assert result.returncode == 0, result.stderr
    runs = [line.split()[2:] for line in tree.log() if line.startswith("halfscope run")]
    given = {name: " ".join(rest) for name, *rest in runs}
    for mixed in MIXED:
        assert mixed not in given and f"leaving out {mixed}" in result.stdout
    for name, options in given.items():
        file = f"{tree.folder}/my {'text' if name in TEXT else 'images'}"
        assert options == f"--quick --data {file} --out {tree.out} --resume"


def test_fresh_removes_results_and_keeps_the_rest(tree: Tree) -> None:
    assert tree.run("reproduce", "--out", "out").returncode == 0
    stale = tree.out / "master-copy/old_arm/seed0"
    shutil.copytree(tree.out / "master-copy/fp32/seed0", stale)
    mine = tree.out / "mine.txt"
    mine.write_text("keep")
    assert tree.run("reproduce", "--fresh", "--out", "out").returncode == 0
    assert not stale.exists() and mine.read_text() == "keep"


@pytest.mark.parametrize("stranger", ["thesis.tex", "chapter/notes.txt", "fp32/seed0/photos/me.jpg"])
def test_fresh_leaves_a_strangers_folder_alone(tree: Tree, stranger: str) -> None:
    shutil.copytree(tree.folder / "ready/master-copy", tree.out / "master-copy")
    path = tree.out / "master-copy" / stranger
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("keep")
    result = tree.run("reproduce", "--fresh", "--out", "out")
    assert result.returncode == 2 and "does not look like halfscope results" in result.stderr
    assert path.read_text() == "keep"


def test_failing_run_fails_reproduce(tree: Tree) -> None:
    tree.script(
        tree.folder / "build/release/experiments/halfscope",
        '[ "$1" != list ] || cat "$listed"\n[ "$1" != run ] || exit 3',
    )
    assert tree.run("reproduce").returncode == 3


def test_missing_packages_are_installed_once_and_named(tree: Tree) -> None:
    result = tree.run("reproduce", "--out", "out", missing="ninja-build zlib1g-dev")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "== installing ninja-build zlib1g-dev"
    installs = [line for line in tree.log() if line.startswith("apt-get install")]
    assert len(installs) == 1 and installs[0].endswith(" ninja-build zlib1g-dev")


def test_no_install(tree: Tree) -> None:
    result = tree.run("reproduce", "--no-install", missing="ninja-build")
    assert result.returncode == 2 and "missing packages: ninja-build" in result.stderr
    assert tree.log() == []


def without(tree: Tree, command: str) -> str:
    """A PATH in which there is everything but `command`."""
    for folder in os.environ["PATH"].split(":"):
        for path in sorted(Path(folder).glob("*")):
            target = tree.folder / "bin" / path.name
            target.parent.mkdir(exist_ok=True)
            if path.name != command and not target.exists():
                target.symlink_to(path)
    (tree.commands / command).unlink()
    return f"{tree.commands}:{tree.folder / 'bin'}"


def test_not_debian(tree: Tree) -> None:
    path = without(tree, "apt-get")
    result = tree.run("reproduce", PATH=path)
    assert result.returncode == 2
    for package in ("g++", "libeigen3-dev", "dataset-fashion-mnist", "--no-install"):
        assert package in result.stderr
    assert tree.log() == []
    assert tree.run("reproduce", "--no-install", "--out", "out", PATH=path).returncode == 0


def test_old_cmake(tree: Tree) -> None:
    tree.command("cmake", 'echo "cmake version 3.22.1"')
    result = tree.run("reproduce")
    assert result.returncode == 2 and "cmake 3.24 or newer is needed, found 3.22.1" in result.stderr


def test_figures_takes_folders_from_where_it_is_called(tree: Tree) -> None:
    result = tree.run("figures", "master-copy", cwd=tree.folder / "ready")
    assert result.stdout == f"{tree.folder}/ready/master-copy/report.html\n"
    empty = tree.run("figures", "commands")
    assert empty.returncode == 2 and "no results here" in empty.stderr


@pytest.fixture
def tested(tree: Tree) -> Tree:
    """A tree with one Python test, of which ctest and nvcc are stand-ins too."""
    (tree.folder / "tests/python").mkdir(parents=True)
    tests = "import pytest\ndef test_one(): pass\n@pytest.mark.slow\ndef test_two(): pass\n"
    (tree.folder / "tests/python/test_one.py").write_text(tests)
    tree.command("ctest", 'echo "ctest $*" >>"$asked"')
    tree.command("nvcc", "")
    return tree


INSTALL = "pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps"


def test_the_test_tool_counts_stages_and_fails_where_one_fails(tested: Tree) -> None:
    good = tested.run("test")
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.splitlines()[-1] == "4 passed, 0 failed"
    assert re.search(r"^== test_release: passed in \d+ s$", good.stdout, re.M)
    assert "ctest --preset release -j 2 -LE exhaustive|slow|install" in tested.log()
    assert {line.split()[3] for line in tested.log() if line.startswith("cmake --build")} == {"release"}
    assert f"-m {INSTALL} --editable ." in [f"-m {line}" for line in tested.log()]
    tested.command("ctest", "exit 8")
    bad = tested.run("test")
    assert bad.returncode == 1
    assert re.fullmatch(r"== \d+ s; failed: test_release", bad.stdout.splitlines()[-2])
    assert bad.stdout.splitlines()[-1] == "3 passed, 1 failed"


def test_all_builds_every_preset_that_the_documents_name(tested: Tree) -> None:
    result = tested.run("test", "--all")
    assert result.returncode == 0, result.stdout + result.stderr
    log = tested.log()
    named = set(re.findall(r"--preset[ =](\w+)", "".join(path.read_text() for path in DOCUMENTS)))
    built = {line.split()[3] for line in log if re.fullmatch(r"cmake --build --preset \w+", line)}
    assert named - built == set() and built >= {"release", "dev", "fuzz", "cuda", "portable"}
    assert "cmake --build --preset release --target all_verify_interface_header_sets" in log
    for test in ("release -L install", "dev -j 2 -LE exhaustive|slow", "fuzz -j 3", "cuda -L gpu"):
        assert f"ctest --preset {test}" in log
    assert result.stdout.splitlines()[-1] == "12 passed, 0 failed"


def test_without_a_cuda_compiler_nothing_is_built_with_cuda(tested: Tree) -> None:
    path = without(tested, "nvcc")
    result = tested.run("test", "--all", PATH=path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "== no nvcc: the CUDA kernels are not compiled" in result.stdout
    assert not any("--preset cuda" in line or "--preset portable" in line for line in tested.log())


@pytest.mark.parametrize("option", [(), ("--exhaustive",), ("--slow",)])
def test_long_tests_run_where_they_are_asked_for(tested: Tree, option: tuple[str, ...]) -> None:
    result = tested.run("test", *option)
    assert result.returncode == 0, result.stdout
    assert "ctest --preset release -j 2 -LE exhaustive|slow|install" in tested.log()
    assert ("ctest --preset release -j 2 -L exhaustive" in tested.log()) == ("--exhaustive" in option)
    assert ("ctest --preset release -L slow" in tested.log()) == ("--slow" in option)
    assert ("== test_python_slowly" in result.stdout) == ("--slow" in option)

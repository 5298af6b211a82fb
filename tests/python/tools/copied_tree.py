"""A copy of the tree where cmake, apt-get and the program are stand-ins that note what the shell tools ask of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from synthetic import write_results

ROOT = Path(__file__).resolve().parents[3]

CORES = 3

STAND_IN = """\
[ "$1" = list ] || echo "halfscope $*" >>"$asked"
case "$1" in
  list) cat "$listed" ;;
  run) while shift && [[ "${1:-}" == [a-z]* ]]; do mkdir -p "$out/$1" && cp -r "$ready/$1/." "$out/$1"; done ;;
  report) echo "table of $2" ;;
esac
"""

QUICK = (
    "master-copy", "detection-loss-scale", "language-model-loss-scale", "scale-sweep", "negative-controls",
    "batchnorm-reduction", "softmax-reduction",
)  # fmt: skip
TEXT = ("language-model-loss-scale", "softmax-reduction")
MIXED = ("negative-controls",)
LISTED = (*QUICK, "master-copy-sgd")
INSTALL = (
    "pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps"
    " --config-settings=cmake.define.HALFSCOPE_PROGRAM=OFF"
)


def kinds_of(name: str) -> list[str]:
    """The kinds of data that an experiment's arms train on."""
    return ["images", "text"] if name in MIXED else ["text"] if name in TEXT else ["images"]


def listing() -> dict:
    """Experiments that the stand-in program lists, as `halfscope list experiments --json`."""
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
        self.command("nproc", f"echo {CORES}")
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
        """A .venv that is this interpreter, with the stamp of one that is up to date.

        It installs nothing, and draws no report, which takes 20 s, unless draws=yes.
        """
        pip = '[[ "$1 $2" != "-m pip" ]] || exec echo "${@:2}" >>"$asked"'
        report = '[[ "$1 $2" != "-m halfscope.report" || "${draws:-no}" == yes ]] || exec echo "$3/report.html"'
        self.script(self.folder / ".venv/bin/python", f'{pip}\n{report}\nexec "{sys.executable}" "$@"')
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

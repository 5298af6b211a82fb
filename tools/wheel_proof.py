"""Proves a wheel of halfscope in the virtual environment that runs this file: installs, imports, runs, times it.

    python wheel_proof.py WHEEL FOLDER-OF-DEPENDENCIES [PYTHON-WITH-PYTORCH]

Prints a line for each step. Raises at the first that fails, and where a compiler is on the path.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc", "cmake", "ninja")

# Each runs in a process of its own: nothing of an earlier step is in memory.
IMPORT = "import halfscope, numpy; assert halfscope.round(numpy.float32([1 / 3]), 'fp16')[0] == numpy.float16(1 / 3)"
# A quarter of them is zero in FP16.
GRADIENTS = "import numpy, sys; numpy.save(sys.argv[1], numpy.repeat(numpy.float32([1e-8, 1e-3]), [250, 750]))"
WATCH = """
import torch
from halfscope.torch import watch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters())
with watch(model, optimizer=optimizer) as watched:
    for step in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randn(64, 20)), torch.randint(5, (64,))).backward()
        optimizer.step()
print(watched.report)
"""


def run(*command: object) -> str:
    """The standard output of a command; its standard error goes to the terminal."""
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout


def timed(step: str, action: Callable[[], str], wanted: str) -> None:
    """Runs a step and prints its seconds; its output must match `wanted`, a regular expression."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    output = action()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not re.search(wanted, output):
        raise SystemExit(f"wheel_proof.py: {step} printed {output!r}, which does not match {wanted!r}")
    print(f"{seconds:6.2f} s, {busy:5.2f} s of the processor  {step}", flush=True)


def main(wheel: str, dependencies: str, torch_python: str | None = None) -> None:
    """All steps of the proof, in order."""
    found = [path for path in map(shutil.which, COMPILERS) if path]
    if found:
        raise SystemExit(f"wheel_proof.py: the path of a bare machine has no {found[0]}")
    bin_folder = Path(sys.prefix) / "bin"
    version = re.escape(Path(wheel).name.split("-")[1])
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    install = (*pip, "install", "--no-index", "--find-links", dependencies)
    requirements = [path for path in Path(dependencies).glob("*.whl") if path.name != Path(wheel).name]
    timed("pip install of the dependencies", lambda: run(*install, *requirements), r"Successfully installed .*\bnumpy-")
    timed("pip install of the wheel", lambda: run(*install, wheel), rf"Successfully installed halfscope-{version}\n$")
    timed("import halfscope, for the first time", lambda: run(sys.executable, "-c", IMPORT), "^$")
    timed("import halfscope", lambda: run(sys.executable, "-c", IMPORT), "^$")
    timed("halfscope --version", lambda: run(bin_folder / "halfscope", "--version"), rf"^halfscope {version}\n$")
    gradients = Path("gradients.npy").resolve()
    run(sys.executable, "-c", GRADIENTS, gradients)
    timed("halfscope analyze FILE", lambda: run(bin_folder / "halfscope", "analyze", gradients), r"\b25\.0+ ?%|\b25 ?%")
    if torch_python:
        site = run(torch_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        Path(sysconfig.get_path("purelib"), "torch_of_another_environment.pth").write_text(site + "\n")
        timed("watch a PyTorch model", lambda: run(sys.executable, "-c", WATCH), r"GradScaler|scale")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The programs that gpu-check runs: where they are, what they need around them, and what they were built from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import gpu_device

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("halfscope_program", "halfscope_cuda_tests", "sim_tests", "halfscope_capture")


def stop(message: str, status: int = 2) -> NoReturn:
    print(f"gpu-check: {message}", file=sys.stderr)
    sys.exit(status)


def environment() -> dict[str, str]:
    """With CUDA's own libraries where the loader finds them: the programs carry all others."""
    folders = gpu_device.library_folders()
    known = os.environ.get("LD_LIBRARY_PATH", "")
    return os.environ | {"LD_LIBRARY_PATH": ":".join([*([known] if known else []), *folders])}


def revision() -> str:
    """Revision of the source tree; empty without a checkout."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def version(program: Path) -> str:
    """Version and revision that the program was built from."""
    done = subprocess.run([program, "-V"], capture_output=True, text=True, env=environment())
    return "; ".join(done.stdout.strip().splitlines())


def toolkit(capture: Path) -> str:
    """The CUDA toolkit that the programs were built with."""
    done = subprocess.run([str(capture), "--toolkit"], capture_output=True, text=True, env=environment())
    return done.stdout.strip()


def find_programs(folder: Path, names: tuple[str, ...]) -> dict[str, Path]:
    programs = {}
    for name in names:
        found = [path for path in sorted(folder.rglob(name)) if path.is_file() and os.access(path, os.X_OK)]
        if not found:
            stop(f"{folder} has no program {name}; the preset 'portable' builds it")
        programs[name] = found[0].resolve()
    return programs


def build() -> Path:
    if shutil.which("nvcc") is None or shutil.which("cmake") is None:
        stop("neither --build nor a toolkit to build with (cmake, nvcc); give --build DIR")
    subprocess.run(["cmake", "--preset", "portable", "--log-level=WARNING"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "portable", "--target", *TARGETS], cwd=ROOT, check=True)
    return ROOT / "build/portable"

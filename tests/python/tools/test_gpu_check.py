"""tools/gpu-check, with a stand-in driver and stand-in programs: no GPU is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return 0; }
int cuDeviceGetName(char* name, int size, int device) { (void)device; strncpy(name, "Stand-in GPU", size); return 0; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGetAttribute(int* value, int what, int device) { (void)device; *value = what == 75 ? 9 : 0; return 0; }
"""

HALFSCOPE = """
case "$1" in
  bench) echo '{"cases": [{"name": "cuda_x", "value": 2.0, "unit": "GB/s", "ratio": 0.9, "against": "copy"}]}' ;;
  run)
    while [ $# -gt 1 ]; do
      [ "$1" != run ] || experiment="$2"; [ "$1" != --out ] || out="$2"; [ "$1" != --device ] || device="$2"; shift
    done
    loss=1; [ "$device" != "$odd_device" ] || loss=2
    [ "$HALFSCOPE_CUDA_GRAPH" != on ] || loss="${graph_loss:-$loss}"
    for arm in fp32 fp16_mixed; do
      mkdir -p "$out/$experiment/$arm/seed0"
      printf '{"step": 1, "loss": 3}\\n{"step": 2, "loss": %s}\\n' "$loss" >"$out/$experiment/$arm/seed0/metrics.jsonl"
    done ;;
esac
"""


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def gpu_check(*words: str | Path, **variables: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "tools/gpu-check"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | variables, cwd="/")


class Bench:
    """Stand-in programs in `folder`/build, and a stand-in driver that names one GPU."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
        assert compiler, "a C compiler is part of what the build needs"
        (folder / "driver.c").write_text(DRIVER)
        library = folder / "driver/libcuda.so.1"
        library.parent.mkdir()
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "driver.c"], check=True)
        script(folder / "build/experiments/halfscope", HALFSCOPE)
        for tests in ("halfscope_cuda_tests", "sim_tests"):
            script(folder / f"build/tests/{tests}", 'echo "All tests passed"')
        capture = '[ "$1" = --toolkit ] && echo 13.0 || { touch "$2/x.capture"; echo "40 sets equal their model"; }'
        script(folder / "build/tests/halfscope_capture", capture)
        sanitizer = '"${@: -3:1}" "${@: -1}"; echo "========= ERROR SUMMARY: 0 errors"'
        script(folder / "commands/compute-sanitizer", sanitizer)

    def check(self, *words: str, **variables: str) -> tuple[int, dict[str, dict], str]:
        variables = {
            "LD_LIBRARY_PATH": str(self.folder / "driver"), "PATH": f"{self.folder}/commands:{os.environ['PATH']}",
            "odd_device": "none",
        } | variables  # fmt: skip
        done = gpu_check("--build", self.folder / "build", "--out", self.folder / "out", *words, **variables)
        summary = self.folder / "out/summary.json"
        record = json.loads(summary.read_text()) if summary.exists() else {"steps": []}
        self.record = record
        return done.returncode, {step["name"]: step for step in record["steps"]}, done.stderr


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_without_a_device_it_says_so_in_one_line(tmp_path: Path) -> None:
    # No driver at all, and one that is told to show no device: the same answer.
    done = gpu_check("--out", tmp_path / "out", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 4
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("gpu-check: no CUDA device: ")
    assert not (tmp_path / "out").exists()


def test_help_and_wrong_words() -> None:
    assert "tools/gpu-check" in gpu_check("--help").stdout
    for words, says in ((["--wrong"], "unknown option '--wrong'"), (["--steps", "test"], "there are tests, layers")):
        done = gpu_check(*words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and says in done.stderr


def test_every_step_is_run_and_recorded(bench: Bench) -> None:
    status, steps, errors = bench.check()
    assert status == 0, errors
    assert list(steps) == [
        "tests", "layers", "captures", "parity", "native", "bench", "characterise", "memcheck", "racecheck",
        "initcheck", "torch",
    ]  # fmt: skip
    for name in ("characterise", "torch"):
        skipped = steps.pop(name)
        assert skipped["status"] == "skipped" and "PyTorch" in skipped["detail"]
    assert {step["status"] for step in steps.values()} == {"passed"}
    assert bench.record["device"] == bench.record["device"] | {"name": "Stand-in GPU", "capability": "9.0"}
    assert bench.record["toolkit"] == "13.0" and bench.record["device"]["driver_cuda"] == "13.0"
    out = bench.folder / "out"
    assert (out / "captures/x.capture").exists() and (out / "bench.json").exists()
    assert "All tests passed" in (out / "tests.log").read_text()
    assert "0.90 of copy" in steps["bench"]["detail"]


def test_a_failure_stops_no_other_step(bench: Bench) -> None:
    script(bench.folder / "build/tests/halfscope_cuda_tests", "echo wrong bits; exit 1")
    (bench.folder / "commands/compute-sanitizer").unlink()
    status, steps, _ = bench.check(odd_device="cuda", PATH=f"{bench.folder}/commands:/usr/bin:/bin")
    assert status == 1
    assert steps["tests"]["status"] == "failed" and "status 1" in steps["tests"]["detail"]
    assert "wrong bits" in (bench.folder / "out/tests.log").read_text()
    assert steps["parity"]["status"] == "failed"
    assert "master-copy: fp16_mixed/seed0/metrics.jsonl: line 2: step 2: loss: 1 | 2" in steps["parity"]["detail"]
    assert steps["native"]["status"] == "failed" and "detection" not in steps["native"]["detail"]
    log = (bench.folder / "out/native.log").read_text()
    assert log.count("execution=native") == 3 and log.count("order=tensor_core(hopper)") == 6
    assert steps["captures"]["status"] == steps["bench"]["status"] == "passed"
    if not list(Path("/usr/local").glob("cuda*/bin/compute-sanitizer")):
        assert steps["memcheck"]["status"] == "skipped"


def test_graphs_that_change_a_number_are_found(bench: Bench) -> None:
    status, steps, _ = bench.check("--steps", "parity", graph_loss="4")
    assert status == 1
    assert (
        "1 files differ; first: master-copy: seed0/metrics.jsonl: line 2: step 2: loss: 1 | 4"
        in steps["parity"]["detail"]
    )


def test_tests_that_see_no_device_have_not_passed(bench: Bench) -> None:
    for program in ("halfscope_cuda_tests", "sim_tests"):
        script(bench.folder / f"build/tests/{program}", 'echo "skipped: this machine has no CUDA device"')
    status, steps, _ = bench.check("--steps", "tests,layers,memcheck")
    assert status == 1
    assert [step["status"] for step in steps.values()] == ["failed"] * 3


TORCH = """
import sys, types
class _Cuda: is_available = staticmethod(lambda: True)
cuda = _Cuda()
"""
AMP = """
import json, sys
out = sys.argv[sys.argv.index("--out") + 1]
ours = {"failed": "out of memory"} if FAILS else {"plain": {"ms": 2}}
network = {"name": "cnn", "halfscope": ours, "times_faster": {} if FAILS else {"plain": 1.5}}
json.dump({"networks": [network]}, open(out, "w"))
"""


def tools_of_a_tree(bench: Bench) -> Path:
    """A copy of the tools that a test may change, in a tree where they find the package."""
    tools = shutil.copytree(ROOT / "tools", bench.folder / "tree/tools", ignore=shutil.ignore_patterns("__pycache__"))
    (bench.folder / "tree/lib").symlink_to(ROOT / "lib")
    return tools


def run_with_torch(bench: Bench, tools: Path, step: str) -> tuple[int, dict]:
    """Status and record of one step, with a stand-in PyTorch that sees a device."""
    (bench.folder / "modules").mkdir()
    (bench.folder / "modules/torch.py").write_text(TORCH)
    command = [sys.executable, tools / "gpu-check", "--build", bench.folder / "build", "--out", bench.folder / "out"]
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(bench.folder / "driver"), "PYTHONPATH": str(bench.folder / "modules"),
    }  # fmt: skip
    done = subprocess.run([*command, "--steps", step], capture_output=True, text=True, env=environment)
    return done.returncode, json.loads((bench.folder / "out/summary.json").read_text())["steps"][0]


@pytest.mark.parametrize("fails", [False, True])
def test_pytorch_is_timed_where_it_sees_a_device(bench: Bench, fails: bool) -> None:
    tools = tools_of_a_tree(bench)
    (tools / "bench_amp.py").write_text(f"FAILS = {fails}\n{AMP}")
    status, step = run_with_torch(bench, tools, "torch")
    if fails:
        assert status == 1 and step["detail"] == "cnn: out of memory"
    else:
        assert status == 0 and step["detail"] == "cnn: 1.50 times as fast as PyTorch, plain"


def test_constants_of_the_tensor_cores_are_those_of_pytorchs_products(bench: Bench) -> None:
    tools = tools_of_a_tree(bench)
    (tools / "characterise.py").write_text("import sys\nprint('asked for', *sys.argv[1:])\n")
    status, step = run_with_torch(bench, tools, "characterise")
    assert status == 0
    assert step["detail"] == "fp16: asked for --cuda --input fp16; bf16: asked for --cuda --input bf16"


def test_a_step_that_hangs_is_stopped(bench: Bench) -> None:
    script(bench.folder / "build/tests/halfscope_capture", '[ "$1" = --toolkit ] && exit; echo begun; exec sleep 600')
    source = (ROOT / "tools/gpu_steps.py").read_text()
    assert '("captures", 60,' in source
    tools = tools_of_a_tree(bench)
    (tools / "gpu_steps.py").write_text(source.replace('("captures", 60,', '("captures", 1,'))
    command = [sys.executable, tools / "gpu-check", "--build", bench.folder / "build", "--out", bench.folder / "out"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(bench.folder / "driver")}
    done = subprocess.run([*command, "--steps", "captures,bench"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.stderr
    steps = json.loads((bench.folder / "out/summary.json").read_text())["steps"]
    assert [step["status"] for step in steps] == ["timed_out", "passed"]
    assert steps[0]["seconds"] < 60


def test_it_overwrites_only_its_own_results(bench: Bench) -> None:
    assert bench.check("--steps", "tests")[0] == 0
    assert bench.check("--steps", "bench")[0] == 0
    (bench.folder / "out/summary.json").unlink()
    status, _, errors = bench.check("--steps", "bench")
    assert status == 2 and "something else" in errors


def test_missing_programs_are_named(bench: Bench) -> None:
    (bench.folder / "build/tests/halfscope_capture").unlink()
    status, _, errors = bench.check()
    assert status == 2 and "no program halfscope_capture" in errors and len(errors.splitlines()) == 1

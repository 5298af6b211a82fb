"""The steps of gpu-check: what each runs, how long at most, and how what became of it is recorded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import compare_runs
import gpu_device
import gpu_programs
import parity_data

BUDGET = 470  # seconds in all
PROGRAMS = ("halfscope", "halfscope_cuda_tests", "sim_tests", "halfscope_capture")
# Experiment, the arms that are run twice, and the made-up data.
PARITY = (
    ("master-copy", "fp32,fp16_mixed,fp16_no_master,fp16_pure", "images"),
    ("detection-loss-scale", "fp32,fp16_s8", "images"),
    ("language-model-loss-scale", "fp32,fp16_s128,fp16_dynamic", "text.txt"),
)
# Steps in native execution: FP16 memory and this device's tensor cores, against their emulation on the CPU.
NATIVE = (
    ("master-copy", "fp16_mixed", "images"),
    ("detection-loss-scale", "fp16_s8", "images"),
    ("language-model-loss-scale", "fp16_dynamic", "text.txt"),
)
GENERATIONS = {"7.5": "turing", "8.0": "ampere", "8.6": "ampere", "8.7": "ampere", "8.9": "ada", "9.0": "hopper"}
# The one whose steps are launched as CUDA graphs too.
GRAPHS = ("master-copy", "fp16_mixed", "images")


class Failed(Exception):
    """A step did not pass; says why."""


class Skipped(Exception):
    """A step has nothing to run on this machine; says why."""


@dataclass
class Check:
    """The programs, the folder of results, and what the steps came to."""

    programs: dict[str, Path]
    out: Path
    budget: float = BUDGET  # seconds in all
    started: float = field(default_factory=time.monotonic)
    steps: list[dict] = field(default_factory=list)
    deadline: float = 0.0

    def left(self) -> float:
        return self.started + self.budget - time.monotonic()

    def run(self, log: str, *command: str | Path, into: Path | None = None, **variables: str) -> str:
        """Runs a program to its end or the step's, keeps its output in `log`; gives stdout back. Raises Failed."""
        limit = max(self.deadline - time.monotonic(), 0.1)
        with (self.out / f"{log}.log").open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(map(str, command))}\n")
            file.flush()
            try:
                done = subprocess.run(
                    [str(word) for word in command], stdout=subprocess.PIPE, stderr=file, text=True, timeout=limit,
                    env=gpu_programs.environment() | variables, cwd=into or self.out,
                )  # fmt: skip
            except subprocess.TimeoutExpired as stopped:
                output = stopped.stdout or b""
                file.write(output.decode(errors="replace") if isinstance(output, bytes) else output)
                raise
            file.write(done.stdout)
        if done.returncode != 0:
            raise Failed(f"{Path(command[0]).name} ended with status {done.returncode}; see {log}.log")
        return done.stdout


def see_device(output: str) -> str:
    """A test that sees no device passes, skipped; here there is one, so that something is wrong."""
    if "has no CUDA device" in output:
        raise Failed("the tests saw no device: is the driver too old for the toolkit they were built with?")
    return output


def run_tests(check: Check) -> str:
    output = check.run("tests", check.programs["halfscope_cuda_tests"], "--durations", "yes")
    return see_device(output).strip().splitlines()[-1]


def run_layers(check: Check) -> str:
    """Layers and short training runs on both devices, in memory: where bits differ it names the layer."""
    output = check.run("layers", check.programs["sim_tests"], "[cuda]", "--durations", "yes")
    return see_device(output).strip().splitlines()[-1]


def run_captures(check: Check) -> str:
    folder = check.out / "captures"
    folder.mkdir(exist_ok=True)  # an earlier call of --first may have left some
    return check.run("captures", check.programs["halfscope_capture"], "--out", folder).strip().splitlines()[-1]


def write_data(check: Check, step: str) -> Path:
    """The folder that a step's short runs train in, with the made-up data in it."""
    data = check.out / step
    parity_data.write_images(data / "images")
    parity_data.write_text(data / "text.txt")
    return data


def run_short(check: Check, case: tuple, out: Path, device: str, *settings: str, **variables: str) -> None:
    """Fifty steps of a case's arms, into a folder beside the data."""
    experiment, arms, source = case
    command = [check.programs["halfscope"], "run", experiment, "--quick", "--arms", arms, "--device", device]
    command += [word for setting in ("steps=50", *settings) for word in ("--set", setting)]
    check.run(out.parent.name, *command, "--data", out.parent / source, "--out", out, into=None, **variables)


def differences(experiment: str, one: Path, other: Path, arms: list[str] | None = None) -> list[str]:
    """Between all records of an experiment in two folders, or those of some arms."""
    found = []
    for arm in arms or [""]:
        try:
            found += compare_runs.compare(one / experiment / arm, other / experiment / arm)
        except compare_runs.NothingToCompare as problem:
            found.append(str(problem))
    return [f"{experiment}: {difference}" for difference in found]


def fail_if_any(check: Check, step: str, problems: list[str]) -> None:
    if problems:
        (check.out / f"{step}-differences.txt").write_text("\n".join(problems) + "\n", encoding="utf-8")
        raise Failed(f"{len(problems)} files differ; first: {problems[0]}")


def run_parity(check: Check) -> str:
    data = write_data(check, "parity")
    problems = []
    for case in PARITY:
        for device in ("cpu", "cuda"):
            run_short(check, case, data / device, device)
        problems += differences(case[0], data / "cpu", data / "cuda")
    run_short(check, GRAPHS, data / "graphs", "cuda", HALFSCOPE_CUDA_GRAPH="on")
    problems += differences(GRAPHS[0], data / "cuda", data / "graphs", GRAPHS[1].split(","))
    fail_if_any(check, "parity", problems)
    return f"{len(PARITY)} experiments: the same bytes on both devices, and as CUDA graphs"


def run_native(check: Check) -> str:
    data = write_data(check, "native")
    products = f"order=tensor_core({GENERATIONS.get(gpu_device.find_device().capability, 'blackwell')})"
    problems = []
    for case in NATIVE:
        run_short(check, case, data / "cpu", "cpu", products)
        run_short(check, case, data / "cuda", "cuda", products, "execution=native")
        problems += differences(case[0], data / "cpu", data / "cuda")
    fail_if_any(check, "native", problems)
    return f"{len(NATIVE)} experiments: the same bytes as their emulation on the CPU"


def run_bench(check: Check) -> str:
    text = check.run("bench", check.programs["halfscope"], "bench", "--device", "cuda", "--json")
    (check.out / "bench.json").write_text(text, encoding="utf-8")
    cases = json.loads(text)["cases"]
    skipped = [case["name"] for case in cases if case.get("skipped")]
    if skipped:
        raise Failed(f"not measured: {', '.join(skipped)}")
    return "; ".join(f"{case['name']} {case['value']:.4g} {case['unit']}, {case['ratio']:.2f} of {case['against']}"
                     for case in cases)  # fmt: skip


def python_with_torch(check: Check) -> str:
    """An interpreter whose PyTorch sees the device. Raises Skipped."""
    question = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 3)"
    seen = False
    for python in dict.fromkeys((sys.executable, shutil.which("python3"), "/usr/bin/python3")):
        if python is None or not Path(python).exists():
            continue
        limit = max(check.deadline - time.monotonic(), 0.1)
        status = subprocess.run([python, "-c", question], capture_output=True, timeout=limit).returncode
        if status == 0:
            return python
        seen = seen or status == 3
    raise Skipped("PyTorch sees no CUDA device" if seen else "no Python here has PyTorch")


def run_torch(check: Check, *words: str) -> str:
    """Native steps beside PyTorch's autocast and GradScaler, in torch.json. `words`: options of bench_amp.py."""
    python = python_with_torch(check)
    out = check.out / "torch.json"
    script = gpu_programs.ROOT / "tools/bench_amp.py"
    check.run("torch", python, script, "--halfscope", check.programs["halfscope"], "--out", out, *words)
    networks = json.loads(out.read_text(encoding="utf-8"))["networks"]
    failed = [f"{network['name']}: {network['halfscope']['failed']}" for network in networks
              if "failed" in network["halfscope"]]  # fmt: skip
    if failed:
        raise Failed("; ".join(failed))
    return "; ".join(f"{network['name']}: {ratio:.2f} times as fast as PyTorch, {side}"
                     for network in networks for side, ratio in network["times_faster"].items())  # fmt: skip


def run_characterise(check: Check) -> str:
    """Constants of the tensor cores, from PyTorch's products."""
    python, script = python_with_torch(check), gpu_programs.ROOT / "tools/characterise.py"
    found = {name: check.run("characterise", python, script, "--cuda", "--input", name) for name in ("fp16", "bf16")}
    return "; ".join(f"{name}: {text.strip()}" for name, text in found.items())


# A graph that cannot be updated is an answer of CUDA, not an error; the programs look at every call's status.
SANITIZER_OPTIONS = {"memcheck": ("--report-api-errors", "no")}
# A race shows in small products too, and racecheck takes a minute for large ones.
SANITIZED_TESTS = {"racecheck": "[cuda]~[long]~*large products*"}


def run_sanitizer(check: Check, tool: str, chosen: str | None = None) -> str:
    """`chosen`: the tests, as Catch2 chooses them; none: those of the tool."""
    sanitizer = gpu_device.find_program("compute-sanitizer")
    if sanitizer is None:
        raise Skipped("compute-sanitizer is not on this machine")
    tests = check.programs["halfscope_cuda_tests"]
    options = ("--tool", tool, "--error-exitcode", "9", *SANITIZER_OPTIONS.get(tool, ()))
    chosen = chosen or SANITIZED_TESTS.get(tool, "[cuda]~[long]")
    output = see_device(check.run(tool, sanitizer, *options, tests, "--durations=yes", chosen))
    return next((line.strip("= ") for line in reversed(output.splitlines()) if "ERROR SUMMARY" in line), "no errors")


# Name, seconds at most, and what is run.
STEPS: tuple[tuple[str, float, Callable[[Check], str]], ...] = (
    ("tests", 100, run_tests),
    ("layers", 60, run_layers),
    ("captures", 60, run_captures),
    ("parity", 120, run_parity),
    ("native", 90, run_native),
    ("bench", 90, run_bench),
    ("characterise", 40, run_characterise),
    ("memcheck", 60, lambda check: run_sanitizer(check, "memcheck")),
    ("racecheck", 110, lambda check: run_sanitizer(check, "racecheck")),
    ("initcheck", 60, lambda check: run_sanitizer(check, "initcheck")),
    ("torch", 200, run_torch),
)


def note_step(check: Check, name: str, status: str, seconds: float, detail: str) -> None:
    check.steps.append({"name": name, "status": status, "seconds": round(seconds, 1), "detail": detail})
    print(f"{name:<29} {status:<9} {seconds:6.1f} s  {detail}", flush=True)


def run_step(check: Check, name: str, limit: float, body: Callable[[Check], str]) -> None:
    started = time.monotonic()
    check.deadline = started + min(limit, check.left())
    try:
        if check.left() <= 1:
            raise Skipped("no time was left")
        status, detail = "passed", body(check)
    except Skipped as reason:
        status, detail = "skipped", str(reason)
    except subprocess.TimeoutExpired:
        status, detail = "timed_out", f"stopped after {time.monotonic() - started:.0f} s; see {name}.log"
    except Exception as problem:  # whatever it is, the other steps still run
        status, detail = "failed", str(problem) or type(problem).__name__
    note_step(check, name, status, time.monotonic() - started, detail)


def summarise(check: Check, device: gpu_device.CudaDevice) -> None:
    summary = {
        "device": device.as_json(), "toolkit": gpu_programs.toolkit(check.programs["halfscope_capture"]),
        "revision": gpu_programs.revision(), "seconds": round(time.monotonic() - check.started, 1),
        "steps": check.steps,
    }  # fmt: skip
    temporary = check.out / "summary.json.new"
    temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    temporary.replace(check.out / "summary.json")


def chosen_steps(names: str | None) -> list:
    known = [name for name, _, _ in STEPS]
    wanted = names.split(",") if names else known
    for name in wanted:
        if name not in known:
            gpu_programs.stop(f"no step '{name}'; there are {', '.join(known)}")
    return [step for step in STEPS if step[0] in wanted]


def run_steps(check: Check, device: gpu_device.CudaDevice, steps: list) -> int:
    """The exit status: 1 where a step did not pass."""
    summarise(check, device)
    for name, limit, body in steps:
        run_step(check, name, limit, body)
        summarise(check, device)
    return 1 if any(step["status"] in ("failed", "timed_out") for step in check.steps) else 0

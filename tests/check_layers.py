#!/usr/bin/env python3
"""Fails where an include breaks the layers of the design, a kernel has no header of its name, or two headers define a
type of one name: linked into one program, the functions of one would be taken for those of the other. Also where
text goes to stderr by another way than print_stderr, which a closed or full stderr does not stop, and where the
library has more public headers than MOST_PUBLIC_HEADERS.

check_layers.py ROOT          check a tree
check_layers.py --self-test   check that planted violations are found
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

KERNEL = {"lib/core", "lib/device", "lib/format", "lib/arithmetic", "lib/kernel/detail"}
SIMULATOR = {"lib", "sim/options", "sim/tape", "sim/layers", "sim/models", "sim/optim", "sim/data", "sim/train"}
RESULTS = SIMULATOR | {"experiments/definition", "experiments/table"}
# Which layers a layer may include besides itself; the key is the folder. A name stands for the folders below it too.
ALLOWED = {
    "lib/core": set(),
    "lib/device": {"lib/core"},
    "lib/format": {"lib/core"},
    "lib/arithmetic": {"lib/core", "lib/format"},
    "lib/kernel/detail": {"lib/core", "lib/device", "lib/format", "lib/arithmetic"},
    "lib/kernel/histogram": KERNEL,
    "lib/kernel/block": KERNEL | {"lib/kernel/cast"},
    "lib/kernel/cast": KERNEL | {"lib/kernel/histogram"},
    "lib/kernel/gemm": KERNEL | {"lib/kernel/cast"},
    "lib/kernel/reduce": KERNEL | {"lib/kernel/cast"},
    "lib/kernel/update": KERNEL | {"lib/kernel/cast", "lib/kernel/histogram"},
    "lib/stats": KERNEL | {"lib/kernel"},
    "lib/passes": KERNEL | {"lib/kernel", "lib/stats", "lib/io"},
    "lib/scaling": KERNEL | {"lib/kernel", "lib/stats", "lib/io"},
    "lib/io": KERNEL | {"lib/kernel", "lib/stats"},
    "lib/explorer": {"lib/core", "lib/format", "lib/kernel", "lib/stats", "lib/io", "lib/scaling"},
    "lib/policy": KERNEL | {"lib/kernel", "lib/stats"},
    "lib/nn": KERNEL | {"lib/kernel"},
    "sim/options": {"lib"},
    "sim/tape": {"lib"},
    "sim/layers": {"lib", "sim/tape"},
    "sim/models": {"lib", "sim/options", "sim/tape", "sim/layers", "sim/data"},
    "sim/optim": {"lib", "sim/options", "sim/tape"},
    "sim/data": {"lib", "sim/options"},
    "sim/train": {"lib", "sim/options", "sim/tape", "sim/layers", "sim/models", "sim/optim", "sim/data"},
    "experiments/table": {"lib"},
    "experiments/definition": SIMULATOR,
    "experiments/results": RESULTS,
    "experiments/analyses": RESULTS | {"experiments/results"},
    "experiments/run": RESULTS | {"experiments/results"},
    "experiments/cli": RESULTS | {"experiments/results", "experiments/analyses", "experiments/run"},
}
SOURCES = {".hpp", ".cpp", ".cu", ".cuh"}
LOOPS = re.compile(r"(\w+?)(?:_simd\.cpp|(?:_gpu)?\.cu)$")
CUDA_HEADER = re.compile(r"^(cuda|cublas|curand|cooperative_groups|nvrtc|nvml|mma\.h|thrust/|cub/)")
EIGEN_HEADER = re.compile(r"^(Eigen|unsupported/Eigen)/")
# The public header that gives Eigen users the scalar type.
EIGEN_FOR_USERS = "lib/halfscope/arithmetic/eigen.hpp"
# Factors of matrices for a distance of networks' features; the installed library does without Eigen.
EIGEN_FOR_FEATURES = "lib/nn/frechet_distance.cpp"
# The peer that the matrix product is timed against.
EIGEN_AS_PEER = "experiments/cli/bench/bench_eigen_simd.cpp"
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{", re.MULTILINE)
# Text on stderr; STDERR_FILENO, which a terminal's width is asked of, is none.
TO_STDERR = re.compile(r"\bstderr\b|std::cerr|std::clog|\bperror\(")
STDERR_TEXT = "lib/halfscope/core/stderr_text.cpp"
MOST_PUBLIC_HEADERS = 80
# Headers of the program and the Python package, below lib/halfscope, which an install leaves out; a pattern a line.
NOT_INSTALLED = "lib/not_installed.txt"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path: str) -> str | None:
    """The layer of a file given by its path from the root: "lib/halfscope/core/x.hpp" -> "lib/core"."""
    parts = path.split("/")
    if parts[:2] == ["lib", "halfscope"] and len(parts) > 3:
        room = parts[3] if parts[2] == "kernel" and len(parts) > 4 else ""
        return f"lib/{parts[2]}/{room}".rstrip("/")
    if parts[:2] == ["lib", "nn"]:
        return "lib/nn"
    if parts[0] in ("sim", "experiments"):
        return f"{parts[0]}/{parts[1]}" if len(parts) > 2 else parts[0]
    return parts[0] if parts[0] == "tests" else None


def layer_of_include(name: str) -> str | None:
    """The layer of an included header; None for one that is not of this project."""
    return layer_of(f"lib/{name}") if name.startswith("halfscope/") else layer_of(name)


def may_include(layer: str, other: str) -> bool:
    allowed = ALLOWED.get(layer, set())
    above = {other.rsplit("/", n)[0] for n in range(other.count("/") + 1)}
    return other == layer or other in allowed or bool(above & allowed)


def check_external(path: str, header: str) -> str | None:
    device_file = path.endswith((".cu", ".cuh")) or (path.startswith("lib/halfscope/device/") and path.endswith("_cuda.cpp"))
    if CUDA_HEADER.match(header) and not device_file:
        return "CUDA headers belong in *.cu, *.cuh and device/*_cuda.cpp"
    in_kernel = path.startswith("lib/halfscope/kernel/") and path.endswith(".cpp")
    outside_kernel = (EIGEN_FOR_USERS, EIGEN_FOR_FEATURES, EIGEN_AS_PEER)
    if EIGEN_HEADER.match(header) and not in_kernel and path not in outside_kernel:
        return "Eigen headers belong in lib/halfscope/kernel/*.cpp"
    return None


def installed_headers(root: Path, headers: list[str]) -> list[str]:
    """The library's public headers: outside detail/ folders, and on no line of NOT_INSTALLED."""
    file = root / NOT_INSTALLED
    left_out = [re.compile(f"lib/halfscope/{line}") for line in file.read_text(encoding="utf-8").split()]
    return [
        path for path in headers
        if path.startswith("lib/halfscope/") and "/detail/" not in path and not any(each.match(path) for each in left_out)
    ]


def check_installed(root: Path, headers: list[str]) -> list[str]:
    """A header that is installed includes none that is not."""
    installed = installed_headers(root, headers)
    problems = []
    for path in installed:
        names = (match[2] for line in (root / path).read_text(encoding="utf-8").splitlines() if (match := INCLUDE.match(line)))
        inside = [f"lib/{name}" for name in names if name.startswith("halfscope/") and "/detail/" not in name]
        problems += [
            f"{path}: a public header may not include {other}, which {NOT_INSTALLED} names"
            for other in inside if other in headers and other not in installed
        ]
    return problems


def check_own(path: str, layer: str, bracket: str, header: str) -> str | None:
    other = layer_of_include(header)
    if other is None:
        return None
    if not may_include(layer, other):
        return f"layer {layer} may not include layer {other}"
    if header.startswith("halfscope/") != (bracket == "<"):
        return "the library is included as <halfscope/...>, everything else as \"...\""
    if "/detail/" in header and not path.startswith(("lib/", "tests/", "experiments/cli/bench/")):
        return "a detail/ folder is for the library itself"
    if "/detail/" in header and path.endswith(".hpp") and "/detail/" not in path and path.startswith("lib/halfscope/"):
        return "a public header may not include a detail/ folder, which is not installed"
    return None


def check_file(root: Path, path: str) -> list[str]:
    layer = layer_of(path)
    if layer not in ALLOWED:
        return [f"{path}: folder of no known layer; add it to ALLOWED in tests/check_layers.py"]
    problems = []
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        if TO_STDERR.search(line.split("//")[0]) and path != STDERR_TEXT:
            problems.append(f"{path}:{number}: text goes to stderr through print_stderr")
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, header = match.groups()
        problem = check_external(path, header) or check_own(path, layer, bracket, header)
        if problem:
            problems.append(f"{path}:{number}: {problem} ({header})")
    return problems


def check_types(root: Path, headers: list[str]) -> list[str]:
    """One program links everything in one namespace: a name may stand for one type only, unnamed namespaces apart."""
    problems = []
    defined: dict[str, str] = {}
    for path in headers:
        shared = (root / path).read_text(encoding="utf-8").split("\nnamespace {\n")[0]
        for name in TYPE.findall(shared):
            other = defined.setdefault(name, path)
            if other != path:
                problems.append(f"{path}: the type {name} is also defined in {other}; give it another name")
    return problems


def check_names(paths: set[str]) -> list[str]:
    """A source that is compiled per instruction set or for the device has a header of its name."""
    problems = []
    for path in sorted(paths):
        folder, name = path.rsplit("/", 1)
        match = LOOPS.match(name)
        if not match or not path.startswith("lib/"):
            continue
        stem = match[1]
        names = (f"{stem}.hpp", f"detail/{stem}.hpp", f"detail/{stem}.cuh", f"detail/{stem}_simd.hpp")
        if not {f"{folder}/{name}" for name in names} & paths:
            problems.append(f"{path}: no header {stem}.hpp beside it or in detail/ declares its function")
    return problems


def check_public_headers(public: list[str]) -> list[str]:
    if len(public) <= MOST_PUBLIC_HEADERS:
        return []
    return [
        f"lib/halfscope: {len(public)} public headers, more than {MOST_PUBLIC_HEADERS}; one that only the library includes "
        f"belongs in a detail/ folder, one of the program's on a line of {NOT_INSTALLED}"
    ]


def check_tree(root: Path) -> list[str]:
    problems = []
    headers = []
    paths = set()
    for top in ("lib/halfscope", "lib/nn", "sim", "experiments"):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in SOURCES:
                continue
            paths.add(path)
            problems += check_file(root, path)
            if file.suffix == ".hpp":
                headers.append(path)
    problems += check_names(paths) + check_types(root, headers) + check_installed(root, headers)
    return problems + check_public_headers(installed_headers(root, headers))


PLANTED = {  # file: (content, what the check must say; None where the file is right)
    "lib/halfscope/core/ok.hpp": ("#include <vector>\n#include <halfscope/core/error.hpp>\n", None),
    "lib/halfscope/core/up.hpp": ("#include <halfscope/format/round.hpp>\n", "core may not include layer lib/format"),
    "lib/halfscope/device/ok.cpp": ("#include <halfscope/core/error.hpp>\n", None),
    "lib/halfscope/device/ok_cuda.cpp": ("#include <cuda_runtime.h>\n", None),
    "lib/halfscope/format/ok.hpp": ("#include <halfscope/core/names.hpp>\n", None),
    "lib/halfscope/format/up.hpp": ("# include <halfscope/stats/site.hpp>\n", "may not include layer lib/stats"),
    "lib/halfscope/kernel/cast/sim.hpp": ('#include "sim/tape/tape.hpp"\n', "may not include layer sim/tape"),
    "lib/halfscope/kernel/cast/ok.cpp": ("#include <Eigen/Core>\n#include <halfscope/kernel/histogram/ok.hpp>\n", None),
    "lib/halfscope/kernel/histogram/ok.hpp": ("#include <halfscope/core/ok.hpp>\n", None),
    "lib/halfscope/kernel/histogram/up.hpp": (
        "#include <halfscope/kernel/update/update_effect.hpp>\n", "may not include layer lib/kernel/update"),
    "lib/halfscope/kernel/cast/ok.hpp": ("#include <halfscope/kernel/histogram/ok.hpp>\n", None),
    "lib/halfscope/kernel/cast/ok.cu": ("#include <cuda_runtime.h>\n", None),
    "lib/halfscope/kernel/cast/ok_simd.cpp": ("#include <halfscope/kernel/detail/dispatch.hpp>\n", None),
    "lib/halfscope/kernel/cast/orphan_simd.cpp": ("\n", "no header orphan.hpp"),
    "lib/halfscope/kernel/gemm/orphan_gpu.cu": ("\n", "no header orphan.hpp"),
    "lib/halfscope/kernel/cast/inside.hpp": (
        "#include <halfscope/kernel/detail/dispatch.hpp>\n", "a public header may not include a detail/ folder"),
    "lib/halfscope/kernel/cast/detail/inside.hpp": ("#include <halfscope/kernel/detail/dispatch.hpp>\n", None),
    "lib/halfscope/kernel/cast/nn.cpp": ('#include "lib/nn/softmax.hpp"\n', "may not include layer lib/nn"),
    "lib/halfscope/kernel/cast/cuda.cpp": ("#include <cuda_runtime.h>\n", "CUDA headers"),
    "lib/halfscope/kernel/cast/quoted.hpp": ('#include "halfscope/core/error.hpp"\n', "<halfscope/...>"),
    "lib/halfscope/arithmetic/eigen.hpp": ("#include <Eigen/Core>\n", None),
    "lib/halfscope/stats/eigen.cpp": ("#include <Eigen/Dense>\n", "Eigen headers"),
    "lib/halfscope/io/scaling.hpp": ("#include <halfscope/scaling/scalers.hpp>\n", "may not include layer lib/scaling"),
    "lib/halfscope/orphan/x.hpp": ("\n", "no known layer"),
    "lib/halfscope/stats/inner.hpp": ("\n", None),
    "lib/halfscope/stats/outer.hpp": ("#include <halfscope/stats/inner.hpp>\n", "a public header may not include"),
    "lib/halfscope/stats/outer.cpp": ("#include <halfscope/stats/inner.hpp>\n", None),
    "lib/halfscope/stats/finding.hpp": ("struct Finding;\nstruct Finding {\n};\n", None),
    "lib/halfscope/kernel/cast/finding.hpp": ("\nnamespace {\nstruct Finding {\n};\n}\n", None),
    "sim/train/silent.cpp": ('// on stderr\nprint_stderr("x");\nioctl(STDERR_FILENO, 0);\n', None),
    "sim/train/loud.cpp": ('fmt::print(stderr, "x");\n', "through print_stderr"),
    "experiments/cli/loud.cpp": ('std::cerr << "x";\n', "through print_stderr"),
    "lib/nn/frechet_distance.cpp": ("#include <Eigen/QR>\n", None),
    "lib/nn/eigen.cpp": ("#include <Eigen/QR>\n", "Eigen headers"),
    "lib/nn/ok.cpp": ("#include <halfscope/kernel/cast/ok.hpp>\n", None),
    "lib/nn/up.cpp": ("#include <halfscope/stats/site.hpp>\n", "layer lib/nn may not include layer lib/stats"),
    "sim/train/finding.hpp": ("struct Finding final : Base {\n};\n", "the type Finding is also defined in"),
    "sim/tape/ok.hpp": ('#include <halfscope/io/file.hpp>\n#include "lib/nn/ok.hpp"\n#include "sim/tape/cast.hpp"\n', None),
    "sim/tape/inside.cpp": ("#include <halfscope/kernel/detail/dispatch.hpp>\n", "a detail/ folder is for the library itself"),
    "sim/tape/tape.hpp": ('#include "sim/layers/linear.hpp"\n', "layer sim/tape may not include layer sim/layers"),
    "sim/loose.hpp": ("\n", "no known layer"),
    "sim/models/ok.hpp": ('#include "sim/data/dataset.hpp"\n', None),
    "sim/data/up.hpp": ('#include "sim/models/model.hpp"\n', "may not include layer sim/models"),
    "sim/train/ok.hpp": ('#include "sim/data/dataset.hpp"\n#include "sim/optim/sgd.hpp"\n', None),
    "sim/train/up.hpp": ('#include "experiments/cli/main.hpp"\n', "may not include layer experiments"),
    "experiments/definition/ok.cpp": ('#include "sim/train/trainer.hpp"\n', None),
    "experiments/definition/up.cpp": ('#include "experiments/results/summary.hpp"\n', "may not include layer experiments/results"),
    "experiments/results/ok.cpp": (
        '#include "experiments/definition/experiment.hpp"\n#include "experiments/table/table.hpp"\n', None),
    "experiments/results/up.cpp": ('#include "experiments/analyses/analyses.hpp"\n', "may not include layer experiments/analyses"),
    "experiments/analyses/ok.cpp": ('#include "experiments/results/summary.hpp"\n', None),
    "experiments/analyses/aside.cpp": ('#include "experiments/run/plan.hpp"\n', "may not include layer experiments/run"),
    "experiments/run/ok.cpp": ('#include "experiments/results/summary.hpp"\n', None),
    "experiments/run/aside.cpp": ('#include "experiments/analyses/analyses.hpp"\n', "may not include layer experiments/analyses"),
    "experiments/cli/ok.cpp": ('#include "experiments/analyses/analyses.hpp"\n#include "experiments/run/plan.hpp"\n', None),
}


def self_test() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, (content, expected) in PLANTED.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content, encoding="utf-8")
        (root / NOT_INSTALLED).write_text("stats/inner\n", encoding="utf-8")
        problems = check_tree(root)
        private = ["lib/halfscope/stats/detail/inside.hpp", "lib/halfscope/stats/inner.hpp", "sim/tape/tape.hpp"]
        installed = installed_headers(root, [*private, "lib/halfscope/io/x.hpp"])
    wrong = [] if installed == ["lib/halfscope/io/x.hpp"] else ["the public headers are chosen wrongly"]
    for path, (_, expected) in PLANTED.items():
        found = [problem for problem in problems if problem.startswith(f"{path}:")]
        right = not found if expected is None else len(found) == 1 and expected in found[0]
        if not right:
            wrong.append(f"{path}: expected {expected!r}, found {found}")
    headers = ["x.hpp"] * MOST_PUBLIC_HEADERS
    if check_public_headers(headers) or not check_public_headers([*headers, "y.hpp"]):
        wrong.append("the public headers are counted wrongly")
    print("\n".join(wrong) if wrong else f"all {len(PLANTED)} planted files judged rightly")
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or not (Path(arguments[0]) / "lib/halfscope").is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    problems = check_tree(Path(arguments[0]))
    print("\n".join(problems) if problems else "no include breaks a layer")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

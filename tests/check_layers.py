#!/usr/bin/env python3
"""Fails where an include breaks the layers of the design, a source is in no CMakeLists.txt, or two headers define a
type of one name: linked into one program, the functions of one would be taken for those of the other.

check_layers.py ROOT          check a tree
check_layers.py --self-test   check that planted violations are found
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

# Which layers a layer may include besides itself; the key is the folder.
ALLOWED = {
    "lib/core": set(),
    "lib/format": {"lib/core"},
    "lib/arithmetic": {"lib/core", "lib/format"},
    "lib/kernel": {"lib/core", "lib/format", "lib/arithmetic"},
    "lib/stats": {"lib/core", "lib/format", "lib/arithmetic", "lib/kernel"},
    "lib/scaling": {"lib/core", "lib/format", "lib/arithmetic", "lib/kernel", "lib/stats"},
    "lib/io": {"lib/core", "lib/format", "lib/arithmetic", "lib/kernel", "lib/stats"},
    "sim": {"lib"},
    "sim/layers": {"lib", "sim"},
    "sim/models": {"lib", "sim", "sim/layers", "sim/data"},
    "sim/optim": {"lib", "sim"},
    "sim/data": {"lib"},
    "sim/train": {"lib", "sim", "sim/layers", "sim/models", "sim/optim", "sim/data"},
    "experiments": {"lib", "sim", "sim/layers", "sim/models", "sim/optim", "sim/data", "sim/train"},
}
SOURCES = {".hpp", ".cpp", ".cu", ".cuh"}
COMPILED = {".cpp", ".cu"}
CUDA_HEADER = re.compile(r"^(cuda|cublas|curand|cooperative_groups|nvrtc|nvml|mma\.h|thrust/|cub/)")
EIGEN_HEADER = re.compile(r"^(Eigen|unsupported/Eigen)/")
# The public header that gives Eigen users the scalar type.
EIGEN_FOR_USERS = "lib/halfscope/arithmetic/eigen.hpp"
# The peer that the matrix product is timed against.
EIGEN_AS_PEER = "experiments/bench_eigen.cpp"
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path: str) -> str | None:
    """The layer of a file given by its path from the root: "lib/halfscope/core/x.hpp" -> "lib/core"."""
    parts = path.split("/")
    if parts[:2] == ["lib", "halfscope"] and len(parts) > 3:
        return f"lib/{parts[2]}"
    if parts[0] == "sim":
        return f"sim/{parts[1]}" if len(parts) > 2 else "sim"
    return parts[0] if parts[0] in ("experiments", "tests") else None


def layer_of_include(name: str) -> str | None:
    """The layer of an included header; None for one that is not of this project."""
    return layer_of(f"lib/{name}") if name.startswith("halfscope/") else layer_of(name)


def may_include(layer: str, other: str) -> bool:
    allowed = ALLOWED.get(layer, set())
    return other == layer or other in allowed or (other.startswith("lib/") and "lib" in allowed)


def check_external(path: str, header: str) -> str | None:
    device_file = path.endswith((".cu", ".cuh")) or Path(path).name.startswith("device_cuda.")
    if CUDA_HEADER.match(header) and not device_file:
        return "CUDA headers belong in *.cu, *.cuh and core/device_cuda.*"
    in_kernel = path.startswith("lib/halfscope/kernel/") and path.endswith(".cpp")
    if EIGEN_HEADER.match(header) and not in_kernel and path not in (EIGEN_FOR_USERS, EIGEN_AS_PEER):
        return "Eigen headers belong in lib/halfscope/kernel/*.cpp"
    return None


def check_own(path: str, layer: str, bracket: str, header: str) -> str | None:
    other = layer_of_include(header)
    if other is None:
        return None
    if not may_include(layer, other):
        return f"layer {layer} may not include layer {other}"
    if other.startswith("lib/") != (bracket == "<"):
        return "the library is included as <halfscope/...>, everything else as \"...\""
    return None


def check_file(root: Path, path: str) -> list[str]:
    layer = layer_of(path)
    if layer not in ALLOWED:
        return [f"{path}: folder of no known layer; add it to ALLOWED in tests/check_layers.py"]
    problems = []
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, header = match.groups()
        problem = check_external(path, header) or check_own(path, layer, bracket, header)
        if problem:
            problems.append(f"{path}:{number}: {problem} ({header})")
    return problems


def listed_sources(root: Path) -> set[str]:
    """Every *.cpp and *.cu that a CMakeLists.txt names, as paths from the root."""
    listed = set()
    for top in ("lib", "sim", "experiments", "tests"):
        for cmake in (root / top).rglob("CMakeLists.txt"):
            code = re.sub(r"#.*", "", cmake.read_text(encoding="utf-8"))
            for name in re.findall(r"[\w./-]+\.(?:cpp|cu)\b", code):
                listed.add((cmake.parent / name).resolve().relative_to(root.resolve()).as_posix())
    return listed


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


def check_tree(root: Path) -> list[str]:
    problems = []
    headers = []
    listed = listed_sources(root)
    for top in ("lib/halfscope", "sim", "experiments", "tests"):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in SOURCES:
                continue
            if top != "tests":
                problems += check_file(root, path)
            if top != "tests" and file.suffix == ".hpp":
                headers.append(path)
            if file.suffix in COMPILED and path not in listed:
                problems.append(f"{path}: is in no CMakeLists.txt, so nothing compiles it")
    return problems + check_types(root, headers)


PLANTED = {  # file: (content, what the check must say; None where the file is right)
    "lib/halfscope/core/ok.hpp": ("#include <vector>\n#include <halfscope/core/error.hpp>\n", None),
    "lib/halfscope/core/up.hpp": ("#include <halfscope/format/round.hpp>\n", "core may not include layer lib/format"),
    "lib/halfscope/format/ok.hpp": ("#include <halfscope/core/names.hpp>\n", None),
    "lib/halfscope/format/up.hpp": ("# include <halfscope/stats/site.hpp>\n", "may not include layer lib/stats"),
    "lib/halfscope/kernel/sim.hpp": ('#include "sim/tape.hpp"\n', "may not include layer sim"),
    "lib/halfscope/kernel/ok.cpp": ("#include <Eigen/Core>\n", None),
    "lib/halfscope/kernel/ok.cu": ("#include <cuda_runtime.h>\n", None),
    "lib/halfscope/kernel/cuda.cpp": ("#include <cuda_runtime.h>\n", "CUDA headers"),
    "lib/halfscope/kernel/quoted.hpp": ('#include "halfscope/core/error.hpp"\n', "<halfscope/...>"),
    "lib/halfscope/arithmetic/eigen.hpp": ("#include <Eigen/Core>\n", None),
    "lib/halfscope/stats/eigen.cpp": ("#include <Eigen/Dense>\n", "Eigen headers"),
    "lib/halfscope/io/scaling.hpp": ("#include <halfscope/scaling/scalers.hpp>\n", "may not include layer lib/scaling"),
    "lib/halfscope/orphan/x.hpp": ("\n", "no known layer"),
    "lib/halfscope/stats/finding.hpp": ("struct Finding;\nstruct Finding {\n};\n", None),
    "lib/halfscope/kernel/finding.hpp": ("\nnamespace {\nstruct Finding {\n};\n}\n", None),
    "sim/train/finding.hpp": ("struct Finding final : Base {\n};\n", "the type Finding is also defined in"),
    "lib/halfscope/core/forgotten.cpp": ("\n", "in no CMakeLists.txt"),
    "sim/ok.hpp": ('#include <halfscope/io/file.hpp>\n#include "sim/cast.hpp"\n', None),
    "sim/tape.hpp": ('#include "sim/layers/linear.hpp"\n', "layer sim may not include layer sim/layers"),
    "sim/models/ok.hpp": ('#include "sim/data/dataset.hpp"\n', None),
    "sim/data/up.hpp": ('#include "sim/models/model.hpp"\n', "may not include layer sim/models"),
    "sim/train/ok.hpp": ('#include "sim/data/dataset.hpp"\n#include "sim/optim/sgd.hpp"\n', None),
    "sim/train/up.hpp": ('#include "experiments/main.hpp"\n', "may not include layer experiments"),
    "experiments/ok.cpp": ('#include "sim/train/trainer.hpp"\n', None),
    "tests/sim/forgotten_test.cpp": ("\n", "in no CMakeLists.txt"),
}


def self_test() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, (content, expected) in PLANTED.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content, encoding="utf-8")
        compiled = [path for path in PLANTED if Path(path).suffix in COMPILED and "forgotten" not in path]
        for top in ("lib", "experiments"):
            names = [path[len(top) + 1:] for path in compiled if path.startswith(top)]
            (root / top / "CMakeLists.txt").write_text("\n".join(names) + "\n# forgotten.cpp\n", encoding="utf-8")
        problems = check_tree(root)
    wrong = []
    for path, (_, expected) in PLANTED.items():
        found = [problem for problem in problems if problem.startswith(f"{path}:")]
        right = not found if expected is None else len(found) == 1 and expected in found[0]
        if not right:
            wrong.append(f"{path}: expected {expected!r}, found {found}")
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

"""CMake without one of the packages that halfscope links to: it stops, and names the Debian package."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("lib", "lib/python", "sim", "experiments", "tests", "tests/fuzz")
CMAKE_FILES = [ROOT / "cmake/Dependencies.cmake", *(ROOT / folder / "CMakeLists.txt" for folder in FOLDERS)]
PACKAGES = {
    "fmt": "libfmt-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "ZLIB": "zlib1g-dev",
    "Threads": r"g\+\+",
    "Boost": "libboost-dev",
    "CLI11": "libcli11-dev",
    "tomlplusplus": "libtomlplusplus-dev",
    "Eigen3": "libeigen3-dev",
    "Catch2": "catch2",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build folder: once its compiler is known, a configuration takes a second."""
    return tmp_path_factory.mktemp("build")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_named(folder: Path, package: str) -> None:
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    command = ["cmake", "--preset", "release", "-B", str(folder), f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    message = " ".join(result.stderr.split())
    assert result.returncode != 0
    assert re.search(rf"halfscope needs {package}\b.*apt-get install {PACKAGES[package]}( |$)", message), message


def test_all_missing_packages_are_named_at_once(folder: Path) -> None:
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    missing = ("fmt", "nlohmann_json", "ZLIB", "CLI11")
    disabled = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON" for package in missing]
    command = ["cmake", "--preset", "release", "-B", str(folder), *disabled]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = [line.split() for line in result.stderr.splitlines() if "halfscope needs" in line]
    assert result.returncode != 0
    assert [(line[2].rstrip(","), line[-1]) for line in lines] == [(name, PACKAGES[name]) for name in missing]


@pytest.mark.parametrize("page", ["docs/guides/python.md", "tools/common.sh"])
def test_documents_and_tools_name_every_package(page: str) -> None:
    text = (ROOT / page).read_text()
    looked_for = re.findall(r"halfscope_look_for\w*\(.*?((?:lib)?[\w+-]+-dev|g\+\+)", CMAKE_FILES[0].read_text())
    assert len(looked_for) == 9
    assert [package for package in looked_for if package not in text] == []


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    command = [str(shutil.which("cmake")), "--preset", "dev", "-B", str(tmp_path / "build")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": str(tmp_path)})
    message = " ".join(result.stderr.split())
    assert result.returncode != 0
    assert re.search(r"halfscope needs clang\+\+, .*apt-get install clang( |$)", message), message


def test_a_missing_library_is_named(folder: Path) -> None:
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    nowhere = "set(CMAKE_FIND_LIBRARY_SUFFIXES .none)\n"
    script = folder / "script.cmake"
    script.write_text(
        f"{nowhere}include({ROOT}/cmake/Packages.cmake)\nhalfscope_find_library(FOUND mpfr libmpfr-dev)\n"
    )
    result = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True)
    assert result.returncode != 0 and "apt-get install libmpfr-dev" in " ".join(result.stderr.split())


def test_every_package_is_looked_for_in_this_way() -> None:
    text = "".join(path.read_text() for path in CMAKE_FILES)
    # MPI is optional: without it nothing stops.
    others = ["find_package(MPI COMPONENTS CXX QUIET", "find_package(nanobind CONFIG REQUIRED"]
    assert [line.strip() for line in re.findall(r"^ *find_(?:package|library)\([^$)]*", text, re.M)] == others
    found = set(re.findall(r"halfscope_(?:find|look_for)\((\w+) ", text))
    assert found - {"CUDAToolkit", "MPI", "Python", "Python3"} == set(PACKAGES)

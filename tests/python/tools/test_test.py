"""tools/test: its stages, the presets it builds, and the long tests."""

from __future__ import annotations

import re

import pytest

from copied_tree import INSTALL, ROOT, Tree, without

DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def test_the_test_tool_counts_stages_and_fails_where_one_fails(tested: Tree) -> None:
    good = tested.run("test")
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.splitlines()[-1] == "4 passed, 0 failed"
    assert re.search(r"^== test_release: passed in \d+ s, \d+ s of processor$", good.stdout, re.M)
    assert "ctest --preset release -j 2 -LE exhaustive|slow|install|additions" in tested.log()
    assert {line.split()[3] for line in tested.log() if line.startswith("cmake --build")} == {"release"}
    assert f"{INSTALL} --editable ." in tested.log()
    tested.command(
        "ctest",
        "echo ' Start 1: one'; echo '1/2 Test #1: one ...***Failed'; echo expected 3; echo ' Start 2: two'; "
        "seq 50; exit 8",
    )
    bad = tested.run("test")
    assert bad.returncode == 1
    end = bad.stdout[bad.stdout.index("== test_release failed") :]
    assert "***Failed\nexpected 3\n21\n" in end and end.count("50") == 1
    assert re.fullmatch(r"== \d+ s; failed: test_release", bad.stdout.splitlines()[-2])
    assert bad.stdout.splitlines()[-1] == "3 passed, 1 failed"


def test_all_builds_every_preset_that_the_documents_name(tested: Tree) -> None:
    result = tested.run("test", "--all")
    assert result.returncode == 0, result.stdout + result.stderr
    log = tested.log()
    named = set(re.findall(r"--preset[ =](\w+)", "".join(path.read_text() for path in DOCUMENTS)))
    built = {line.split()[3] for line in log if re.fullmatch(r"cmake --build --preset \w+", line)}
    assert named - built == set() and built >= {"release", "dev", "fuzz", "cuda", "ptx", "portable"}
    assert "cmake --build --preset release --target all_verify_interface_header_sets" in log
    assert "site " in log and "wheel --floor --config-settings=cmake.define.HALFSCOPE_WARNINGS_AS_ERRORS=ON" in log
    tests = (
        "release -L install",
        "release -L additions",
        "dev -j 2 -LE exhaustive|slow|long",
        "fuzz -j 5",
        "cuda -L gpu|training",
        "ptx -j 2 -L ptx|gpu|^training$",
    )
    for test in tests:
        assert f"ctest --preset {test}" in log
    assert log.count("ctest --preset ptx -j 2 -L gpu") == 2  # in two other schedules
    assert not any("-L long_" in line for line in log)
    assert result.stdout.splitlines()[-1] == "19 passed, 0 failed"


def test_without_a_cuda_compiler_nothing_is_built_with_cuda(tested: Tree) -> None:
    path = without(tested, "nvcc")
    result = tested.run("test", "--all", PATH=path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "== no nvcc: the CUDA kernels are not compiled" in result.stdout
    assert not any("--preset cuda" in line or "--preset portable" in line for line in tested.log())


@pytest.mark.parametrize("options", [(), ("--slurm",), ("--all",)])
def test_a_sweep_runs_under_slurm_where_it_is_asked_for(tested: Tree, options: tuple[str, ...]) -> None:
    result = tested.run("test", *options)
    assert result.returncode == 0, result.stdout
    assert (
        re.search(r"^== test_slurm: passed in \d+ s, \d+ s of processor$", result.stdout, re.M) is not None
    ) == bool(options)


@pytest.mark.parametrize("option", [(), ("--exhaustive",), ("--slow",)])
def test_long_tests_run_where_they_are_asked_for(tested: Tree, option: tuple[str, ...]) -> None:
    result = tested.run("test", *option)
    assert result.returncode == 0, result.stdout
    assert "ctest --preset release -j 2 -LE exhaustive|slow|install|additions" in tested.log()
    assert ("ctest --preset release -j 2 -L exhaustive" in tested.log()) == ("--exhaustive" in option)
    assert ("ctest --preset release -L slow" in tested.log()) == ("--slow" in option)
    assert ("== test_python_slowly" in result.stdout) == ("--slow" in option)


def test_long_trainings_are_interpreted_with_all_and_slow(tested: Tree) -> None:
    result = tested.run("test", "--all", "--slow")
    assert result.returncode == 0, result.stdout
    assert "ctest --preset ptx -j 2 -L long_training" in tested.log()
    assert "ctest --preset ptx -L long_mutants" in tested.log()
    assert tested.log().count("ctest --preset ptx -j 2 -L training") == 2

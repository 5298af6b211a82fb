"""tools/reproduce: which experiments run on which data, and which results are forgotten."""

from __future__ import annotations

import shutil

import pytest

import experiment_list
from copied_tree import CORES, INSTALL, LISTED, MIXED, QUICK, TEXT, Tree, kinds_of
from recording.source_tree import PROGRAM

JOBS = f"--jobs {CORES}"


def test_reproduce_runs_the_quick_ablations_and_draws(tree: Tree) -> None:
    result = tree.run("reproduce", "--out", "out", draws="yes")
    assert result.returncode == 0, result.stderr
    out = tree.out
    assert tree.log() == [
        "cmake --preset release --log-level=WARNING -DHALFSCOPE_UNITY=ON -DHALFSCOPE_TESTS=OFF",
        "cmake --build --preset release",
        f"halfscope run {' '.join(QUICK)} --quick {JOBS} --out {out} --resume",
        *(f"halfscope report {out}/{name}" for name in QUICK),
        f"{INSTALL} --editable .",
    ]
    assert result.stdout.splitlines()[-1] == f"== report: {out}/report.html"
    assert (out / "report.html").stat().st_size > 10_000


def test_reproduce_writes_into_results_quick(tree: Tree) -> None:
    folder = str(tree.folder / "results/quick")
    assert tree.run("reproduce", out=folder).returncode == 0
    assert f"halfscope run {' '.join(QUICK)} --quick {JOBS} --out {folder} --resume" in tree.log()


def test_reproduce_all_runs_what_the_program_lists(tree: Tree) -> None:
    result = tree.run("reproduce", "--all", "--out", "out")
    assert result.returncode == 0, result.stderr
    runs = [line for line in tree.log() if line.startswith("halfscope run")]
    assert runs == [f"halfscope run {' '.join(LISTED)} --seeds 3 {JOBS} --out {tree.out} --resume"]


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_the_program_knows_the_quick_set_and_the_data() -> None:
    entries = experiment_list.list_experiments(PROGRAM)
    assert tuple(entry.name for entry in entries if entry.in_quick_set) == QUICK
    assert {entry.name: entry.data for entry in entries if entry.in_quick_set} == {
        name: kinds_of(name) for name in QUICK
    }
    left_out = {
        "averaging-sweep",
        "master-copy-sgd",
        "scaler-comparison",
        "segmentation-loss-scale",
        "image-master-copy",
        "image-classifiers",
        "resnet-loss-scale",
        "accumulation-error",
        "all-reduce",
        "bert-finetuning",
        "block-formats",
        "advice-validity",
        "amp-levels",
        "cast-cache",
        "ctc-precision",
        "data-parallel",
        "dcgan",
        "detectors",
        "gradient-accumulation",
        "later-networks",
        "lstm-loss-scale",
        "speech-gradients",
        "speech-master-copy",
        "translation-loss-scale",
        "attention-rounding",
        "fp4-components",
        "fp8-formats",
        "fp8-sums",
        "muon-loss-scale",
        "softmax-collapse",
        "two-executions",
        "format-mixtures",
        "one-sided-rounding",
        "output-layer-accumulation",
        "quantizers",
        "weights-without-master",
        "zero-gradients",
        "where-master-copy",
        "where-loss-scaling",
        "where-fp32-sums",
        "narrow-windows",
    }
    assert {entry.name for entry in entries if not entry.in_quick_set} == left_out
    assert all(set(entry.full_arms) <= set(entry.data_of) for entry in entries)


def test_a_program_that_cannot_list_fails_reproduce(tree: Tree) -> None:
    tree.script(tree.folder / "build/release/experiments/halfscope", 'echo "no list" >&2; exit 2')
    result = tree.run("reproduce")
    assert result.returncode == 3 and "halfscope list experiments --json: no list" in result.stderr


def test_reproduce_gives_each_experiment_its_own_data(tree: Tree) -> None:
    result = tree.run("reproduce", "--data", "my images", "--text", "my text", "--out", "out")
    assert result.returncode == 0, result.stderr
    images = [name for name in QUICK if name not in (*TEXT, *MIXED)]
    assert {line for line in tree.log() if line.startswith("halfscope run")} == {
        f"halfscope run {' '.join(names)} --quick --data {tree.folder}/my {kind} {JOBS} --out {tree.out} --resume"
        for kind, names in {"images": images, "text": TEXT}.items()
    }
    assert all(f"leaving out {name}" in result.stdout for name in MIXED)


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

"""Recounts of a rule of the advisor: recorded trainings beside FP32 runs trained again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from halfscope.results.json_files import read_json as read
from recording.recount import main, recount
from synthetic import write_json

NAME = "narrow"
LOSSES = {"gru_fp32": (None, [2.0, 4.0]), "gru_s1": ("gru_fp32", [3.0, None])}
OLD, NEW = {"git_revision": "old", "cpu": "one"}, {"git_revision": "new", "cpu": "two", "instruction_set": "avx2"}

PROGRAM = """#!{python}
import json, pathlib, sys
folder = pathlib.Path(sys.argv[-1])
loss = lambda arm, seed: json.loads((folder / arm / f"seed{{seed}}/summary.json").read_text())["train_loss"]
def training(seed):
    ratio = loss("gru_s1", seed) and loss("gru_s1", seed) / loss("gru_fp32", seed)
    line = dict(task="gru", set="fitted", seed=seed, scale_log2=0, loss_ratio=ratio, harmed=ratio != 1)
    return line | dict(predictors=[{new}, {new}])
predictors = [dict(name="share", steps=steps, right=9) for steps in ("first", "all")]
columns = ["predictor", "steps", "right"]
rows = [["share", "first", "9"], ["share", "all", "9"]]
sections = [dict(columns=columns, rows=rows), dict(columns=["task"], rows=[["gru"]])]
harm = dict(trainings=[training(0), training(1)], advice="new", predictors=predictors)
made = dict(harm=harm, findings=[dict(key="harm", sections=sections)], verdict="New.", arms="of the folder")
(folder / "summary.json").write_text(json.dumps(made))
print("report of", folder.name)
for cells in (columns, *rows):
    print(f"  {{cells[0]:9}}  {{cells[1]:>5}}  {{cells[2]:>5}}")
print("  verdict: New.")
"""


def _predictors(*names: str) -> list[dict]:
    return [{"name": name, "steps": steps, "right": 7} for steps in ("first", "all") for name in names]


def _summary(arms: list[dict], harm: dict) -> dict:
    rows = [[line["name"], line["steps"], "7"] for line in harm["predictors"]]
    sections = [{"columns": ["predictor", "steps", "right"], "rows": rows}]
    findings = [{"key": "harm", "sections": sections}]
    return {"experiment": NAME, "arms": arms, "harm": harm, "findings": findings, "size": "small"}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    folder = tmp_path / "recorded" / NAME
    folder.mkdir(parents=True)
    arms = [
        {"arm": arm, "baseline": base, "seed_list": [0, 1], "values": values} for arm, (base, values) in LOSSES.items()
    ]
    common = {"task": "gru", "set": "fitted", "scale_log2": 0, "harmed": True, "predictors": [0.1, 0.2]}
    trainings = [common | {"seed": 0, "loss_ratio": 1.5}, common | {"seed": 1, "loss_ratio": None}]
    harm = {"trainings": trainings, "advice": "old", "predictors": _predictors("share")}
    write_json(folder / "summary.json", {**_summary(arms, harm), "verdict": "Old. With one: probe."})
    write_json(folder / "environment.json", OLD)
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / NAME
    for seed, loss in enumerate(LOSSES["gru_fp32"][1]):
        run = folder / f"gru_fp32/seed{seed}"
        run.mkdir(parents=True)
        write_json(run / "summary.json", {"train_loss": loss})
        write_json(run / "environment.json", NEW | {"threads": 1})
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text(PROGRAM.format(python=sys.executable, new=0.7))
    path.chmod(0o755)
    return path


def test_the_rule_is_new_and_the_trainings_are_those_recorded(record: Path, results: Path, program: Path) -> None:
    before = read(record / "summary.json")
    recount(results, record, program)
    made = read(record / "summary.json")
    assert (made["harm"]["advice"], made["verdict"]) == ("new", "New.")
    assert [line["predictors"] for line in made["harm"]["trainings"]] == [[0.7, 0.7], [0.7, 0.7]]
    assert [line["loss_ratio"] for line in made["harm"]["trainings"]] == [1.5, None]
    same = ("experiment", "arms", "size")
    assert [made[key] for key in same] == [before[key] for key in same]
    assert (record / "report.txt").read_text().startswith(f"report of {NAME}\n")
    assert read(record / "environment.json") == OLD | {"fp32_again": NEW}


def test_predictors_that_the_fp32_runs_lack_keep_their_recorded_values(
    record: Path, results: Path, program: Path
) -> None:
    before = read(record / "summary.json")
    before["harm"]["predictors"] = _predictors("share", "probe")
    for line in before["harm"]["trainings"]:
        line["predictors"] = [0.1, 0.2, 0.3, 0.4]  # share and probe of the first step, then of all
    write_json(record / "summary.json", _summary(before["arms"], before["harm"]) | {"verdict": before["verdict"]})
    recount(results, record, program)
    made = read(record / "summary.json")
    names = [("share", "first"), ("probe", "first"), ("share", "all"), ("probe", "all")]
    assert [(line["name"], line["steps"]) for line in made["harm"]["predictors"]] == names
    assert [line["right"] for line in made["harm"]["predictors"]] == [9, 7, 9, 7]
    assert [line["predictors"] for line in made["harm"]["trainings"]] == [[0.7, 0.2, 0.7, 0.4]] * 2
    assert [row[0] for row in made["findings"][0]["sections"][0]["rows"]] == [name for name, _ in names]
    assert made["verdict"] == "New. With one: probe."
    assert (record / "report.txt").read_text().splitlines()[1:] == [
        "  predictor  steps  right",
        "  share      first      9",
        "  probe      first      7",
        "  share        all      9",
        "  probe        all      7",
        "  verdict: New. With one: probe.",
    ]


def test_an_fp32_run_that_ends_elsewhere_is_refused(
    record: Path, results: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {path.name: path.read_bytes() for path in record.iterdir()}
    run = results / "gru_fp32/seed1/summary.json"
    write_json(run, {"train_loss": 4.0000001})
    assert main([str(results), str(record), str(program)]) == 2
    assert "gru_fp32/seed1: it ends at 4.0000001, the recorded run at 4.0" in capsys.readouterr().err
    run.unlink()
    assert main([str(results), str(record), str(program)]) == 2
    assert "every FP32 arm with all recorded seeds" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in record.iterdir()} == kept


def test_trainings_that_a_program_reads_otherwise_are_refused(record: Path, results: Path, program: Path) -> None:
    program.write_text(program.read_text().replace('set="fitted"', 'set="held_out"'))
    with pytest.raises(ValueError, match="narrow: the trainings are not those recorded"):
        recount(results, record, program)

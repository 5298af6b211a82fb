"""Records of results: complete, small, of one machine."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from halfscope.results import read_experiment
from halfscope.results.json_files import read_json as read
from halfscope.results.recorded import read_table
from recording import pack_results
from recording.pack_results import folder_size, main, record_results
from recording.pages import pages
from recording.source_tree import RECORDED
from synthetic import write_json, write_json_lines, write_results
from synthetic_record import report_rows
from synthetic_scales import predictions, write_scale_results


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Stands in for halfscope: says which folder it was to report on, and makes both derived files where it is to."""
    path = tmp_path / "program"
    path.write_text("""#!/bin/sh
if [ "$2" = --save ]; then
  echo "{\\"made\\": \\"$(ls "$3" | xargs)\\"}" >"$3/summary.json"
  echo "of $(basename "$3")" >"$3/report.txt"
else
  echo "$1 of $(basename "$2")"
fi
""")
    path.chmod(0o755)
    return path


def lines_of(path: Path) -> list[dict]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return list(map(json.loads, text.splitlines()))


def test_a_record_has_the_figures_and_no_checkpoints(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=2)
    (experiment / "fp32/seed0/checkpoint").mkdir()
    histograms = experiment / "fp32/seed1/histograms.jsonl"
    whole = lines_of(histograms)
    write_json_lines(histograms, [*whole, {**whole[0], "step": 30}])
    assert record_results(tmp_path / "results", tmp_path / "kept", program) == ["master-copy"]
    kept = tmp_path / "kept/master-copy"
    assert sorted(path.name for path in kept.iterdir()) == [
        "environment.json", "histograms.jsonl.gz", "report.txt", "runs.jsonl", "summary.json",
    ]  # fmt: skip
    assert lines_of(kept / "summary.json") == [{"made": "environment.json histograms.jsonl.gz runs.jsonl"}]
    assert (kept / "report.txt").read_text() == "of master-copy\n"
    assert folder_size(kept) == sum(len(path.read_bytes()) for path in kept.iterdir())
    recorded = [line for line in lines_of(kept / "histograms.jsonl.gz") if (line["arm"], line["seed"]) == ("fp32", 1)]
    ends = [{"arm": "fp32", "seed": 1, **line} for line in (*whole[:3], whole[0] | {"step": 30})]
    assert list(map(list, recorded)) == list(map(list, ends)) and recorded == ends


def test_settings_that_all_runs_share_are_recorded_once(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=2, steps=10)
    write_json(experiment / "fp32/seed1/config.json", read(experiment / "fp32/seed1/config.json") | {"batch": 64.0})
    record_results(tmp_path / "results", tmp_path / "kept", program)
    head, *runs = lines_of(tmp_path / "kept/master-copy/runs.jsonl")
    assert head == {
        "format_version": 1, "experiment": "master-copy",
        "config": {"format_version": 1, "experiment": "master-copy", "steps": 10, "learning_rate": 1e-5},
    }  # fmt: skip
    arms = ["fp32", "fp16_mixed", "fp16_no_master", "fp16_unprotected"]
    assert [(run["arm"], run["seed"]) for run in runs] == [(arm, seed) for arm in arms for seed in (0, 1)]
    for run in runs:
        folder = experiment / run["arm"] / f"seed{run['seed']}"
        assert list(run) == ["arm", "seed", "config", "summary", "loss_curve"]
        assert head["config"] | run["config"] == read(folder / "config.json")
        assert run["summary"] == read(folder / "summary.json")
    assert json.dumps(runs[1]["config"]["batch"]) == "64.0"  # equal to the others' 64, but not the same text


def test_curves_are_kept_in_fifty_windows(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=1, steps=110)
    path = experiment / "fp32/seed0/metrics.jsonl"
    steps = lines_of(path)
    causes = [{"tensor": "a.weight", "elements": 8, "zeros": 3}, {"tensor": "b.weight", "elements": 4, "zeros": 1}]
    steps[9]["zero_causes"], steps[5]["loss"] = causes, None
    write_json_lines(path, steps)
    record_results(tmp_path / "results", tmp_path / "kept", program)
    _, run, other, *_ = lines_of(tmp_path / "kept/master-copy/runs.jsonl")
    curve = run["loss_curve"]
    assert curve["steps"] == [*range(3, 110, 3), 110]
    assert curve["loss"][0] == pytest.approx(sum(step["loss"] for step in steps[:3]) / 3, rel=1e-5)
    assert curve["loss"][1] is None
    assert curve["loss"][-1] == pytest.approx((steps[-2]["loss"] + steps[-1]["loss"]) / 2, rel=1e-5)
    assert run["zero_causes"] == [{"step": 10, "elements": 12, "zeros": 4}]
    assert "zero_causes" not in other
    of_folder, of_record = read_experiment(experiment), read_experiment(made_whole(experiment, tmp_path / "kept"))
    for arm in of_folder.runs:
        assert of_folder.runs[arm][0].loss_curve.equals(of_record.runs[arm][0].loss_curve)
    assert of_record.runs["fp32"][0].zero_causes.loc[10].to_dict() == {"elements": 12, "zeros": 4}
    assert of_record.runs["fp16_mixed"][0].zero_causes.empty


def made_whole(experiment: Path, kept: Path) -> Path:
    """The record with the summary of its source, which the stand-in for the program does not make."""
    write_json(kept / experiment.name / "summary.json", read(experiment / "summary.json"))
    return kept / experiment.name


def test_the_first_step_is_kept_where_predictions_are_compared_with_it(tmp_path: Path, program: Path) -> None:
    lines = predictions(("fp16_s8", 8.0))
    experiment = write_scale_results(tmp_path / "results", seeds=1, predictions=lines)
    record_results(tmp_path / "results", tmp_path / "kept", program)
    _, *runs = lines_of(tmp_path / "kept/detection-loss-scale/runs.jsonl")
    for run in runs:
        first = lines_of(experiment / run["arm"] / "seed0/metrics.jsonl")[0]
        assert run["first_step"] == {"step": 1, "tensors": first["tensors"]} and len(first["tensors"]) == 4


def test_the_same_histograms_give_the_same_bytes(tmp_path: Path, program: Path) -> None:
    for name in ("one", "other"):
        write_results(tmp_path / name, seeds=1, steps=10)
        record_results(tmp_path / name, tmp_path / f"kept {name}", program)
    one, other = ((tmp_path / f"kept {name}/master-copy/histograms.jsonl.gz").read_bytes() for name in ("one", "other"))
    assert one == other
    assert one[3:8] == b"\0" * 5  # no name, no time


def test_histograms_that_are_none_or_too_many_are_left_out(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = write_results(tmp_path / "results", seeds=1, steps=10)
    record_results(tmp_path / "results", tmp_path / "kept", program)
    size = (tmp_path / "kept/master-copy/histograms.jsonl.gz").stat().st_size
    for most, kept in ((size, True), (size - 1, False)):
        monkeypatch.setattr(pack_results, "MOST_HISTOGRAMS", most)
        record_results(tmp_path / "results", tmp_path / "kept", program)
        assert (tmp_path / "kept/master-copy/histograms.jsonl.gz").exists() is kept
    summary = read(experiment / "summary.json")
    write_json(experiment / "summary.json", summary | {"predictions": [{"arm": "fp16_mixed"}]})
    record_results(tmp_path / "results", tmp_path / "kept", program)
    assert (tmp_path / "kept/master-copy/histograms.jsonl.gz").exists()  # predictions are made from them
    monkeypatch.undo()
    for path in experiment.glob("*/seed0/histograms.jsonl"):
        path.write_text("")
    record_results(tmp_path / "results", tmp_path / "kept", program)
    assert not (tmp_path / "kept/master-copy/histograms.jsonl.gz").exists()


def test_of_too_many_histograms_those_of_the_baselines_are_kept(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = write_results(tmp_path / "results", seeds=2, steps=10)
    summary = read(experiment / "summary.json")
    arms = [{**line, "baseline": "" if line["arm"] == "fp32" else "fp32"} for line in summary["arms"]]
    write_json(experiment / "summary.json", summary | {"arms": arms})
    kept = tmp_path / "kept/master-copy/histograms.jsonl.gz"
    record_results(tmp_path / "results", tmp_path / "kept", program)
    assert {line["arm"] for line in lines_of(kept)} > {"fp32"}
    monkeypatch.setattr(pack_results, "MOST_HISTOGRAMS", kept.stat().st_size - 1)
    record_results(tmp_path / "results", tmp_path / "kept", program)
    assert {(line["arm"], line["seed"]) for line in lines_of(kept)} == {("fp32", 0), ("fp32", 1)}


def test_of_hundreds_of_trainings_the_summary_is_recorded(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=2, steps=10)
    write_json(experiment / "summary.json", read(experiment / "summary.json") | {"harm": {"trainings": []}})
    record_results(tmp_path / "results", tmp_path / "kept", program)
    kept = tmp_path / "kept/master-copy"
    assert sorted(path.name for path in kept.iterdir()) == ["environment.json", "report.txt", "summary.json"]
    assert (kept / "summary.json").read_bytes() == (experiment / "summary.json").read_bytes()
    assert "made" in read(kept / "summary.json")  # anew, by the program's claims
    assert (kept / "report.txt").read_text() == "report of master-copy\n"


def test_recording_again_replaces_what_was_recorded(tmp_path: Path, program: Path) -> None:
    write_results(tmp_path / "results", seeds=2)
    record_results(tmp_path / "results", tmp_path / "kept", program)
    write_results(tmp_path / "other", seeds=1)
    write_results(tmp_path / "other", seeds=1, name="not-asked-for")
    record_results(tmp_path / "other", tmp_path / "kept", program, names=["master-copy"])
    assert {run["seed"] for run in lines_of(tmp_path / "kept/master-copy/runs.jsonl")[1:]} == {0}
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["master-copy"]


def test_what_is_no_record_is_refused_and_nothing_written(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = write_results(tmp_path / "results", seeds=1)
    run = experiment / "fp16_mixed/seed0"
    (run / "status").write_text("RUNNING\n")
    assert main([str(tmp_path / "results"), str(tmp_path / "kept"), str(program)]) == 2
    assert "fp16_mixed/seed0: RUNNING" in capsys.readouterr().err
    (run / "status").write_text("DONE\n")
    environment = read(run / "environment.json")
    write_json(run / "environment.json", environment | {"git_revision": "another"})
    assert main([str(tmp_path / "results"), str(tmp_path / "kept"), str(program)]) == 2
    assert "git_revision" in capsys.readouterr().err
    for arm, maker in (("fp16_mixed", "a"), ("fp32", "b")):
        write_json(experiment / arm / "seed0/environment.json", environment | {"data_maker": maker})
    assert main([str(tmp_path / "results"), str(tmp_path / "kept"), str(program)]) == 2
    assert "data_maker" in capsys.readouterr().err
    assert main([str(tmp_path / "nothing"), str(tmp_path / "kept"), str(program)]) == 2
    assert "no results here" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


def test_runs_on_several_data_sets_tell_each_of_them(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=2)
    for arm, data_set in (("fp32", "pairs"), ("fp16_mixed", "numbers")):
        for seed in range(2):
            run = experiment / arm / f"seed{seed}"
            write_json(run / "config.json", read(run / "config.json") | {"dataset": data_set})
            write_json(run / "environment.json", read(run / "environment.json") | {"data_summary": f"of {data_set}"})
    record_results(tmp_path / "results", tmp_path / "kept", program)
    kept = read(tmp_path / "kept/master-copy/environment.json")
    assert kept["data_summary"] == "of pairs | of numbers"
    other = experiment / "fp32/seed1/environment.json"
    write_json(other, read(other) | {"data_summary": "of other pairs"})
    with pytest.raises(ValueError, match="its data_summary is 'of other pairs'"):
        record_results(tmp_path / "results", tmp_path / "kept", program)


def test_data_of_some_runs_are_told(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=1)
    other = write_results(tmp_path / "results", seeds=1, name="other")
    for run, maker in ((experiment / "fp16_mixed/seed0", "espeak-ng 1.51"), (other / "fp32/seed0", "another")):
        path = run / "environment.json"
        write_json(path, read(path) | {"data_maker": maker})
    record_results(tmp_path / "results", tmp_path / "kept", program)
    kept = [read(tmp_path / "kept" / name / "environment.json")["data_maker"] for name in (experiment.name, "other")]
    assert kept == ["espeak-ng 1.51", "another"]


def table_rows(text: str) -> list[str]:
    """The lines of the tables of arms in `text`, with one separator between their columns.

    Tables of differences, whose second column is the arm beside, are made of the runs: test_differences.py has them.
    """
    rows, inside = [], False
    for line in text.splitlines():
        begins = line.startswith("arm ") and line.split()[1] != "beside"
        inside = begins or (inside and not line.startswith("```"))
        if inside:
            rows.append(re.sub(r" {2,}", " | ", line.strip()))
    return rows


def test_every_figure_of_the_docs_is_a_recorded_one() -> None:
    reports = RECORDED.glob("*/*/report.txt")
    recorded = {re.sub(r" {2,}", " | ", line.strip()) for path in reports for line in path.read_text().splitlines()}
    rows = [row for page in pages() if page.name != "gpu.md" for row in table_rows(page.read_text())]
    assert len(rows) > 30
    assert [row for row in rows if row not in recorded] == []


@pytest.mark.parametrize(
    "report", sorted(RECORDED.glob("*/*/report.txt")), ids=lambda path: "/".join(path.parts[-3:-1])
)
def test_every_recorded_table_is_of_its_summary(report: Path) -> None:
    summary = json.loads((report.parent / "summary.json").read_text())
    if "harm" in summary:
        check_predictors(report.read_text(), summary["harm"])
        return
    arms = summary["arms"]
    table, rows = read_table(report.parent), report_rows(report)
    assert list(rows) == list(table.arms) == [arm["arm"] for arm in arms]
    for arm in arms:
        row = rows[arm["arm"]]
        cell = row[table.metric]
        expected = "-" if arm["mean"] is None else f"{arm['mean']:.{len(cell.partition('.')[2])}f}"
        assert (cell, row["seeds"]) == (expected, str(arm["seeds"]))
        assert table.cell(arm["arm"], "ms/step") == row["ms/step"]


def check_predictors(text: str, evidence: dict) -> None:
    """That a report has the counts of each predictor, and the advisor's."""
    counts = [predictor[kind] for predictor in evidence["predictors"] for kind in ("fitted", "held_out")]
    for count in (*counts, evidence["advisor"], evidence["advisor_held_out"]):
        assert f"{count['right']} of {count['total']}" in text
    assert all(line["task"] in text for line in evidence["advice"]) and len(evidence["trainings"]) > 300


def test_records_are_of_one_revision_each_and_few_files() -> None:
    kept = {"environment.json", "histograms.jsonl.gz", "report.txt", "runs.jsonl", "summary.json"}
    for folder in RECORDED.glob("*/*"):
        assert {path.name for path in folder.iterdir()} <= kept, folder
    for path in RECORDED.glob("*/*/environment.json"):
        assert not json.loads(path.read_text())["git_revision"].endswith("-dirty"), path

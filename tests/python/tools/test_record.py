"""Records of results: complete, small, of one machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from halfscope.results.recorded import read_table
from recording.copy_results import folder_size, main, record_results
from recording.pages import pages
from recording.source_tree import RECORDED
from synthetic import write_json, write_json_lines, write_results
from synthetic_record import report_rows


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Stands in for halfscope: prints which folder it was to report on."""
    path = tmp_path / "program"
    path.write_text('#!/bin/sh\necho "$1 of $(basename "$2")"\n')
    path.chmod(0o755)
    return path


def test_a_record_has_the_figures_and_no_checkpoints(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=2)
    (experiment / "fp32/seed0/checkpoint").mkdir()
    histograms = experiment / "fp32/seed1/histograms.jsonl"
    lines = [json.loads(line) for line in histograms.read_text().splitlines()]
    write_json_lines(histograms, [*lines, {**lines[0], "step": lines[0]["step"] + 1}])
    assert record_results(tmp_path / "results", tmp_path / "kept", program) == ["master-copy"]
    kept = tmp_path / "kept/master-copy"
    assert (kept / "report.txt").read_text() == "report of master-copy\n"
    assert folder_size(kept) == sum(len(path.read_bytes()) for path in kept.rglob("*.*"))
    assert (kept / "summary.json").read_bytes() == (experiment / "summary.json").read_bytes()
    run = kept / "fp32/seed1"
    assert sorted(path.name for path in run.iterdir()) == [
        "config.json", "environment.json", "histograms.jsonl", "summary.json",
    ]  # fmt: skip
    lines = [json.loads(line) for line in (run / "histograms.jsonl").read_text().splitlines()]
    whole = [json.loads(line) for line in (experiment / "fp32/seed1/histograms.jsonl").read_text().splitlines()]
    ends = {min(line["step"] for line in whole), max(line["step"] for line in whole)}
    assert lines == [line for line in whole if line["step"] in ends] and 0 < len(lines) < len(whole)
    assert not (kept / "fp32/seed0/checkpoint").exists()


def test_of_hundreds_of_trainings_the_summary_is_recorded(tmp_path: Path, program: Path) -> None:
    experiment = write_results(tmp_path / "results", seeds=2)
    summary = json.loads((experiment / "summary.json").read_text())
    write_json(experiment / "summary.json", summary | {"harm": {"trainings": []}})
    record_results(tmp_path / "results", tmp_path / "kept", program)
    assert sorted(path.name for path in (tmp_path / "kept/master-copy").iterdir()) == ["report.txt", "summary.json"]


def test_recording_again_replaces_what_was_recorded(tmp_path: Path, program: Path) -> None:
    write_results(tmp_path / "results", seeds=2)
    record_results(tmp_path / "results", tmp_path / "kept", program)
    write_results(tmp_path / "other", seeds=1)
    write_results(tmp_path / "other", seeds=1, name="not-asked-for")
    record_results(tmp_path / "other", tmp_path / "kept", program, names=["master-copy"])
    assert not (tmp_path / "kept/master-copy/fp32/seed1").exists()
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
    environment = json.loads((run / "environment.json").read_text())
    write_json(run / "environment.json", {**environment, "git_revision": "another"})
    assert main([str(tmp_path / "results"), str(tmp_path / "kept"), str(program)]) == 2
    assert "git_revision" in capsys.readouterr().err
    assert main([str(tmp_path / "nothing"), str(tmp_path / "kept"), str(program)]) == 2
    assert "no results here" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


def table_rows(text: str) -> list[str]:
    """The lines of the tables of arms in `text`, with one separator between their columns."""
    rows, inside = [], False
    for line in text.splitlines():
        inside = line.startswith("arm ") or (inside and not line.startswith("```"))
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


def test_records_are_of_one_revision_each_and_not_of_changed_sources() -> None:
    for path in RECORDED.glob("*/*/*/seed*/environment.json"):
        assert not json.loads(path.read_text())["git_revision"].endswith("-dirty"), path

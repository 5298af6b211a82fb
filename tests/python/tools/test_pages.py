"""Generated parts of README.md and docs/: the committed text is the generated one, and nothing else is changed."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest

from recording import pages as pages_module
from recording.beside_papers import beside_papers
from recording.claims import outcome
from recording.device_tables import device_section
from recording.experiment_index import experiment_index, place_in_paper
from recording.headline import EVERYDAY, HEADLINES, Headline, everyday_line, headline_table
from recording.pages import END, PART, Sources, main, pages, refreshed, stale_pages, write_pages
from recording.source_tree import PROGRAM, RECORDED, ROOT
from synthetic import write_json
from synthetic_record import CPU_ARMS, GPU_ARMS, arm, write_record

REPORT = "one: a title\n\n  arm   seeds  loss\n  fp32      1   0.1\n\n  paper:   nothing\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    write_record(tmp_path / "recorded", "cpu", CPU_ARMS)
    (tmp_path / "recorded/cpu/one/report.txt").write_text(REPORT)
    return tmp_path / "recorded"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("nothing generated\n")
    (tmp_path / "docs/one.md").write_text(f"before\n<!-- generated: arms one -->\n\nold\n\n{END}\nafter\n")
    (tmp_path / "docs/gpu.md").write_text(f"<!-- generated: devices -->\n{END}\n")
    return tmp_path


def test_recorded_tables_of_the_pages_are_fresh() -> None:
    assert stale_pages(Sources(RECORDED)) == {}


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_printed_parts_of_the_pages_are_fresh() -> None:
    assert stale_pages(Sources(RECORDED, PROGRAM)) == {}


def test_every_command_has_its_help_on_a_page() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs/reference").glob("cli*.md"))
    parts = {match["words"]: match["body"] for match in PART.finditer(text)}
    commands = re.findall(r"^  ([a-z]+) ", parts["help"].partition("Subcommands:")[2], re.MULTILINE)
    assert len(commands) >= 9
    assert {f"help {command}" for command in commands} == {words for words in parts if words.startswith("help ")}


def test_only_the_parts_are_changed(recorded: Path, tree: Path) -> None:
    written = write_pages(Sources(recorded), tree)
    assert [path.name for path in written] == ["gpu.md", "one.md"]
    table = "```text\narm   seeds  loss\nfp32      1   0.1\n```"
    expected = f"before\n<!-- generated: arms one -->\n\n{table}\n\n{END}\nafter\n"
    assert (tree / "docs/one.md").read_text() == expected
    assert (tree / "README.md").read_text() == "nothing generated\n"
    assert write_pages(Sources(recorded), tree) == []


def test_a_recorded_gpu_appears_on_its_page(recorded: Path, tree: Path) -> None:
    write_pages(Sources(recorded), tree)
    assert device_section(recorded) in (tree / "docs/gpu.md").read_text()
    write_record(recorded, "a-gpu", GPU_ARMS)
    assert list(stale_pages(Sources(recorded), tree)) == [tree / "docs/gpu.md"]
    write_pages(Sources(recorded), tree)
    assert "70.12" in (tree / "docs/gpu.md").read_text()


def test_wrong_parts_are_named(recorded: Path) -> None:
    sources = Sources(recorded)
    for part, says in (
        ("arms two", "cpu/two/report.txt: no such record"),
        ("predictions one", "cpu/one/report.txt: no table has the columns arm, nearest the loss: output"),
        ("weather", "no generated part is a 'weather'; one of arms, "),
    ):
        with pytest.raises(ValueError, match=says):
            refreshed(f"<!-- generated: {part} -->\n{END}", sources)
    with pytest.raises(ValueError, match="lacks its"):
        refreshed("<!-- generated: arms one -->\n", sources)


def test_the_programs_words_need_the_program(recorded: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "called with $*  "\n')
    program.chmod(0o755)
    text = f"<!-- generated: help run -->\n{END}"
    assert refreshed(text, Sources(recorded)) == text
    assert "```text\ncalled with run --help\n```" in refreshed(text, Sources(recorded, program))


def test_a_replay_is_shown_without_its_verdict(recorded: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "  scaler  $1 ${2##*/} $3 $4"\necho "  one"\necho\necho "  a verdict"\n')
    program.chmod(0o755)
    text = refreshed(f"<!-- generated: replay tests/a.log one,two -->\n{END}", Sources(recorded, program))
    assert "```text\nscaler  replay a.log --scaler one,two\none\n```\n" in text and "verdict" not in text


def test_first_overflows_are_those_of_the_reports(recorded: Path) -> None:
    (recorded / "cpu/one/report.txt").write_text(f"{REPORT}\n  overflows\n  fp16: step 3: a\n  fp32: step 1: b\n")
    text = refreshed(f"<!-- generated: overflows one fp16 one fp32 -->\n{END}", Sources(recorded))
    assert "```text\nfp16: step 3: a\nfp32: step 1: b\n```" in text


def test_check_names_the_stale_pages(
    recorded: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages_module, "PROGRAM", tree / "none")
    monkeypatch.setenv("HALFSCOPE_RECORDED", str(recorded))
    assert main(["--check"], tree) == 1
    assert capsys.readouterr().out == "docs/gpu.md: stale; run tools/docs\ndocs/one.md: stale; run tools/docs\n"
    assert main([], tree) == 0
    assert main(["--check"], tree) == 0
    assert main(["--all"], tree) == 2


def test_findings_are_tables_of_the_summary(recorded: Path) -> None:
    path = recorded / "cpu/one/summary.json"
    sections = [
        {"heading": "", "columns": ["predictor", "steps"], "rows": [["flushed share", "all"]], "note": ""},
        {"heading": "", "columns": ["task", "harmed"], "rows": [["sgd", "2^-10 .. 2^0"], ["adam", "-"]], "note": ""},
    ]
    write_json(path, json.loads(path.read_text()) | {"findings": [{"key": "harm", "sections": sections}]})
    part = f"<!-- generated: {{}} one -->\n{END}"
    text = refreshed(part.format("advice"), Sources(recorded))
    assert "```text\ntask        harmed\nsgd   2^-10 .. 2^0\nadam             -\n```" in text
    assert "flushed share" in refreshed(part.format("predictors"), Sources(recorded))
    with pytest.raises(ValueError, match="no finding 'published' with a table by network; there are: harm"):
        refreshed(part.format("published"), Sources(recorded))


SETTINGS = {"learning_rate": 1e-05, "loss_weight": 1 / 64, "batch": 64, "sequence_length": 32}


def headline_arms(line: Headline) -> list[dict]:
    several = {"low": 59.0, "high": 60.0}
    arms = [arm(line.baseline, 5, 59.5, 1, **several), arm(line.with_it, 5, 59.25, 1, **several)]
    return [*arms, arm(line.without_it, 1, None, 1, diverged=1)]


def test_the_headline_compares_each_technique(tmp_path: Path) -> None:
    for line in (*HEADLINES, *EVERYDAY):
        write_record(tmp_path, "cpu", headline_arms(line), experiment=line.experiment, settings=SETTINGS)
    rows = headline_table(tmp_path).splitlines()
    assert len(rows) == 2 + len(HEADLINES) + len(EVERYDAY)
    assert rows[0].endswith("| FP32 | FP16 with it | FP16 without it | seeds |")
    assert rows[2] == (
        "| FP32 master copy (3.1) | classifier | learning rate 1e-05 | test accuracy % | 59.50 (59.00 .. 60.00) | "
        "59.25 (59.00 .. 60.00) | diverged 1 of 1 | 1 or 5 |"
    )
    settings = [row.split(" | ")[2] for row in rows[3:]]
    chosen, everyday = settings[:2], settings[2:]
    assert chosen == ["loss times 1/64", "sums of 50,176 terms"]
    assert everyday == ["learning rate 1e-05", "mean over 2,048 words"]


def test_the_settings_without_an_effect_are_said_from_the_records(tmp_path: Path) -> None:
    several = {"low": 1.0, "high": 2.0}
    weights = [arm("cnn_adam_fp32_0.001", 3, 1.5, 1, **several), arm("cnn_adam_fp16_0.001", 3, 1.75, 1, **several)]
    write_record(tmp_path, "cpu", weights, experiment="where-master-copy", settings=SETTINGS)
    losses = [arm("detector_fp32", 5, 0.25, 1, **several), arm("detector_fp16_s1", 5, 0.5, 1, **several)]
    write_record(tmp_path, "cpu", losses, experiment="negative-controls")
    line = " ".join(everyday_line(tmp_path).split())
    assert "rate of 1e-05 the classifier's FP16 weights end at a test accuracy % of 1.75 (1.00 .. 2.00)" in line
    assert "beside FP32's 1.50 (1.00 .. 2.00) (`where-master-copy`)" in line
    assert "0.50 (1.00 .. 2.00) without a scale, beside FP32's 0.25 (1.00 .. 2.00) (`negative-controls`)" in line


def test_the_headline_has_a_second_line_for_a_gpu(tmp_path: Path) -> None:
    for line in (*HEADLINES, *EVERYDAY):
        write_record(tmp_path, "cpu", headline_arms(line), experiment=line.experiment, settings=SETTINGS)
    whole, partial, *_ = HEADLINES
    write_record(tmp_path, "nvidia-h200", headline_arms(whole), whole.experiment, SETTINGS)
    write_record(tmp_path, "nvidia-h200", headline_arms(partial)[:2], experiment=partial.experiment)
    rows = headline_table(tmp_path).splitlines()
    assert len(rows) == 3 + len(HEADLINES) + len(EVERYDAY)  # none where an arm of the technique is not recorded
    assert rows[2].startswith("| FP32 master copy (3.1) | classifier | ")
    assert rows[3] == (
        "| on an nvidia-h200 | cnn | learning rate 1e-05 | test accuracy % | 59.50 (59.00 .. 60.00) | "
        "59.25 (59.00 .. 60.00) | diverged 1 of 1 | 1 or 5 |"
    )


def test_the_tool_has_help() -> None:
    done = subprocess.run([ROOT / "tools/docs", "--help"], capture_output=True, text=True, check=True)
    assert "--check" in done.stdout
    assert pages()[0] == ROOT / "README.md"


def test_index_names_the_place_in_the_paper_the_judgement_and_the_minutes(recorded: Path) -> None:
    path = recorded / "cpu/one/summary.json"
    summary = json.loads(path.read_text()) | {"paper": "Section 3.2, Table 2 and Figure 3 (SSD): it diverges."}
    undecided = {"text": "It is.", "judgement": "undecided", "holds": None}
    for claim, says in ((undecided, "It is. | undecided"), ({"text": "Old", "holds": False}, "Old | does not hold"),
                        (None, "not judged")):  # fmt: skip
        write_json(path, summary | {"claim": claim})
        row = experiment_index(recorded).splitlines()[2]
        assert row.startswith("| Section 3.2, Table 2, Fig. 3 | `one` | ") and says in row
    assert place_in_paper("No such experiment: section 3.2 chooses.") == "not in it"


def test_minutes_of_the_index_are_those_of_a_seed() -> None:
    rows = {row.split(" | ")[1]: row.split(" | ") for row in experiment_index(RECORDED).splitlines()[2:]}
    assert len(rows) == len(list((RECORDED / "cpu").glob("*/summary.json")))
    lines = (RECORDED / "cpu/batchnorm-reduction/runs.jsonl").read_text().splitlines()[1:]
    seconds: dict[str, list[float]] = {}  # by arm, ten seeds or twenty
    for run in map(json.loads, lines):
        seconds.setdefault(run["arm"], []).append(run["summary"]["seconds"])
    minutes = sum(sum(own) / len(own) for own in seconds.values()) / 60
    assert {len(own) for own in seconds.values()} == {10, 20}
    assert float(rows["`batchnorm-reduction`"][-1].rstrip(" |")) == pytest.approx(minutes, abs=0.051)


def test_ours_are_the_claims_arms_and_theirs_the_papers_words(recorded: Path) -> None:
    path = recorded / "cpu/one/summary.json"
    summary = json.loads(path.read_text())
    first, second = (line["arm"] for line in summary["arms"][:2])
    expectation = {"arm": second, "baseline": first, "expected": "worse", "margin": 1, "judgement": "holds"}
    claim = {"text": "It holds.", "judgement": "holds", "expectations": [expectation]}
    write_json(path, summary | {"paper": "Table 2 (SSD): it diverges.", "claim": claim})
    command, ours, theirs = beside_papers(recorded).splitlines()
    assert command.startswith("- `halfscope run one --seeds 3`")
    assert ours.index(f"`{first}` ") < ours.index(f"`{second}` ")
    assert theirs == "    - theirs: Table 2 (SSD): it diverges."
    many = [expectation | {"arm": f"arm{i}"} for i in range(9)]
    nearest = "No such experiment: section 3.2 chooses."
    write_json(path, summary | {"paper": nearest, "claim": claim | {"expectations": many}})
    _, ours, theirs = beside_papers(recorded).splitlines()
    assert ours.endswith("; and 5 more")
    assert theirs == "    - theirs: no such experiment in it. Section 3.2 chooses."
    write_json(path, summary | {"claim": None})
    assert "with no claim about one" in beside_papers(recorded)


def expectation(arm: str, judged: str) -> dict:
    return {"arm": arm, "baseline": "fp32", "expected": "as_good", "margin": 0.01, "judgement": judged}


@pytest.mark.parametrize(
    ("lines", "judged", "says"),
    [
        ([("a", "holds"), ("b", "holds")], "holds", "holds"),
        ([("a", "does_not_hold"), ("b", "holds")], "does_not_hold", "does not hold: `a`"),
        ([("a", "does_not_hold"), ("b", "undecided"), ("a", "does_not_hold")], "does_not_hold",
         "does not hold: `a`; undecided: `b`"),
        ([("a", "undecided"), ("b", "undecided"), ("c", "holds")], "undecided", "undecided: `a`, `b`"),
        ([("a", "not_judged")], "not_judged", "not judged"),
    ],
)  # fmt: skip
def test_claims_name_the_arms_that_are_not_as_expected(lines: list[tuple[str, str]], judged: str, says: str) -> None:
    assert outcome({"text": "", "judgement": judged, "expectations": [expectation(*line) for line in lines]}) == says


def test_claims_have_a_row_each_recorded_or_not(recorded: Path) -> None:
    path = recorded / "cpu/one/summary.json"
    summary = json.loads(path.read_text())
    arm_names = [line["arm"] for line in summary["arms"]]
    claim = {"text": "A claim.", "judgement": "holds", "expectations": [expectation(arm_names[1], "holds")]}
    claim["expectations"][0]["baseline"] = arm_names[0]
    summary["arms"][0]["mean"], summary["arms"][1]["mean"] = 0.12345678, None
    write_json(path, summary | {"claim": claim})
    text = refreshed(f"<!-- generated: claims one two -->\n{END}", Sources(recorded))
    metric = f"{summary['metric']}: `{arm_names[0]}` 0.1235, `{arm_names[1]}` diverged"
    assert f"| `one` | A claim. | holds | {metric} |" in text
    assert "| `two` |  | not recorded |  |" in text


def rows_of(page: str) -> list[str]:
    """Rows of a page's tables."""
    return [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")]


def test_the_index_names_every_experiment() -> None:
    named = set(re.findall(r"`([a-z0-9-]+)`", "\n".join(rows_of("docs/experiments/index.md"))))
    assert {file.stem for file in (ROOT / "experiments/definitions").glob("*.toml")} <= named


def test_the_architecture_names_every_room() -> None:
    rows = {}
    for row in rows_of("docs/dev/architecture.md"):
        folders, content = row.split("|")[1:3]
        rows |= dict.fromkeys(re.findall(r"`((?:lib|sim|experiments)[a-z/]*)`", folders), content)
    assert {f"lib/halfscope/{room.name}" for room in (ROOT / "lib/halfscope").iterdir()} <= rows.keys()
    for folder, content in rows.items():
        rooms = {path.name for path in (ROOT / folder).iterdir() if path.is_dir()} - {"detail", "__pycache__"}
        if not any(f"{folder}/{room}" in rows for room in rooms) and folder != "lib/python":
            assert rooms <= set(re.findall(r"`([a-z_]+)`", content)), folder


def test_contributing_has_a_row_for_each_addition_that_is_tested() -> None:
    """And no row names a file that is not there."""
    rows = "\n".join(rows_of("CONTRIBUTING.md"))
    spec = importlib.util.spec_from_file_location("additions_test", ROOT / "tests/additions/additions_test.py")
    assert spec is not None and spec.loader is not None
    additions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(additions)
    for kind, addition in additions.ADDITIONS.items():
        assert not addition.header or f"`{addition.header}`" in rows, kind
        assert not addition.file or str(Path(addition.file).parent) in rows, kind
    for file in re.findall(r"`([a-z_]+/[a-z_/]+\.[a-z]+)`", rows):
        assert (ROOT / file).exists(), file

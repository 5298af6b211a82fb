"""Recorded tables of several devices: in docs/dev/gpu.md and in notebooks, as soon as their folder exists."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from halfscope.results import read_experiment, recorded_frame
from halfscope.results.recorded import read_table, read_tables, recorded_devices
from recording.advice_counts import HEADER, refreshed_header
from recording.advice_rules import (
    advised,
    below,
    best_constant,
    best_to_type,
    constant,
    ours,
    right_by_task,
    right_of_all,
)
from recording.advice_tasks import NARROW, WIDE, read_tasks
from recording.device_tables import NOTHING, device_section
from recording.inline_values import without_marks
from recording.source_tree import RECORDED, ROOT
from synthetic_record import CPU_ARMS, GPU_ARMS, write_record


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    write_record(tmp_path / "recorded", "cpu", CPU_ARMS)
    write_record(tmp_path / "recorded", "a-gpu", GPU_ARMS)
    write_record(tmp_path / "recorded", "cpu", CPU_ARMS, experiment="two")
    return tmp_path / "recorded"


def test_a_table_is_what_its_file_says(recorded: Path) -> None:
    table = read_table(recorded / "cpu/one")
    assert (table.device, table.experiment, table.metric) == ("cpu", "one", "test accuracy %")
    assert list(table.arms) == ["fp32", "fp16_pure"]
    assert [table.outcome(arm) for arm in ("fp32", "fp16_pure", "absent")] == ["59.72", "diverged 1 of 1", ""]
    assert table.columns == ("ms/step",)
    gpu = read_table(recorded / "a-gpu/one")
    assert gpu.outcome("fp16_mixed") == "70.02 (68.90 .. 71.14) diverged 1 of 3"
    assert gpu.cell("fp32", "peak MiB") == "2048"
    assert gpu.columns == ("ms/step", "peak MiB")
    assert {name: arm.in_fp32 for name, arm in gpu.arms.items()} == {"fp32": True, "fp16_mixed": False}
    runs = read_experiment(recorded / "a-gpu/one").runs
    assert {arm: [run.seed for run in found] for arm, found in runs.items()} == {
        "fp32": [0, 1, 2], "fp16_mixed": [0, 1, 2],
    }  # fmt: skip


def test_a_file_without_a_table_is_named(recorded: Path) -> None:
    path = recorded / "cpu/one/summary.json"
    summary = json.loads(path.read_text())
    del summary["arms"]
    path.write_text(json.dumps(summary))
    with pytest.raises(ValueError, match="cpu/one/summary.json: it lacks 'arms'"):
        read_table(path.parent)


def test_the_cpu_stands_first(recorded: Path) -> None:
    assert recorded_devices(recorded) == ["cpu", "a-gpu"]
    assert [table.device for table in read_tables(recorded, "one")] == ["cpu", "a-gpu"]
    assert [table.device for table in read_tables(recorded, "two")] == ["cpu"]


def test_a_page_shows_a_gpu_beside_the_cpu_and_the_paper(recorded: Path) -> None:
    lines = device_section(recorded).splitlines()
    assert lines[-5:] == [
        "arm                     cpu                                   a-gpu  ms/step, a-gpu  peak MiB, a-gpu",
        "fp32                  59.72                  70.12 (69.00 .. 71.24)             1.5             2048",
        "fp16_mixed                -  70.02 (68.90 .. 71.14) diverged 1 of 3             0.7             1024",
        "fp16_pure   diverged 1 of 1                                       -               -                -",
        "```",
    ]
    assert lines[-8] == (
        "**one** (test accuracy %; `experiments/recorded/cpu/one/report.txt`, "
        "`experiments/recorded/a-gpu/one/report.txt`). a-gpu: model cnn. Paper: Section 3.1: FP32 is matched."
    )
    assert "**two**" not in "\n".join(lines)


def test_without_a_gpu_the_page_says_so(recorded: Path) -> None:
    shutil.rmtree(recorded / "a-gpu")
    assert device_section(recorded) == NOTHING
    assert "No experiment has been trained" in NOTHING and "tools/gpu-check --results" in NOTHING


def test_notebooks_get_a_column_for_every_device(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = recorded_frame("one", recorded)
    assert list(frame.columns) == [
        "test accuracy %, cpu", "test accuracy %, a-gpu", "ms/step, a-gpu", "peak MiB, a-gpu",
    ]  # fmt: skip
    assert frame.loc["fp32"].tolist() == ["59.72", "70.12 (69.00 .. 71.24)", "1.5", "2048"]
    assert frame.loc["fp16_pure"].tolist() == ["diverged 1 of 1", "", "", ""]
    monkeypatch.setenv("HALFSCOPE_RECORDED", str(recorded))
    assert recorded_frame("two").columns.tolist() == ["test accuracy %, cpu"]
    with pytest.warns(UserWarning, match="nothing is recorded of three"):
        assert recorded_frame("three").empty


def test_recording_needs_the_standard_library_only() -> None:
    """tools/gpu-check records on machines without a Python environment."""
    code = "import sys; sys.modules.update(dict.fromkeys(('numpy', 'pandas', 'matplotlib', 'halfscope._core')))\n"
    code += "import gpu_results"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tools", check=True)


def words_of(page: str) -> str:
    """The page as a reader sees it, with one space between words."""
    return " ".join(without_marks((ROOT / page).read_text()).split())


def test_the_advisors_sentence_has_the_recorded_tasks() -> None:
    """The constants in advisor.hpp, and what the pages say of them."""
    header = (ROOT / "lib/halfscope/scaling/advisor.hpp").read_text()
    counts = {}
    for experiment, name in ((WIDE, "judged_in_fp16"), (NARROW, "judged_in_narrow_windows")):
        tasks = read_tasks(ROOT / "experiments/recorded", experiment)
        rules = (advised, constant(10), constant(best_to_type(tasks)))
        counts[experiment] = (len(tasks), *(sum(right_by_task(tasks, rule)) for rule in rules))
        assert f"JudgedTasks {name}{{{', '.join(map(str, counts[experiment]))}}};" in header
    (wide, wide_right, wide_1024, _), (narrow, narrow_right, narrow_1024, narrow_constant) = (
        counts[WIDE],
        counts[NARROW],
    )
    said = (
        f"Sure: such a scale was right in {wide_right} of {wide} tasks in FP16, and 1024 in {wide_1024}; "
        f"in {narrow_right} of {narrow} with narrower windows, 1024 in {narrow_1024}"
    )
    for page in ("README.md", "docs/start/which-loss-scale.md", "docs/guides/files-of-tensors.md"):
        assert said in words_of(page), page
    paper = words_of("paper/paper.md")
    assert (
        f"right in {wide_right} of {wide} tasks in FP16, as the constant 1024 is; on the {narrow} tasks whose windows "
        f"are narrow it is right in {narrow_right}, 1024 in {narrow_1024} and the best constant in {narrow_constant}"
    ) in paper


def test_the_header_gets_the_recorded_counts() -> None:
    text = "inline constexpr JudgedTasks judged_in_fp16{1};\n JudgedTasks judged_in_narrow_windows{0, 0};\n"
    made = refreshed_header(text, RECORDED)
    assert made != text and refreshed_header(made, RECORDED) == made
    assert refreshed_header((ROOT / HEADER).read_text(), RECORDED) == (ROOT / HEADER).read_text()
    with pytest.raises(ValueError, match="no constant 'judged_in_fp16'"):
        refreshed_header("", RECORDED)


def test_the_windows_of_narrow_windows_are_narrow() -> None:
    tasks = read_tasks(ROOT / "experiments/recorded", NARROW)
    assert sum(task.width <= 5 for task in tasks if task.usable) >= 20


def test_pages_name_the_trainings_that_the_windows_edges_were_held_against() -> None:
    summary = json.loads((ROOT / "experiments/recorded/cpu/advice-validity/summary.json").read_text())
    judged = [summary["harm"][part] for part in ("advisor", "advisor_held_out")]
    right, total = (sum(part[key] for part in judged) for key in ("right", "total"))
    tasks = read_tasks(ROOT / "experiments/recorded")
    assert right_of_all(tasks, ours) == right
    said = f"right in {right} of {total} trainings, where the best constant limit is right in "
    assert f"{said}{right_of_all(tasks, below(best_constant(tasks)))}" in words_of("docs/start/which-loss-scale.md")
    first, held_out = ("{right} of {total}".format(**part) for part in judged)
    assert f"in {first}, and in {held_out} of the tasks" in words_of("docs/reference/loss-scalers.md")


def test_scale_1_is_offered_where_it_does_no_harm() -> None:
    """Said in docs/experiments/advice.md."""
    summary = json.loads((ROOT / "experiments/recorded/cpu/where-loss-scaling/summary.json").read_text())
    points = [point for point in summary["where_loss_scaling"]["points"] if "fits_unscaled" in point]
    assert {point["harm"] for point in points if point["fits_unscaled"]} == {"none"}
    assert {point["harm"] for point in points if not point["fits_unscaled"]} == {"none", "undecided", "harm"}

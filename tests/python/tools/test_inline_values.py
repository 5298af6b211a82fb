"""Values within sentences of the pages: each kind, from records that the tests write, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from recording import record_values as record
from recording.device_bench import device_bench
from recording.gradient_shares import below
from recording.inline_values import VALUE_KINDS, refreshed_values, value, without_marks
from recording.pages import documents
from recording.resnet_points import resnet_points
from recording.source_tree import PROGRAM, RECORDED, ROOT
from synthetic import write_json

REPORT = """one: a title

  arm   seeds  loss  95 % interval  flushed
  fp32      2  2.00   1.00 .. 3.00        -
  fp16      2  3.00   2.00 .. 4.00   47.1 %

  all-reduces
  fp16: 8 ranks; adds that stagnated 0.34 %, means overflowed 0 %
"""
SECTION = {"heading": "", "columns": ["format", "K", "error"], "rows": [["a", "64", "2e-02 s3%"], ["a", "6", "1e-01"]]}


def line(arm: str, values: list[float | None], baseline: str | None = "fp32") -> dict:
    finished = [entry for entry in values if entry is not None]
    return {"arm": arm, "baseline": baseline, "seed_list": [0, 1, 2], "values": values, "flushed": 0.25,
            "mean": sum(finished) / len(finished)}  # fmt: skip


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    folder = tmp_path / "cpu/one"
    folder.mkdir(parents=True)
    arms = [line("start", [5.0, 5.0, 5.0], None), line("fp32", [2.0, 2.0, 4.0], None), line("fp16", [3.0, 2.0, 4.5]),
            line("lost", [None, 2.0, 6.0])]  # fmt: skip
    write_json(folder / "summary.json", {
        "arms": arms, "comparison": "ratio", "lower_is_better": True, "verdict": "It is right of 3 of 4 sums.",
        "findings": [{"key": "sums", "sections": [SECTION]}],
    })  # fmt: skip
    (folder / "report.txt").write_text(REPORT)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cell one fp16 flushed", "47.1 %"),
        ("cell one fp32 '95 % interval'", "1.00 .. 3.00"),
        ("finding one format 'a 6' error", "1e-01"),
        ("error one format 'a 64' error", "2 %"),
        ("noted one fp16 'adds that stagnated'", "0.34 %"),
        ("judged-of one 'right of'", "3 of 4"),
        ("ratios one fp16 fp32", "1.50, 1.00 and 1.12"),
        ("ratios one lost fp32", "1.00 and 1.50"),
        ("ratio one fp16 fp32", "1.2"),
        ("changes one fp16 fp32", "50, 0 and 12"),
        ("within one fp16 fp32", "50 %"),
        ("points-within one fp32 f*", "0.50"),
        ("missed one fp16 fp32 start", "33, 0 and 50"),
        ("missed-between one fp16 fp32 start", "0 to 50"),
        ("seeds-differ one fp32", "100"),
        ("behind one fp16 0", "19 %"),
    ],
)
def test_a_value_is_that_of_the_record(words: str, expected: str, recorded: Path) -> None:
    assert value(words, recorded) == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("cell one fp64 flushed", "one: no cell of 'fp64' and 'flushed'"),
        ("cell one fp16 speed", "one: no cell of 'fp16' and 'speed'"),
        ("finding one format b error", "one: no finding by 'format' has 'b' and 'error'"),
        ("noted one fp16 weather", "one: no line of 'fp16' says 'weather'"),
        ("judged-of one weather", "one: no count behind 'weather' in its verdict"),
        ("ratio one fp16 fp64", "one: no arm 'fp64'; one of start, fp32, fp16, lost"),
        ("ratio two fp16 fp32", "two/summary.json: no such file"),
        ("ratio one", "value 'ratio one': "),
        ("weather one", "no value is a 'weather'; one of count, behind, "),
    ],
)
def test_what_a_record_lacks_is_named(words: str, says: str, recorded: Path) -> None:
    with pytest.raises(ValueError, match=says):
        value(words, recorded)


def test_values_are_written_between_their_comments(recorded: Path) -> None:
    text = "At <!-- value: ratio one fp16 fp32 -->9<!-- end --> times, "
    text += "<!-- value: cell one fp16 flushed --><!-- end -->.\n"
    made = refreshed_values(text, recorded)
    assert made.startswith("At <!-- value: ratio one fp16 fp32 -->1.2<!-- end --> times,")
    assert without_marks(made) == "At 1.2 times, 47.1 %.\n"
    assert refreshed_values(made, recorded) == made
    counted = "By <!-- value: count scalers -->0<!-- end --> rules."
    assert refreshed_values(counted, recorded) == counted


def test_counts_are_those_of_the_programs_lists(recorded: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("""#!/bin/sh\n[ "$*" = "list scalers --json" ] && echo '{"scalers": [{}, {}, {}]}'\n""")
    program.chmod(0o755)
    made = refreshed_values("By <!-- value: count scalers -->0<!-- end --> rules.", recorded, program)
    assert without_marks(made) == "By 3 rules."


def test_gradients_below_a_power_of_two_are_counted_at_the_last_step(tmp_path: Path) -> None:
    def histogram(seed: int, step: int, counts: list[int], role: str = "weight_gradient") -> dict:
        return {"arm": "fp16", "seed": seed, "step": step, "role": role, "first_exponent": -26, "counts": counts}

    lines = [histogram(0, 1, [9, 9, 0, 0]), histogram(0, 5, [1, 1, 3, 3]), histogram(0, 5, [0, 0, 4, 4]),
             histogram(0, 5, [9], "activation"), histogram(1, 5, [2, 2, 2, 2])]  # fmt: skip
    (tmp_path / "cpu/one").mkdir(parents=True)
    with gzip.open(tmp_path / "cpu/one/histograms.jsonl.gz", "wt") as file:
        file.write("".join(f"{json.dumps(entry)}\n" for entry in lines))
    assert below(tmp_path, "one", "fp16", "-24") == "12.5 and 50.0"
    assert below(tmp_path, "one", "fp16", "-24", "mean") == "31.2"
    assert below(tmp_path, "one", "fp16", "-24", "between") == "12 to 50"
    with pytest.raises(ValueError, match="no histograms of 'fp32'"):
        below(tmp_path, "one", "fp32", "-24")


def test_points_of_accuracy_have_a_row_for_each_weight(tmp_path: Path) -> None:
    names = [f"{network}_{arm}" for network in ("resnet50", "resnet50_preact") for arm in ("fp32", "fp16_s1_w64")]
    arms = [line(name, [70.0 - place, 70.0 - place, 70.0 - place]) for place, name in enumerate(names)]
    (tmp_path / "cpu/one").mkdir(parents=True)
    write_json(tmp_path / "cpu/one/summary.json", {"arms": arms})
    assert resnet_points(tmp_path, "one").splitlines()[2:] == ["| 1/64 | 1.00 | 25.0 % | 1.00 | 25.0 % |"]


def test_timings_of_a_gpu_are_two_tables() -> None:
    text = device_bench(RECORDED, "nvidia-h200")
    recorded = json.loads((RECORDED / "bench-nvidia-h200.json").read_text())
    assert text.count("\n| `cuda_") == len(recorded["bench"]["cases"])
    assert text.count("ms a step") == 1 and text.count(", watched |") == len(recorded["amp"]["networks"])
    with pytest.raises(ValueError, match="no such file"):
        device_bench(RECORDED, "nvidia-h100")


def test_every_kind_is_used() -> None:
    used = "".join(path.read_text() for path in documents())
    assert [kind for kind in VALUE_KINDS if f"<!-- value: {kind} " not in used] == []
    assert record.listed(["1", "1"]) == "1" and record.listed(["1", "2"]) == "1 and 2"


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_the_changelog_counts_what_the_program_lists() -> None:
    found = value("count experiments", RECORDED, PROGRAM)
    assert found == str(len(list((ROOT / "experiments/definitions").glob("*.toml"))))

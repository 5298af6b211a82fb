"""The report of every result: its text, its keys by the schema, its table, its HTML, and old calls."""

from __future__ import annotations

import copy
import html
import json
import random
from typing import Any

import numpy as np
import pytest

from json_schema import SCHEMA, faults

halfscope = pytest.importorskip("halfscope")
pytest.importorskip("halfscope._core", reason="the package is not compiled")
from halfscope.reporting import KEYS, Finding, Place, Report


def random_report(seed: int) -> Report:
    rng = random.Random(seed)

    def words(least: int = 0) -> str:
        letters = ["a <b>", "é", '"q"', "1e-4", "line\n  Now: x", "\\", "{}", "long " * 30]
        return " ".join(rng.choices(letters, k=rng.randint(least, 3)))

    def place() -> Place | None:
        line = rng.choice([None, rng.randint(1, 999)])
        return rng.choice([None, Place("/a/b c.py", line), Place("t.py", line, "t.py:3, called from u.py:4")])

    findings = [
        Finding(rng.choice(["mask", "loss scale"]), words(1), words(), words(), code=words(), place=place())
        for _ in range(rng.randint(0, 5))
    ]
    return Report("check", tuple(findings), words(), rng.choice(["", words()]), rng.choice(["", "a  b\n1  2"]))


@pytest.mark.parametrize("seed", range(200))
def test_a_report_is_the_same_in_every_form(seed: int) -> None:
    report = random_report(seed)
    told = json.loads(report.to_json())
    assert told == report.to_dict() and list(faults(told)) == []
    assert [list(each) for each in told["findings"]] == [list(KEYS)] * len(report)
    table = report.to_pandas()
    assert list(table.columns) == list(KEYS) and len(table) == len(report)
    for row, each in zip(table.itertuples(), told["findings"]):
        assert (row.change, row.kind) == (each["change"], each["kind"])
        assert (None if str(row.line) == "<NA>" else row.line) == each["line"]
    shown = report._repr_html_()
    assert html.unescape(shown.partition(">")[2].removesuffix("</pre>")) == str(report)
    assert "<b>" not in shown and report.report is report
    words = str(report).split()
    assert words[: len(report.verdict.split())] == report.verdict.split()
    for each in report.findings if not report.text else ():
        assert each.change.split()[0] in words


def test_a_finding_begins_with_its_place_and_has_the_lines_that_are_known() -> None:
    finding = Finding("mask", "write -1e4", "it overflows", "tried", code="fill(-1e9)", place=Place("/x/train.py", 6))
    assert str(finding) == "train.py:6: write -1e4\n  Now: fill(-1e9)\n  Why: it overflows\n  Sure: tried"
    assert str(Finding("mask", "write -1e4")) == "write -1e4"
    values = finding.to_dict().values()
    assert tuple(values) == ("mask", "/x/train.py", 6, "fill(-1e9)", "write -1e4", "tried", "it overflows")


def test_the_schema_has_the_keys_and_sees_a_breach() -> None:
    assert tuple(SCHEMA["properties"]["findings"]["items"]["required"]) == KEYS
    right = random_report(3).to_dict()
    right["findings"] = [Finding("a", "b").to_dict()]
    breaches: list[tuple[list[Any], Any]] = [
        (["version"], 2), (["report"], "other"), (["findings"], {}), (["findings", 0, "line"], "6"),
        (["findings", 0, "line"], 0), (["findings", 0, "change"], ""), (["findings", 0, "more"], 1), (["more"], 1),
        (["findings", 0, "line"], True), (["about"], None),
    ]  # fmt: skip
    assert list(faults(right)) == []
    for path, value in breaches:
        wrong = copy.deepcopy(right)
        target: Any = wrong
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
        assert len(list(faults(wrong))) == 1, path
    del right["findings"][0]["tried"]
    assert list(faults(right)) == ["findings[0]: 'tried' is a required property"]


def arrays(scale: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: (scale * rng.normal(size=(8, 32))).astype(np.float32) for name in ("a", "b")}


RESULTS = {
    "analyze": lambda scale: halfscope.analyze(arrays(scale)),
    "advise_scale": lambda scale: halfscope.advise_scale(arrays(scale)),
    "compare_formats": lambda scale: halfscope.compare_formats(arrays(scale), ["mxfp4", "mxfp8_e4m3"], max_error=1e-3),
}


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("scale", [1.0, 1e-9, 0.0])
def test_results_of_arrays_have_a_report(kind: str, scale: float) -> None:
    result = RESULTS[kind](scale)
    report = result.report
    assert report.kind == kind and list(faults(report.to_dict())) == []
    assert result.verdict == report.verdict == str(result)
    if scale and len(report):
        assert str(result).startswith(report.findings[0].change)
        assert report.findings[0].why and report.findings[0].why.split("; ")[0].split(". ")[0] in str(result)
    assert "\n".join(str(result).split()) == "\n".join(str(report).split())
    assert str(result).split()[0] in result._repr_html_()
    assert len(report) == (0 if scale == 0 and kind != "compare_formats" else 1)


def test_old_dictionaries_are_as_they_were() -> None:
    """The keys of `--json`: the verdict in them is plain text."""
    for kind in ("analyze", "compare_formats"):
        told = RESULTS[kind](1.0).to_dict()
        assert type(told["verdict"]) is str and ({"cheapest", "recommended_scale_log2"} & told.keys())


@pytest.mark.parametrize("kind", RESULTS)
def test_old_calls_are_refused_with_the_new_form(kind: str) -> None:
    result = RESULTS[kind](1.0)
    with pytest.raises(TypeError, match=r"^verdict is the text itself: write \.verdict for \.verdict\(\)$"):
        result.verdict()
    with pytest.raises(TypeError, match=r"write print\(result\.report\) for result\.report\(\)$"):
        result.report()

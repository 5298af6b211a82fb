"""The plugin of pytest: the fixture halfscope_floor, its table in the report of a failing test, and its entry point."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from doc_blocks import Block, read_blocks
from recording.source_tree import ROOT

pytest_plugins = ["pytester"]
pytest.importorskip("halfscope._core", reason="the package is not compiled")

HEAD = """
import numpy as np
import halfscope

def numbers(seed):
    return np.random.default_rng(seed).uniform(1, 1.5, 16).astype(np.float32)

def off(seed, steps):
    actual = halfscope.round(numbers(seed), "fp16").astype(float)
    actual[seed] = numbers(seed)[seed] + steps * 2.0**-11
    return actual
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tests: str, *options: str) -> pytest.RunResult:
    """The tests in a folder of their own, with this plugin alone."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(HEAD + tests)
    return pytester.runpytest_inprocess("-p", "halfscope.pytest_plugin", "-p", "no:cacheprovider", *options)


@pytest.mark.parametrize("seed", range(8))
def test_the_report_lists_the_comparisons_up_to_the_first_that_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    healthy, steps = int(rng.integers(0, 5)), int(rng.integers(10, 60))
    calls = [f"halfscope_floor(off({seed}, 1), numbers({seed}), roundings=2, name='layer{i}')" for i in range(healthy)]
    calls += [
        f"halfscope_floor(off({seed}, {steps}), numbers({seed}), roundings=2)",
        "halfscope_floor(1, 1, roundings=1)",
    ]
    done = run(pytester, monkeypatch, "\ndef test_it(halfscope_floor):\n    " + "\n    ".join(calls))
    done.assert_outcomes(failed=1)
    text = done.stdout.str()
    table = re.split(r"-+ halfscope floor -+\n", text)[1].splitlines()
    rows = [line.split() for line in table[1 : healthy + 2]]
    assert [row[0] for row in rows] == [*(f"layer{i}" for i in range(healthy)), str(healthy + 1)]
    assert all(row[1:4] == ["16", row[2], "2"] and row[-1] == "round-off" for row in rows[:-1])
    assert table[healthy + 2].startswith("=")
    takes = re.search(rf"Floor: element \[{seed}\] takes (\d+) FP16 roundings \(2 counted\)", text)
    assert takes is not None and 0.9 * steps <= int(takes[1]) <= steps
    assert rows[-1][1:4] == ["16", takes[1], "2"] and rows[-1][-2:] == ["not", "round-off"]
    # The traceback ends at the line of the test.
    assert re.search(rf"^>\s+{re.escape(calls[-2])}", text, re.MULTILINE) and "def judge(" not in text


def test_a_later_failure_lists_the_comparisons_too(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = """
def test_later(halfscope_floor):
    halfscope_floor(off(3, 1), numbers(3), roundings=2, name="q_proj")
    assert False
def test_passes(halfscope_floor):
    assert halfscope_floor(off(3, 1), numbers(3), roundings=2).verdict == "round-off"
def test_without(halfscope_floor):
    assert False
"""
    done = run(pytester, monkeypatch, tests, "-rP")
    done.assert_outcomes(failed=2, passed=1)
    assert done.stdout.str().count("halfscope floor") == 1 and "q_proj" in done.stdout.str()


def test_an_inconclusive_comparison_fails_and_is_called_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = """
def test_it(halfscope_floor):
    halfscope_floor(-1e-6 * numbers(0), 1e-6 * numbers(0), roundings=9, magnitudes=1e3 * numbers(0), name="sum")
"""
    done = run(pytester, monkeypatch, tests)
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines([r"E .*Inconclusive: assert_close: inconclusive beside 9 FP16 roundings: zeros would"])
    done.stdout.re_match_lines([r"sum +16 .* inconclusive$"])


def test_bad_requests_are_refused_as_by_assert_close(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = """
import pytest
def test_it(halfscope_floor):
    for options, words in (({"roundings": 0}, "roundings=0"), ({"roundings": 1, "format": "fp17"}, "fp17")):
        with pytest.raises(ValueError, match=words):
            halfscope_floor(numbers(0), numbers(0), **options)
    with pytest.raises(ValueError, match="one shape"):
        halfscope_floor(numbers(0), numbers(0)[:3], roundings=1)
    assert halfscope_floor(np.zeros(0), np.zeros(0), roundings=1).elements == 0
    assert False
"""
    done = run(pytester, monkeypatch, tests)
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines([r"1 +0 +- +- +- +round-off"])


def test_tests_without_the_fixture_load_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "lib/python"))
    pytester.makepyfile("import sys\ndef test_it():\n    assert not {'numpy', 'halfscope._core'} & set(sys.modules)\n")
    done = pytester.runpytest_subprocess("-p", "halfscope.pytest_plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)


def test_the_entry_point_names_the_plugin() -> None:
    """pytest loads what the group pytest11 names; the installed wheel has it from here."""
    text = (ROOT / "pyproject.toml").read_text()
    (named,) = re.findall(r'^\[project\.entry-points\.pytest11\]\n\w+ = "([\w.]+)"\n\n', text, re.MULTILINE)
    plugin = __import__(named, fromlist=["halfscope_floor"])
    assert plugin.halfscope_floor and plugin.pytest_runtest_makereport


def page_blocks() -> list[Block]:
    """Blocks of the page that this test compares, each with the Python before it."""
    blocks = read_blocks(ROOT / "docs/guides/bug-or-round-off.md")
    return [block for pair in pairwise(blocks) if "test_pytest_plugin" in pair[1].note for block in pair]


def test_the_page_shows_the_messages(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example, printed, tests, report = page_blocks()
    exec(compile(example.code, example.place, "exec"), {})
    assert capsys.readouterr().out == printed.code
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(tests.code)
    lines = pytester.runpytest_inprocess("-p", "halfscope.pytest_plugin", "-p", "no:cacheprovider").outlines
    message = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    start = next(index for index, line in enumerate(lines) if "- halfscope floor -" in line)
    shown = [message[0], *(f"  {line}" for line in message[1:]), "", *lines[start : start + 4]]
    assert "\n".join(shown) + "\n" == report.code

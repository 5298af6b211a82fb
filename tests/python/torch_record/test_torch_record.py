"""The record of halfscope.torch: equal from run to run, and a difference is named by its field and words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6", reason="fully_shard came with PyTorch 2.6")

import halfscope
import near_victims
import victims
from test_victims_healed import names_in
from torch_record import sources
from torch_record.cases import all_cases, record
from torch_record.command import main
from torch_record.differences import differences
from torch_record.values import plain

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
SUBSET = ("*/victims.mask_fill", "train/checkpointed, fp16_mixed", "watch/checkpointed, mxfp4", "probe/bf16")


def written(file: Path, *patterns: str) -> dict[str, Any]:
    assert main(["write", str(file), *patterns], "") == 0
    return json.loads(file.read_text())["cases"]


def test_a_second_run_writes_the_same_bytes(tmp_path: Path) -> None:
    found = written(tmp_path / "one.json", *SUBSET)
    assert len(found) == 7 and not any("exception" in case for case in found.values())
    written(tmp_path / "two.json", *reversed(SUBSET))
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_a_case_alone_is_as_among_others(tmp_path: Path) -> None:
    found = written(tmp_path / "one.json", *SUBSET)
    for name in ("diagnose/victims.mask_fill", "train/checkpointed, fp16_mixed"):
        assert written(tmp_path / "alone.json", name) == {name: found[name]}


def test_every_victim_of_the_tests_is_seen_through_every_door() -> None:
    names = set(all_cases())
    tested = [f"{module.__name__}.{name}" for module in (victims, near_victims) for name in names_in(module)]
    for door in ("diagnose", "emulate", "watch", "lint"):
        assert {f"{door}/{victim}" for victim in tested} <= names


def test_a_new_victim_is_recorded_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def new_victim() -> Any:
        return victims.half_sum()

    new_victim.__module__, new_victim.__annotations__ = "victims", {"return": "Victim"}
    monkeypatch.setattr(victims, "new_victim", new_victim, raising=False)
    assert {f"{door}/victims.new_victim" for door in ("diagnose", "emulate", "watch", "lint")} <= set(all_cases())


def test_another_constant_is_seen_in_words_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    written(tmp_path / "before.json", *SUBSET)
    monkeypatch.setattr(victims, "mask_fill", _with_a_mask_of(-1e8))
    written(tmp_path / "after.json", *SUBSET)
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "before.json"), str(tmp_path / "after.json")], "") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "3 of 7 cases differ"  # lint reads no closure
    assert "diagnose/victims.mask_fill:" in lines
    assert any(line.startswith("  text: ") and "write -6e4 for [--1e9-] {+-1e8+}" in line for line in lines)


def _with_a_mask_of(value: float) -> Callable[[], Any]:
    def mask_fill() -> Any:
        return victims._masked(lambda scores, padding: scores.masked_fill(padding, value))

    mask_fill.__module__, mask_fill.__annotations__ = "victims", {"return": "Victim"}
    return mask_fill


def test_an_exception_is_recorded() -> None:
    def broken() -> dict[str, Any]:
        raise TypeError("no such thing")

    assert record(broken) == {"exception": "TypeError", "text": "no such thing"}


BEFORE = {"text": ["Keep the total in FP32.", "Why: a sum overflows."], "numbers": [1, 2], "only": 3, "sum": "0x1.0p+1",
          "weights": plain(torch.tensor([1.0, 2.0, 3.0]))}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"text": ["Keep the sum in FP32.", "Why: a sum overflows."]},
         "text: Keep the [-total-] {+sum+} in FP32. \u23ce Why: a sum"),
        ({"text": "Keep the total in FP32."}, "text: Keep the total in FP32. [-\u23ce Why: a sum overflows.-]"),
        ({"numbers": [1, 5]}, "numbers[1]: 2 -> 5"),
        ({"sum": "0x1.8p+1"}, "sum: 0x1.0p+1 -> 0x1.8p+1"),
        ({"numbers": [1]}, "numbers: 2 entries -> 1"),
        ({"more": {"a": "b"}}, "more: new: {'a': 'b'}"),
        ({"weights": plain(torch.tensor([1.0, 2.5, 4.0]))},
         "weights: float32 (3,): 2 of 3 elements, the first at 1: 40000000 -> 40200000"),
    ],
)  # fmt: skip
def test_a_difference_names_field_and_words(change: dict[str, Any], line: str) -> None:
    (found,) = differences(BEFORE, {**BEFORE, **change})
    assert found.startswith(line)
    assert differences(BEFORE, dict(BEFORE)) == []


def test_a_field_that_is_gone_is_named() -> None:
    assert differences(BEFORE, {key: value for key, value in BEFORE.items() if key != "only"}) == ["only: gone: 3"]


def test_values_keep_all_bits() -> None:
    assert plain({("a", 1): (0.1, float("inf"))}) == {"a 1": ["0x1.999999999999ap-4", "inf"]}
    assert plain(torch.tensor([-0.0, 1.5]).half()) == "float16 (2,): 8000 3e00"
    one, other = torch.zeros(1000), torch.zeros(1000)
    other[999] = -0.0
    assert plain(one) != plain(other)
    with pytest.raises(TypeError, match="no words for a module"):
        plain(torch)


def test_lines_of_tests_are_counted_from_their_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TESTS", tmp_path)
    sources._definitions.cache_clear()
    (tmp_path / "models_of_this_test.py").write_text("import math\n\n\ndef first():\n    x = 1\n    return x\n")
    assert sources.stable("models_of_this_test.py:6: sum") == "models_of_this_test.py:first+2: sum"
    assert sources.stable("modeling_llama.py:6, models_of_this_test.py:1") == (
        "modeling_llama.py:6, models_of_this_test.py:1"
    )
    sources._definitions.cache_clear()


def test_another_trees_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """An environment into which another tree is installed imports that one, whatever the path says."""
    monkeypatch.setattr(halfscope, "__file__", str(tmp_path / "halfscope" / "__init__.py"))
    assert main(["write", str(tmp_path / "found.json"), "lint/victims.half_sum"], "") == 2
    assert f"halfscope is {tmp_path / 'halfscope'}, not that of " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["write", "found.json", "nothing/*"], "no case 'nothing/*'; `list` has their names"),
        (["write", "no/found.json", "lint/victims.half_sum"], "no/found.json: no folder no"),
        (["compare", "missing.json", "missing.json"], "missing.json: No such file or directory"),
        (["compare", "broken.json", "broken.json"], "broken.json: no record; `write` makes one"),
    ],
)
def test_bad_requests(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text('{"cases": {')
    assert main(arguments, "") == 2
    assert capsys.readouterr().err == f"torch_record: {message}\n"
    assert not (tmp_path / "found.json").exists()

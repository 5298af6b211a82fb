"""Words of before 0.1 are refused with the one to type, in functions that have the new one."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest

import halfscope
from halfscope import old_words
from recording.source_tree import PROGRAM, ROOT

PROGRAMS_TABLE = ROOT / "experiments/cli/usage/old_words.cpp"
RECORDED_KEYS = ROOT / "sim/train/recorded_keys.hpp"
OF_OLD_WORDS = {
    "experiments/cli/usage/old_words.cpp",
    "lib/python/halfscope/old_words.py",
    "sim/train/recorded_keys.hpp",
    "tests/experiments/definition/settings_test.cpp",
    "tests/experiments/experiment_file_test.py",
    "tests/experiments/formats_test.py",
    "tests/experiments/memory_test.py",
    "tests/experiments/updates_test.py",
    "tests/experiments/usage_test.py",
    "tests/python/results/test_results.py",
    "tests/python/test_old_words.py",
    "tests/sim/train/config_test.cpp",
    "tests/sim/train/step_memory_test.cpp",
}
ONES = np.ones(4, np.float32)
OF_ARRAYS = {
    "dot": lambda **options: halfscope.dot(ONES, ONES, **options),
    "matmul": lambda **options: halfscope.matmul(ONES[None], ONES[:, None], **options),
    "sum": lambda **options: halfscope.sum(ONES, **options),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_functions_of_arrays_name_the_new_argument(name: str) -> None:
    assert float(np.squeeze(OF_ARRAYS[name](order="fp32_sequential"))) == 4
    with pytest.raises(TypeError, match=rf"^{name} has no accumulate= since 0.1; give order=$"):
        OF_ARRAYS[name](accumulate="fp32_sequential")


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(set(old_words.ARGUMENTS) - set(OF_ARRAYS)))
def test_functions_of_models_name_the_new_argument(name: str) -> None:
    torch = pytest.importorskip("halfscope.torch")
    function = getattr(torch, name)
    for old, new in old_words.ARGUMENTS[name].items():
        assert new in inspect.signature(function).parameters
        with pytest.raises(TypeError, match=rf"^{name} has no {old}= since 0.1; give {new}=$"):
            function(**{old: None})


@pytest.mark.torch
@pytest.mark.parametrize(
    ("old", "new"), [("accumulate", "order"), ("reductions", "sum_order"), ("reduce", "sum_order")]
)
def test_settings_name_the_new_one(old: str, new: str) -> None:
    torch = pytest.importorskip("torch")
    from halfscope.torch import emulate

    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match=f"^emulate: exception '0': no setting {old} since 0.1; give {new}$"):
        emulate(model, "fp16", exceptions={"0": {old: "fp32_sequential"}})
    with pytest.raises(ValueError, match=f"^emulate: policy: no setting {old} since 0.1; give {new}$"):
        emulate(model, {old: "fp32_sequential"})


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_settings_of_python_are_those_of_the_program() -> None:
    listed = json.loads(subprocess.run([PROGRAM, "list", "settings", "--json"], capture_output=True, check=True).stdout)
    settings = listed["settings"]
    recorded = {setting["recorded"]: setting["name"] for setting in settings if setting["recorded"] != setting["name"]}
    assert recorded == old_words.SETTINGS


def test_functions_name_the_new_one() -> None:
    for old, new in old_words.FUNCTIONS.items():
        with pytest.raises(AttributeError, match=rf"^halfscope has no {old} since 0.1; call halfscope.{new}$"):
            getattr(halfscope, old)


@dataclass(frozen=True)
class OldWord:
    """A word, the text in which it would stand for what it was, and the files in which it may."""

    word: str
    pattern: str
    files: str = r""  # begins or ends their names


def of_the_command_line() -> list[OldWord]:
    """By line of the program's table: a command with its option, which may stand before what else it takes."""
    table = re.search(r"old_words\{\n(.*?)\n\};", PROGRAMS_TABLE.read_text(), re.DOTALL)
    assert table is not None
    words = []
    for row in re.findall(r"OldWord\{(.*)\},?$", table[1], re.MULTILINE):
        command, word, _, _, *values = re.findall(r'"([^"]*)"', row)
        value = rf"[ =]['\"]?{re.escape(values[0])}" if values and row.endswith("true") else r"(?![\w-])"
        words.append(
            OldWord(f"{command} {word}", rf"(halfscope|\")[ \"]*{command}\b[^`|\n]*[ \"']{re.escape(word)}{value}")
        )
    return words


def of_settings() -> list[OldWord]:
    """A key of TOML, of an assignment, of a mapping; other languages have variables and functions of the name."""
    keys = re.findall(r'RecordedKey\{"\w+", "(\w+)"\}', RECORDED_KEYS.read_text())
    assigned = r"(^|[\s,:`'\"{{]){key} ?= ?(?!True|False)['\"\w]|--set {key}\b|['\"]{key}['\"]"
    typed = [OldWord(key, assigned.format(key=key), r".*\.(toml|py|sh|md|ipynb|txt)$|tools/[\w-]+$") for key in keys]
    named = [OldWord(f"`{key}`", f"`{key}`", r"docs/(?!dev/)|README") for key in keys]
    return [*typed, *named, *(OldWord(f'"{key}="', rf'"{key}=|t_field\(\w+, "{key}"', r".*[ch]pp$") for key in keys)]


def of_python() -> list[OldWord]:
    among = r"[^()\n]*(\([^()\n]*\)[^()\n]*)*"  # arguments before it
    arguments = [
        OldWord(f"{name}({old}=)", rf"\b{name}\({among}\b{old}=")
        for name, table in old_words.ARGUMENTS.items()
        for old in table
    ]
    return [*arguments, *(OldWord(old, rf"\b{old}\b") for old in old_words.FUNCTIONS)]


OLD = [*of_the_command_line(), *of_settings(), *of_python()]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Tracked files but the changelog, the tables of old words, their tests, and what was recorded."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    recorded = re.compile(r"experiments/recorded/|CHANGELOG|notebooks/figures")
    names = [name for name in listed.split("\0") if name and not recorded.match(name) and name not in OF_OLD_WORDS]
    contents = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    return {name: content.decode() for name, content in contents.items() if b"\0" not in content}


def test_every_table_is_read() -> None:
    words = {word.word for word in OLD}
    assert {"analyze --formats", "list accumulators", "accumulate", "emulate(rules=)", "list_accumulators"} <= words
    assert set(old_words.SETTINGS) <= words and len(words) == len(OLD) > 25


@pytest.mark.parametrize("old", OLD, ids=lambda old: old.word)
def test_an_old_word_stands_nowhere_else(old: OldWord, texts: dict[str, str]) -> None:
    pattern = re.compile(old.pattern, re.MULTILINE)
    places = {
        name: match[0].strip()
        for name, text in texts.items()
        if re.match(old.files, name) and (match := pattern.search(text))
    }
    assert places == {}


@pytest.mark.parametrize(
    "text",
    [
        "halfscope analyze x.npz --formats nvfp4", "halfscope report out --format csv", '("list", "accumulators")',
        'accumulate = "fp16_fused"', "--set reduce=fp16_sequential@bn*", "--arm x:like=y,gradient_accumulator=bf16",
        "emulate(model, str(x), optimizer=o, rules={})", "halfscope.list_accumulators()", 'config["reduce"]',
        "halfscope analyze x --fail-on 'lost_updates>1%'",
    ],
)  # fmt: skip
def test_an_old_word_would_be_found(text: str) -> None:
    assert any(re.search(old.pattern, text, re.MULTILINE) for old in OLD)


COMMANDS = ("report", "analyze", "formats", "updates", "memory", "calc", "run", "replay", "bench", "list", "compare")


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_format_is_of_numbers_and_table_of_tables() -> None:
    helps = {}
    for command in COMMANDS:
        done = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True)
        said = " ".join(done.stdout.split())
        for option, words in re.findall(r"--(format|table) TEXT\S*(?: \.\.\.)? (.*?)(?= --|$)", said):
            helps[command, option] = words
    formats = {command: words for (command, option), words in helps.items() if option == "format"}
    tables = {command: words for (command, option), words in helps.items() if option == "table"}
    assert set(formats) == {"analyze", "formats", "updates", "calc"}
    assert set(tables) == {"report", "memory", "analyze", "formats", "updates"}
    assert all(words.startswith("format") and re.search("fp16|nvfp4", words) for words in formats.values())
    assert all(words.startswith("text, csv, markdown, latex") for words in tables.values())

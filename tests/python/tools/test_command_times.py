"""Minutes of README's commands: measured in a fresh clone, kept by stage, shown on the pages."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from copied_tree import Tree
from recording import command_times
from recording.command_times import main, measure, stages_of
from recording.inline_values import refreshed_values
from recording.measured import FILE, INSTALL, install_block, read_times, times_of
from recording.source_tree import RECORDED, ROOT

ENTRY = {"seconds": 600.0, "date": "2026-01-01", "cores": 2, "instruction_set": "AVX2", "origin": "typed by hand"}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A file of times of three commands, of which the second one's is a stand-in."""
    commands = {"install": "true", "reproduce": "tools/stages one", "test": "tools/stages two; exit 3"}
    entries = [{"name": name, "command": command, **ENTRY} for name, command in commands.items()]
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / FILE).write_text(json.dumps({"format_version": 1, "commands": entries}))
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A landed tree whose tool prints stages, beside a change that has not landed; the machine is idle."""
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1))
    tool = tmp_path / "root/tools/stages"
    tool.parent.mkdir(parents=True)
    stages = 'echo "== building"; echo "== build: 2 s"; echo "== test: passed in 3 s, 5 s of processor"; echo "== 5 s"'
    tool.write_text(f'#!/bin/sh\n{stages}\necho "== cache: ${{CCACHE_DISABLE:-0}} s"\n')
    tool.chmod(0o755)
    git = ["git", "-c", "user.name=one", "-c", "user.email=one@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "one"]):
        subprocess.run([*git, *arguments], cwd=tool.parents[1], check=True)
    tool.write_text("#!/bin/sh\nexit 1\n")
    return tool.parents[1]


def test_a_command_is_measured_by_stage_in_a_clone_of_what_has_landed(recorded: Path, root: Path) -> None:
    (entry,) = measure(["reproduce"], recorded, root)
    assert entry.stages == {"build": 2, "test": 3, "cache": 1}  # without a compiler cache
    assert 0 <= entry.seconds < 60 and entry.origin is None
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert len(entry.git_revision or "") == 12 and head.startswith(entry.git_revision or "-")
    assert entry.cores == len(os.sched_getaffinity(0)) and entry.date > "2026-01-01"
    times = read_times(recorded)
    assert times["reproduce"] == entry and times["install"].seconds == 600


def test_what_cannot_be_measured_changes_nothing(
    recorded: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (recorded / FILE).read_bytes()
    with pytest.raises(ValueError, match="exit status 3; nothing is recorded"):
        measure(["test"], recorded, root)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.9, 0.1, 0.1))
    with pytest.raises(ValueError, match=r"the machine is busy: 1\.9 processes"):
        measure([], recorded, root)
    monkeypatch.setenv("HALFSCOPE_RECORDED", str(recorded))
    assert main(["soon"]) == 2
    assert "no command 'soon'; one of install, reproduce, test" in capsys.readouterr().err
    assert (recorded / FILE).read_bytes() == before


def test_stages_are_those_that_the_tools_print(tested: Tree) -> None:
    printed = tested.run("test").stdout.splitlines()
    assert {"packages", "build_release", "test_release", "build_package", "test_python"} == stages_of(printed).keys()
    printed = tested.run("reproduce", "--out", "out").stdout.splitlines()
    wanted = ["packages", "build", "trainings", "tables", "Python environment", "Python module", "figures"]
    assert list(stages_of(printed)) == wanted


def test_the_block_of_readme_has_a_line_for_each_command(recorded: Path) -> None:
    lines = install_block(recorded).splitlines()
    assert lines[1] == "```sh" and lines[-1] == "```"
    assert lines[2].startswith("true") and "# 10 minutes: Python package" in lines[2]
    assert len({line.index("#") for line in lines[2:-1]}) == 1
    text = "<!-- value: machines install test -->old<!-- end -->"
    assert "-->2 idle cores with AVX2 (2026-01-01)<!--" in refreshed_values(f"On {text}.", recorded)


def test_the_recorded_times_say_where_they_come_from() -> None:
    times = read_times(RECORDED)
    assert times.keys() >= INSTALL.keys()
    for entry in times.values():
        assert entry.origin or (entry.git_revision and entry.cpu and entry.stages is not None), entry.name
        assert (ROOT / entry.command.split()[0]).exists() or entry.command == "pip install .", entry.name
    help_text = subprocess.run([ROOT / "tools/record", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(name in help_text for name in times)
    with pytest.raises(ValueError, match="no command 'soon'"):
        times_of(RECORDED, "soon")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("It takes <!-- value: minutes test -->7", "lacks its '<!-- end -->'"),
        ("It takes\n<!-- value: minutes test -->7<!-- end -->.", "takes for HTML"),
        ("It takes <!-- value: weather test -->7<!-- end -->.", "no value is a 'weather'; one of "),
    ],
)
def test_wrong_values_are_named(text: str, says: str, recorded: Path) -> None:
    with pytest.raises(ValueError, match=says):
        refreshed_values(text, recorded)
    assert command_times.STAGE.match("== 12 s") is None

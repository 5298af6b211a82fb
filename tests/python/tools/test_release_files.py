"""tools/release: a source archive of the tracked files, and what it refuses; `tools/test --all` proves a wheel."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from copied_tree import ROOT

VERSION = re.search(r"^project\(halfscope VERSION ([0-9.]+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
NAMED = ("CMakeLists.txt", "CITATION.cff", ".zenodo.json", "CHANGELOG.md", "tools/release", "tools/common.sh")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the files that a release reads."""
    folder = tmp_path / "checkout"
    for name in NAMED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "tools/release").chmod(0o755)
    git(tmp_path, "init", "--quiet", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "all")
    return folder


def release(folder: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run([folder / "tools/release", *options], capture_output=True, text=True, cwd=folder)


def test_the_source_is_the_tracked_files(checkout: Path, tmp_path: Path) -> None:
    (checkout / "notes.txt").write_text("not tracked")
    done = release(checkout, "--rehearse", "--source", "--out", str(tmp_path / "files"))
    assert done.returncode == 0, done.stderr
    archive = tmp_path / f"files/halfscope-{VERSION}.tar.gz"
    with tarfile.open(archive) as opened:
        names = {member.name for member in opened.getmembers() if member.isfile()}
    assert names == {f"halfscope-{VERSION}/{name}" for name in git(checkout, "ls-files").split()}
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert (tmp_path / f"files/halfscope-{VERSION}.sha256").read_text() == f"{digest}  {archive.name}\n"
    again = release(checkout, "--rehearse", "--source", "--out", str(tmp_path / "again"))
    assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]


def test_a_tag_and_a_date_are_asked_for(checkout: Path) -> None:
    heading = f"## [{VERSION}] - "
    text = re.sub(
        rf"^{re.escape(heading)}.*$", f"{heading}2026-12-24", (checkout / "CHANGELOG.md").read_text(), flags=re.M
    )
    (checkout / "CHANGELOG.md").write_text(text.replace("2026-12-24", "unreleased"))
    git(checkout, "commit", "--quiet", "--allow-empty", "-am", "no date")
    assert f"has no heading '{heading}DATE'" in release(checkout, "--source").stderr
    (checkout / "CHANGELOG.md").write_text(text)
    git(checkout, "commit", "--quiet", "-am", "date")
    assert f"no tag v{VERSION} on this revision" in release(checkout, "--source").stderr
    git(checkout, "tag", f"v{VERSION}")
    assert release(checkout, "--source", "--out", str(checkout / "out")).returncode == 0


@pytest.mark.parametrize("name", ["CITATION.cff", ".zenodo.json", "CHANGELOG.md"])
def test_another_version_is_refused(name: str, checkout: Path) -> None:
    (checkout / name).write_text((checkout / name).read_text().replace(VERSION, "9.9.9"))
    assert "tracked files are changed; commit them first" in release(checkout, "--rehearse", "--source").stderr
    git(checkout, "commit", "--quiet", "-am", "another")
    done = release(checkout, "--rehearse", "--source")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and name in done.stderr
    assert not (checkout / "dist").exists()


@pytest.mark.parametrize(
    ("options", "words"), [(["--out"], "--out needs a path"), (["--tag"], "unknown option '--tag'")]
)
def test_a_wrong_request_is_a_line_and_status_2(options: list[str], words: str) -> None:
    done = subprocess.run([ROOT / "tools/release", *options], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and words in done.stderr

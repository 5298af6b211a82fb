"""`check_blocks`: a check of each block of a large model, one of them in memory at a time."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from halfscope.reporting import Finding, Report
from halfscope.torch.check.check import check
from halfscope.torch.doctor.progress import check_seconds
from halfscope.torch.one_block.block_dump import read_dump
from halfscope.torch.one_block.checkpoint import Checkpoint
from halfscope.torch.one_block.loaded_block import block_of
from halfscope.torch.words import counted, listed, number

_POWER = re.compile(r"2\^-?\d+")
_QUIET = 5.0  # seconds before the first line of progress


def check_blocks(
    checkpoint: str | Path,
    dumps: str | Path | Iterable[str | Path] | Mapping[str, str | Path],
    format: str = "fp16",
    *,
    seconds: float = 60.0,
) -> Report:
    """Says what to type so that each block of a model is right in a format: `check` of one after the other.

    A block is loaded in FP32, checked, and let go. Findings that several blocks have are told once.

    checkpoint: a folder that `save_pretrained` of transformers wrote.
    dumps: a folder of files that `capture` wrote, such files, or files by the blocks' names, as
        {"model.layers.0": "dump.pt"}, of dumps that do not tell them.
    format, seconds: as `check` has them, for each block.

    Raises ValueError for a folder that holds no checkpoint or no dump, an unknown format and negative seconds,
    ImportError without the package transformers. A dump that does not fit is a finding.
    """
    check_seconds(seconds, "check_blocks")
    begun, opened = time.monotonic(), Checkpoint(Path(checkpoint))
    given = _by_name(dumps)
    found: dict[str, Report | ValueError] = {}
    for name, path in given:
        if time.monotonic() - begun > _QUIET:
            print(f"check_blocks: {len(found)} of {counted(len(given), 'block')}, {path}", file=sys.stderr, flush=True)
        label, result = _checked(opened, name, path, format, seconds)
        found[label] = result
    return _report(found, opened.folder)


def _checked(
    checkpoint: Checkpoint, name: str, path: Path, format: str, seconds: float
) -> tuple[str, Report | ValueError]:
    """The block's name, and its report; or why it could not be checked."""
    try:
        dump = read_dump(path)
        name = name or dump.module
        if not name:
            raise ValueError(f"{path}: does not tell its block; give check_blocks a mapping, {{name: path}}")
        if dump.module not in ("", name):
            raise ValueError(f"{path}: is a dump of '{dump.module}', and '{name}' was asked for")
        block = block_of(checkpoint, name, dump, path)
    except (ValueError, FileNotFoundError) as reason:
        return name or str(path), ValueError(str(reason))
    return name, check(block, block.loss, (), format, seconds=seconds)


def _by_name(dumps: str | Path | Iterable[str | Path] | Mapping[str, str | Path]) -> list[tuple[str, Path]]:
    """Names, empty where the file tells, and paths, with numbers in their order."""
    if isinstance(dumps, Mapping):
        return [(name, Path(path)) for name, path in dumps.items()]
    if not isinstance(dumps, (str, Path)):
        return [("", Path(path)) for path in dumps]
    folder = Path(dumps)
    paths = [folder] if folder.is_file() else [*folder.glob("*.safetensors"), *folder.glob("*.pt")]
    if not paths:
        raise ValueError(f"{folder}: holds no dump; capture(model, 'model.layers.*', folder) writes one for each block")
    return [("", path) for path in sorted(paths, key=_order)]


def _order(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _report(found: dict[str, Report | ValueError], folder: Path) -> Report:
    read = {name: result for name, result in found.items() if isinstance(result, Report)}
    findings = [*_merged(read), *_unread(found)]
    right = [name for name, report in read.items() if not report.findings]
    words = f"Nothing to change in {counted(len(right), 'block')}: {listed(right)}."
    about = f"Looked at: {number(read, 'block')} of {folder}, each alone; between them and beside them nothing."
    if findings and right:
        about = f"{words}\n\n{about}"
    return Report("check_blocks", tuple(findings), about, "" if findings else words)


def _merged(read: dict[str, Report]) -> Iterator[Finding]:
    """Each finding once, with the names of its blocks."""
    names: dict[tuple[str, str, str], list[str]] = {}
    first: dict[tuple[str, str, str], Finding] = {}
    for name, report in read.items():
        for finding in report.findings:
            change = _POWER.sub("2^k", finding.change.replace(name, ""))  # each block has powers of its own
            key = (finding.kind, str(finding.place), change)
            names.setdefault(key, []).append(name)
            first.setdefault(key, finding)
    for key, finding in first.items():
        every = names[key]
        where = f"in {every[0]}" if len(every) == 1 else f"in {listed(every)}, the numbers in {every[0]}"
        yield replace(finding, why="; ".join(filter(None, [finding.why, where])))


def _unread(found: dict[str, Report | ValueError]) -> Iterator[Finding]:
    for name, result in found.items():
        if isinstance(result, ValueError):
            yield Finding("unread", f"{name} was not looked at", str(result), about=name)

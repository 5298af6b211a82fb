"""Generated parts of the documents: recorded tables and the program's own help, each between two comments.

    <!-- generated: arms master-copy -->
    ...
    <!-- end of generated -->

Single values within a sentence are in inline_values.py.

python -m recording.pages [--check] writes all parts anew, or names the stale pages: tools/docs.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU
from halfscope.text_tables import aligned
from recording.advice_counts import HEADER, refreshed_header
from recording.advice_rules import advice_rules
from recording.beside_papers import beside_papers
from recording.claims import claims_table
from recording.device_bench import device_bench
from recording.device_tables import device_section
from recording.differences import differences_table
from recording.experiment_index import experiment_index
from recording.headline import everyday_line, headline_table
from recording.inline_values import refreshed_values
from recording.llms_file import PATH as LLMS
from recording.llms_file import llms_text
from recording.measured import install_block
from recording.quoted_tables import quoted_table
from recording.resnet_points import resnet_points
from recording.schema_fields import schema_fields
from recording.source_tree import PROGRAM, ROOT, recorded_folder

END = "<!-- end of generated -->"
PART = re.compile(r"<!-- generated: (?P<words>[^\n]+) -->\n(?P<body>.*?)" + re.escape(END), re.DOTALL)


@dataclass(frozen=True)
class Sources:
    """The places that generated parts come from."""

    recorded: Path  # experiments/recorded
    program: Path | None = None  # halfscope; None leaves the parts that it prints unchanged


def text_block(text: str) -> str:
    return f"```text\n{text}\n```"


class FindingTable(NamedTuple):
    """A table among an experiment's findings: their key, which may be any, and its first columns."""

    key: str | None
    opening: tuple[str, ...]


ARMS = ("arm", "seeds")
FINDINGS = {
    "published": FindingTable("published", ("network", "FP32")),
    "predictions": FindingTable("predictions", ("arm", "nearest the loss: output")),
    "predictors": FindingTable("harm", ("predictor", "steps")),
    "advice": FindingTable("harm", ("task", "harmed")),
    "beginnings": FindingTable(None, ("begins in", "arm")),
    "beginnings-by-norm": FindingTable(None, ("by the norm", "arm")),
    "advice-at-ends": FindingTable("advice_at_ends", ("scale of", "scale")),
    "advice-unscaled": FindingTable("where_loss_scaling", ("advice on", "positions")),
    "harm-by-place": FindingTable(None, ("series", "arm")),
    "norms": FindingTable(None, ("norm", "mean")),
}


def arms(sources: Sources, experiment: str) -> str:
    """The table of an experiment's arms, with the columns that its report has."""
    return text_block(reported_table(_record(sources, experiment), ARMS))


def finding(sources: Sources, experiment: str, kind: str) -> str:
    """A table of the experiment's findings; of a record without findings the report's."""
    folder = _record(sources, experiment)
    wanted, findings = FINDINGS[kind], read_json(folder / "summary.json").get("findings")
    if findings is None:
        return text_block(reported_table(folder, wanted.opening))
    sections = [section for entry in findings if wanted.key in (None, entry["key"]) for section in entry["sections"]]
    for section in sections:
        if section["columns"][:1] == [wanted.opening[0]]:
            return text_block(aligned([section["columns"], *section["rows"]]))
    keys = ", ".join(entry["key"] for entry in findings) or "none"
    raise ValueError(
        f"{folder / 'summary.json'}: no finding '{wanted.key}' with a table by {wanted.opening[0]}; there are: {keys}"
    )


def reported_table(folder: Path, opening: tuple[str, ...]) -> str:
    """The table of a recorded report.txt whose first columns are called `opening`, without indentation."""
    path = folder / "report.txt"
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line.removeprefix("  ") for line in paragraph.splitlines()]
        if tuple(re.split(r" {2,}", lines[0])[: len(opening)]) == opening:
            return "\n".join(lines)
    raise ValueError(f"{path}: no table has the columns {', '.join(opening)}")


def _record(sources: Sources, experiment: str) -> Path:
    folder = sources.recorded / CPU / experiment
    if not (folder / "report.txt").exists():
        raise ValueError(f"{folder / 'report.txt'}: no such record")
    return folder


def printed(sources: Sources, *words: str) -> str:
    return text_block("\n".join(line.rstrip() for line in _output(sources, *words).strip().splitlines()))


def _output(sources: Sources, *words: str) -> str:
    if sources.program is None:
        raise ValueError("the program is not built: run tools/reproduce")
    return subprocess.run([sources.program, *words], capture_output=True, text=True, check=True).stdout


def help_text(sources: Sources, *command: str) -> str:
    """`halfscope COMMAND --help`."""
    return printed(sources, *command, "--help")


def listed(sources: Sources, kind: str) -> str:
    """`halfscope list KIND`."""
    return printed(sources, "list", kind)


def replayed(sources: Sources, log: str, scalers: str) -> str:
    """Table of `halfscope replay LOG --scaler SCALERS`, without the verdict. log: in this tree."""
    table = _output(sources, "replay", str(ROOT / log), "--scaler", scalers).split("\n\n", 1)[0]
    return text_block(dedent(table))


def overflows(sources: Sources, *arms: str) -> str:
    """Lines of reports on the first overflow. arms: an experiment and an arm of it, and so on."""
    lines = []
    for experiment, arm in zip(arms[::2], arms[1::2]):
        report = (_record(sources, experiment) / "report.txt").read_text(encoding="utf-8").splitlines()
        lines += [line.strip() for line in report if line.strip().startswith(f"{arm}: step ")]
    return text_block("\n".join(lines))


def emulated_operations(sources: Sources) -> str:
    """Kinds of arithmetic that `halfscope.torch.emulate` has for PyTorch's operations, with a few names of each."""
    del sources
    # By its path: the package that it is in needs PyTorch.
    path = ROOT / "lib/python/halfscope/torch/operations/table.py"
    spec = importlib.util.spec_from_file_location("emulated_operations", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    lines = ["| arithmetic | operations | for example |", "|---|---|---|"]
    for kind in module.Kind:
        names = [entry.name for entry in module.TABLE.values() if entry.kind is kind]
        if names:
            shown = sorted(names, key=lambda name: name.startswith("_"))[:4]  # public names first, else as listed
            lines.append(f"| {kind.value} | {len(names)} | {', '.join(f'`{name}`' for name in shown)} |")
    return "\n".join(lines)


RECORDED_KINDS: dict[str, Callable[..., str]] = {
    "arms": arms,
    **{kind: partial(finding, kind=kind) for kind in FINDINGS},
    "advice-rules": lambda sources, *experiments: text_block(advice_rules(sources.recorded, *experiments)),
    "bench": lambda sources, device: device_bench(sources.recorded, device),
    "beside-papers": lambda sources: beside_papers(sources.recorded),
    "claims": lambda sources, *experiments: claims_table(sources.recorded, list(experiments)),
    "devices": lambda sources: device_section(sources.recorded),
    "differences": lambda sources, experiment: text_block(differences_table(sources.recorded, experiment)),
    "emulated-operations": emulated_operations,
    "keys": lambda sources, name, *keys: schema_fields(name, *keys),
    "overflows": overflows,
    "quoted": lambda sources, page, column: quoted_table(page, column),
    "index": lambda sources: experiment_index(sources.recorded),
    "resnet-points": lambda sources, experiment: resnet_points(sources.recorded, experiment),
    "install": lambda sources: install_block(sources.recorded),
    "headline": lambda sources: f"{headline_table(sources.recorded)}\n\n{everyday_line(sources.recorded)}",
}
PRINTED_KINDS: dict[str, Callable[..., str]] = {"help": help_text, "list": listed, "replay": replayed}


def generated(words: str, sources: Sources) -> str:
    """The part that `words`, a kind and its arguments, asks for."""
    kind, *arguments = words.split()
    make = {**RECORDED_KINDS, **PRINTED_KINDS}.get(kind)
    if make is None:
        raise ValueError(f"no generated part is a '{kind}'; one of {', '.join({**RECORDED_KINDS, **PRINTED_KINDS})}")
    return make(sources, *arguments)


def refreshed(text: str, sources: Sources) -> str:
    """`text` with its generated parts written anew; without a program only the recorded ones."""

    def part(match: re.Match[str]) -> str:
        words = match["words"]
        if sources.program is None and words.split()[0] in PRINTED_KINDS:
            return match[0]
        return f"<!-- generated: {words} -->\n\n{generated(words, sources)}\n\n{END}"

    if text.count("<!-- generated:") != len(PART.findall(text)):
        raise ValueError(f"a generated part lacks its '{END}'")
    return refreshed_values(PART.sub(part, text), sources.recorded, sources.program)


def pages(root: Path = ROOT) -> list[Path]:
    """README.md and the pages of docs/."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def documents(root: Path = ROOT) -> list[Path]:
    """The pages, and what else has generated parts."""
    others = [root / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "paper/paper.md")]
    return [*pages(root), *(path for path in others if path.exists())]


def stale_pages(sources: Sources, root: Path = ROOT) -> dict[Path, str]:
    """The documents that differ from what is generated, other than in white space, with their new text."""
    found = {}
    for page in documents(root):
        text = page.read_text(encoding="utf-8")
        try:
            new = refreshed(text, sources)
        except ValueError as problem:
            raise ValueError(f"{page.relative_to(root)}: {problem}") from None
        if new.split() != text.split():
            found[page] = new
    return found | _stale_header(sources, root) | _stale_llms(root)


def _stale_llms(root: Path) -> dict[Path, str]:
    """llms.txt, which is made of the pages as they are; none where no site is described."""
    path = root / LLMS
    if not (root / "mkdocs.yml").exists():
        return {}
    new = llms_text(root)
    return {path: new} if not path.exists() or path.read_text(encoding="utf-8") != new else {}


def _stale_header(sources: Sources, root: Path) -> dict[Path, str]:
    """advisor.hpp, whose counts are those of the records."""
    header = root / HEADER
    text = header.read_text(encoding="utf-8") if header.exists() else ""
    new = refreshed_header(text, sources.recorded) if text else ""
    return {header: new} if new != text else {}


def write_pages(sources: Sources, root: Path = ROOT) -> list[Path]:
    """Writes the stale pages; returns them."""
    stale = stale_pages(sources, root)
    for page, text in stale.items():
        page.write_text(text, encoding="utf-8")
    return list(stale)


def main(arguments: list[str], root: Path = ROOT) -> int:
    check = arguments == ["--check"]
    if arguments and not check:
        print("usage: python -m recording.pages [--check]", file=sys.stderr)
        return 2
    sources = Sources(recorded_folder(), PROGRAM if PROGRAM.exists() else None)
    try:
        stale = list(stale_pages(sources, root)) if check else write_pages(sources, root)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    for page in stale:
        print(f"{page.relative_to(root)}: {'stale; run tools/docs' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""README.md and docs/: every command and every code block runs, or says why not; links, lengths and options hold."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from checkpoint_file import write_checkpoint
from doc_blocks import LANGUAGES, Block, all_blocks, prose, read_blocks, shown
from halfscope import check_command
from recording.pages import pages
from recording.source_tree import PROGRAM, ROOT

BLOCKS = all_blocks()
PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages()}
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

# Stands before the program on the path of the commands: training runs are of smoke size, on one thread.
SHIM = """#!/bin/sh
program={program}
if [ "$1" = run ]; then
  set -- "$@" --threads 1
  case " $* " in *" --size "*) ;; *) set -- "$@" --size smoke ;; esac
  case " $* " in *" --seeds "* | *" --seed-list "* | *" --quick "*) ;; *) set -- "$@" --seeds 1 ;; esac
fi
exec "$program" "$@"
"""


def chosen(language: str, torch: bool = False) -> dict[str, list[Block]]:
    """The blocks to run of a language, by page."""
    found: dict[str, list[Block]] = {}
    for block in BLOCKS:
        if block.language == language and block.reason is None and block.needs_torch == torch:
            found.setdefault(block.page.relative_to(ROOT).as_posix(), []).append(block)
    return found


def write_inputs(folder: Path) -> None:
    """The files that the commands name."""
    random = np.random.default_rng(0)
    gradients = {f"fc{i}.weight": random.normal(0, 10.0**-i, (8, 100)).astype(np.float32) for i in (3, 6, 8)}
    weights = {name: random.normal(0, 0.1, values.shape).astype(np.float32) for name, values in gradients.items()}
    np.savez(folder / "gradients.npz", **gradients)
    np.savez(folder / "weights.npz", **weights)
    np.savez(folder / "updates.npz", **gradients)
    write_checkpoint(folder / "model.pt", weights)
    (folder / "operands.txt").write_text("1 3\n")
    (folder / "train.log").write_text("".join(map(megatron_line, range(1, 41))))
    (folder / "my_book.txt").write_text("in the beginning was the word and the word was good\n" * 2000)


def write_graph(folder: Path, page: str) -> None:
    """model.onnx, in which a square overflows in FP16, and its inputs, for a page that reads them."""
    if "inputs.npz" not in PAGES[page].read_text():
        return
    onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
    make, random = onnx.helper, np.random.default_rng(0)
    nodes = [make.make_node("MatMul", ["x", "w"], ["h"], name="/fc"),
             make.make_node("Mul", ["h", "h"], ["square"], name="/square"),
             make.make_node("Sqrt", ["square"], ["y"], name="/root")]  # fmt: skip
    weight = onnx.numpy_helper.from_array(random.normal(0, 300, (8, 16)).astype(np.float32), "w")
    values = [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", n]) for name, n in (("x", 8), ("y", 16))]
    graph = make.make_graph(nodes, "g", values[:1], values[1:], [weight])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    np.savez(folder / "inputs.npz", x=random.normal(size=(4, 8)).astype(np.float32))


def megatron_line(step: int) -> str:
    """A line of a log in which the third step is skipped."""
    scale = 65536.0 if step <= 3 else 32768.0
    return (
        f" iteration {step:8}/ 40 | consumed samples: {step * 8} | learning rate: 1.000E-04 | lm loss: 1.0E+01 | "
        f"loss scale: {scale:.1f} | grad norm: 1.000 | number of skipped iterations: {int(step == 3)} | "
        "number of nan iterations: 0 |\n"
    )


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages name, and halfscope on the path."""
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/halfscope"
    shim.write_text(SHIM.format(program=PROGRAM))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    return tmp_path


def run_shell(block: Block) -> str:
    """The standard output of a block's commands, of which all but the last end with status 0."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.code], capture_output=True, text=True)
    assert done.returncode == block.exit_status, f"{block.place}: status {done.returncode}\n{done.stderr[-2000:]}"
    return done.stdout


@needs_program
@pytest.mark.parametrize("page", sorted(chosen("sh")))
def test_commands_run(page: str, workplace: Path) -> None:
    output = ""
    for block in read_blocks(PAGES[page]):
        if block.language == "sh" and block.reason is None and not block.needs_torch:
            output = run_shell(block)
        elif block.note == "output":
            assert block.code == output, block.place


@pytest.mark.torch
@needs_program
@pytest.mark.parametrize("page", sorted(chosen("sh", torch=True)))
def test_commands_with_torch_run(page: str, workplace: Path) -> None:
    """With those before them, which write their files."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    write_graph(workplace, page)
    python = workplace / "bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    for block in read_blocks(PAGES[page]):
        if block.language == "sh" and block.reason is None:
            run_shell(block)


def run_python(blocks: list[Block]) -> None:
    """Runs the blocks of a page one after the other; each goes on from the one before."""
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, block.place, "exec"), names)
        if shown(block.code):
            assert printed.getvalue().splitlines() == shown(block.code), block.place


@pytest.mark.parametrize("page", sorted(chosen("python")))
def test_python_runs(page: str, workplace: Path) -> None:
    pytest.importorskip("halfscope._core", reason="the package is not compiled")
    run_python(chosen("python")[page])


@pytest.mark.torch
@pytest.mark.parametrize("page", sorted(chosen("python", torch=True)))
def test_python_with_torch_runs(page: str, workplace: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    write_graph(workplace, page)
    run_python([block for block in chosen("python", torch=True)[page] if block.torch_version <= version])


def words(text: str) -> str:
    return " ".join(text.split())


def quotes(block: Block, source: str) -> bool:
    """Whether every part of a block, between comments '...', stands in `source` in this order, but for white space."""
    start, source = 0, words(source)
    for part in re.split(r"^(?://|#) \.\.\.$", block.code, flags=re.MULTILINE):
        start = source.find(words(part), start)
        if start < 0:
            return False
    return True


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language in ("cpp", "cmake")], ids=lambda block: block.place
)
def test_cpp_is_quoted_from_a_program_that_the_tests_build(block: Block) -> None:
    patterns = {"cpp": "*.cpp", "cmake": "CMakeLists.txt"}
    folders = [ROOT / "examples", ROOT / "tests/consumer"]
    sources = [path for folder in folders for path in folder.rglob(patterns[block.language])]
    assert any(quotes(block, path.read_text()) for path in sources), block.place


def test_every_block_is_run_or_marked(record_property) -> None:
    """The count of blocks by kind; none is left out silently."""
    fences = sum(len(re.findall(r"^ *```", page.read_text(), re.MULTILINE)) for page in PAGES.values())
    assert fences == 2 * len(BLOCKS)
    assert {block.language for block in BLOCKS} <= set(LANGUAGES)
    indented = [f"{name}: {line}" for name, page in PAGES.items() for line in re.findall(r"\n\n {4,}(.*)", prose(page))]
    assert indented == [], "code is fenced"
    code = [block for block in BLOCKS if block.language != "text"]
    for block in code:
        assert block.reason is None or len(block.reason.split()) > 3, f"{block.place}: no reason"
        assert block.reason or re.fullmatch(r"|(torch( \d+\.\d+)?)?(, )?(exit status \d+)?", block.note), block.place
    for block in set(BLOCKS) - set(code):
        assert not re.search(r"^(\$ |tools/|cmake |pip |import )", block.code, re.MULTILINE), f"{block.place}: code"
        assert block.reason is None, f"{block.place}: text is never run"
    count = Counter("marked" if block.reason else "torch" if block.needs_torch else "run" for block in code)
    for name, number in count.items():
        record_property(name, number)
    print(f"{len(code)} blocks: {count['run']} run, {count['torch']} run with PyTorch, {count['marked']} marked")
    assert count["run"] > count["marked"] > 0


def commands_of(page: Path) -> list[str]:
    """Command lines of the blocks and of the sentences."""
    lines = [line for block in read_blocks(page) if block.language == "sh" for line in block.code.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", prose(page))
    return [line.partition(" #")[0].strip() for line in lines]


def options(text: str) -> list[str]:
    return re.findall(r"(?<=\s)--[a-z][a-z-]*", re.sub(r"'[^']*'", "''", text))


@needs_program
@pytest.mark.parametrize("page", sorted(PAGES))
def test_commands_and_options_exist(page: str) -> None:
    for line in commands_of(PAGES[page]):
        if not (match := re.match(r"(?:HALFSCOPE\w+=\S+ )?(halfscope|tools/[a-z-]+)(?: ([a-z]+))?\b", line)):
            continue
        if match[1] == "halfscope":
            call = [PROGRAM, *filter(None, [match[2]]), "--help"]
        else:
            call = [ROOT / match[1], "--help"]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 0, f"{page}: {line}"
        missing = [option for option in options(line) if option != "--help" and option not in done.stdout]
        assert missing == [], f"{page}: {line}"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_options_of_pythons_own_command_exist(page: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        check_command.run(["--help"])
    for line in commands_of(PAGES[page]):
        if line.startswith("python -m halfscope check"):
            assert [option for option in options(line) if option not in said.getvalue()] == [], f"{page}: {line}"


@needs_program
@pytest.mark.parametrize("page", sorted(PAGES))
def test_settings_and_names_exist(page: str) -> None:
    listed = json.loads(subprocess.run([PROGRAM, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    settings = {entry["name"] for entry in listed["settings"]} | {"scaler"}
    experiments = {entry["name"] for entry in listed["experiments"]}
    for line in commands_of(PAGES[page]):
        assert set(re.findall(r"--set ([a-z]\w*)=", line)) <= settings, f"{page}: {line}"
        if match := re.match(r"halfscope run ([a-z][a-z-]+)(?!\S)", line):
            assert match[1] in experiments, f"{page}: {line}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(PAGES[page])):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        path = PAGES[page].parent / name if name else PAGES[page]
        assert path.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(path), f"{page}: {target}"


def test_earlier_addresses_lead_to_present_ones() -> None:
    """docs/moved.txt: a line per earlier page or section, and the page or section that has it now."""
    lines = [line for line in (ROOT / "docs/moved.txt").read_text().splitlines() if not line.startswith("#")]
    moved = dict(line.split(" ") for line in lines)
    assert len(moved) == len(lines) > 100
    for earlier, present in moved.items():
        assert earlier.partition("#")[0] in moved, f"{earlier}: its page has no line"
        assert not (ROOT / "docs" / earlier.partition("#")[0]).exists(), earlier
        name, _, anchor = present.partition("#")
        path = ROOT / "docs" / name
        assert path.exists(), present
        assert not anchor or anchor in anchors(path), present


@pytest.mark.parametrize("page", sorted(PAGES))
def test_paths_of_the_tree_exist(page: str) -> None:
    named = re.findall(r"`((?:lib|sim|experiments|tests|tools|examples|notebooks)/[\w./-]+)`", prose(PAGES[page]))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_pages_that_sources_name_exist() -> None:
    named = re.compile(r"\bdocs/[\w/.-]+\.md\b")
    sources = [path for top in ("lib", "sim", "experiments", "tools", "cmake") for path in (ROOT / top).rglob("*")]
    texts = {
        path: path.read_text() for path in sources if path.suffix in {".hpp", ".cpp", ".cu", ".py", ".toml", ".cmake"}
    }
    found = {(path.name, name) for path, text in texts.items() for name in named.findall(text)}
    assert len(found) > 2
    ggmls = ("gguf_file.cpp", "docs/gguf.md")
    assert [entry for entry in sorted(found) if entry != ggmls and not (ROOT / entry[1]).exists()] == []


def test_pages_are_short_and_reached_from_the_readme() -> None:
    lengths = {name: len(page.read_text().splitlines()) for name, page in PAGES.items()}
    assert lengths.pop("README.md") <= 150
    assert {name: length for name, length in lengths.items() if length >= 300} == {}
    assert [path for path in lengths if f"({path})" not in PAGES["README.md"].read_text()] == []
    long = [
        f"{name}: {line[:40]}"
        for name, page in PAGES.items()
        for line in page.read_text().splitlines()
        if len(line) > 400
    ]
    assert long == []


def test_the_site_lists_every_page() -> None:
    listed = re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")} <= set(listed)


def test_names_nothing_that_pytorch_deprecates() -> None:
    assert [name for name, page in PAGES.items() if "torch.cuda.amp" in page.read_text()] == []


def test_no_heading_names_a_version_that_is_still_to_come() -> None:
    version = re.search(
        r"^project\(halfscope VERSION (\d+)\.(\d+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE
    )
    assert version is not None
    for name, page in PAGES.items():
        for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE):
            named = [tuple(map(int, found)) for found in re.findall(r"\b(0)\.(\d+)\b", heading)]
            assert all(found <= tuple(map(int, version.groups())) for found in named), f"{name}: {heading}"


def test_most_gradients_are_flushed_where_a_sentence_says_so() -> None:
    """The sentence names the arm, and the last table before it has the share."""
    sentences = [
        (page.read_text(), found)
        for page in PAGES.values()
        for found in re.finditer(r"\(`(\w+)`\) FP16 makes most nonzero gradients zero", page.read_text())
    ]
    assert sentences
    for text, found in sentences:
        rows = re.findall(rf"^{found[1]} +\d+ .*?([\d.]+) %", text[: found.start()], re.MULTILINE)
        assert float(rows[-1]) > 50, found[0]


# In every command's help, and over every table of arms.
SHARED_LINES = (
    "-h,--help",
    "--table TEXT=text",
    "Exit status:",
    "arm seeds",
    "arm beside",
    "Loss scale 2^",
    "Why: it fits",
    "scale costs nothing",
    "Sure: such a scale",
)


def test_no_table_stands_twice() -> None:
    rows: dict[str, str] = {}
    for name, page in PAGES.items():
        text = re.sub(
            r"<!-- generated: (?:quoted|keys) .*?<!-- end of generated -->", "", page.read_text(), flags=re.DOTALL
        )
        cells = re.findall(r"^\|.*\|$", text, re.MULTILINE)
        cells += [line for block in read_blocks(page) if block.language == "text" for line in block.code.splitlines()]
        for row in {words(line) for line in cells if len(words(line)) > 40} - {
            words(line) for line in cells if words(line).startswith(SHARED_LINES)
        }:
            assert rows.setdefault(row, name) == name, f"{rows[row]} and {name}: {row}"

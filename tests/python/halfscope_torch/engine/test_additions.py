"""An operation, observer, kind of counts or transformation of halfscope.torch costs a file at most, and two lines."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import halfscope
from halfscope import _core

pytestmark = pytest.mark.torch

# The copy of the package, not an installed one.
PREFACE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ditable" not in type(finder).__name__]
sys.path.insert(0, {tree!r})
import torch, halfscope
assert halfscope.__file__.startswith({tree!r}), halfscope.__file__
"""


@dataclass(frozen=True)
class Addition:
    """A sample; its lines go before those that begin with an anchor."""

    lines: tuple[tuple[str, str, str], ...]  # file, anchor, line
    script: str
    printed: str
    file: str = ""
    source: str = ""


ADDITIONS = {
    "operation": Addition(
        lines=(("operations/rows/elementwise.txt", "exp2: exponential", "special_bessel_j0"),),
        script="""
from halfscope.torch import emulate
layer = torch.nn.Linear(2, 2)
model = torch.nn.Sequential(layer)
model.forward = lambda x: torch.special.bessel_j0(layer(x))
with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0), strict=True):
    model(torch.ones(1, 2))
print("no rule is missing")
""",
        printed="no rule is missing",
    ),
    "observer": Addition(
        file="emulate/sample_observer.py",
        source="""
from halfscope.torch.events.observer import Observer


class SampleObserver(Observer):
    def ran(self, ran):
        print("told of", ran.operation)
""",
        lines=(
            ("emulate/training.py", "from halfscope.torch.emulate.step import",
             "from halfscope.torch.emulate.sample_observer import SampleObserver"),
            ("emulate/training.py", "        twins = tuple(", "        observers.append(SampleObserver())"),
        ),
        script="""
from halfscope.torch import emulate
model = torch.nn.Linear(2, 2)
with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)):
    model(torch.ones(1, 2))
""",
        printed="told of addmm",
    ),
    "kind of counts": Addition(
        file="counts/sample_counter.py",
        source="""
from halfscope.torch.counts.histogram_counter import HistogramCounter


class SampleCounter(HistogramCounter):
    def words(self, totals, about):
        return "a verdict by samples"
""",
        lines=(
            ("counts/counters.py", "COUNTERS", "from halfscope.torch.counts.sample_counter import SampleCounter"),
            ("counts/counters.py", "    BlockCounter,", "    SampleCounter,"),
        ),
        script="""
from halfscope.torch import watch
model = torch.nn.Linear(2, 2)
with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as watched:
    model(torch.ones(1, 2)).sum().backward()
print(watched.verdict())
""",
        printed="a verdict by samples",
    ),
    "transformation": Addition(
        file="doctor/transformations/samples.py",
        source="""
def samples(group):
    print("asked for samples")
    return iter(())
""",
        lines=(
            ("doctor/transformations/table.py", "Family =",
             "from halfscope.torch.doctor.transformations.samples import samples"),
            ("doctor/transformations/table.py", "    constants,", "    samples,"),
        ),
        script="""
from halfscope.torch import find_remedy
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
x = torch.randn(8, 4) * 12
print(find_remedy(model, lambda: torch.log(torch.exp(model(x)).sum(-1) + 1e-8).mean()))
""",
        printed="asked for samples",
    ),
}  # fmt: skip


def add(folder: Path, addition: Addition) -> None:
    """Puts a sample into a copy of halfscope.torch."""
    if addition.file:
        assert not (folder / addition.file).exists()
        (folder / addition.file).write_text(f'"""A sample."""\n{addition.source}')
    for file, anchor, line in addition.lines:
        text = (folder / file).read_text()
        at = text.index(f"\n{anchor}") + 1
        (folder / file).write_text(f"{text[:at]}{line}\n{text[at:]}")


def run(tree: Path, script: str) -> subprocess.CompletedProcess[str]:
    source = PREFACE.format(tree=str(tree)) + script
    (tree / "script.py").write_text(source)  # a remedy quotes lines
    return subprocess.run([sys.executable, tree / "script.py"], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, the compiled module in it."""
    tree = tmp_path_factory.mktemp("additions") / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "_core*.so")
    shutil.copytree(Path(halfscope.__file__).parent, tree / "halfscope", ignore=ignored)
    shutil.copy(_core.__file__, tree / "halfscope")
    return tree


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_costs_a_file_and_two_lines(name: str, package: Path, tmp_path: Path) -> None:
    addition = ADDITIONS[name]
    assert len(addition.lines) <= 2
    assert addition.printed not in run(package, addition.script).stdout
    tree = shutil.copytree(package, tmp_path / "tree")
    add(tree / "halfscope" / "torch", addition)
    done = run(tree, addition.script)
    assert addition.printed in done.stdout, done.stdout + done.stderr

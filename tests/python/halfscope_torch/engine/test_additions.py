"""The cost of a new thing in halfscope.torch: it is added to a copy of the package's files, and found by its doors.

Each addition is one line of one file, or one file and its line of a table, and nothing else of the package changes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
import halfscope.torch

pytestmark = pytest.mark.torch

PACKAGE = Path(halfscope.torch.__file__).parent
# Modules with a file in the copy are imported from there, by whatever way the package is installed.
FINDER = '''
import importlib.util, sys
from pathlib import Path

class Copied:
    """Finds modules of halfscope.torch in a folder of changed files first."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def find_spec(self, name, path=None, target=None):
        file = self.folder.joinpath(*name.split(".")[2:]).with_suffix(".py")
        if name.startswith("halfscope.torch.") and file.exists():
            return importlib.util.spec_from_file_location(name, file)

sys.meta_path.insert(0, Copied(sys.argv[1]))
'''


def copied(folder: Path, *files: str) -> None:
    """Copies files of the package, by their paths in it."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((PACKAGE / name).read_bytes())


def with_line(file: Path, marker: str, line: str) -> None:
    """Adds one line behind the first one that begins with `marker`."""
    lines = file.read_text().splitlines()
    place = next(number for number, text in enumerate(lines) if text.startswith(marker))
    file.write_text("\n".join([*lines[: place + 1], line, *lines[place + 1 :]]) + "\n")


def told(folder: Path, script: str) -> dict[str, Any]:
    """Prints of a script that runs with the changed files, as JSON."""
    (folder / "script.py").write_text(FINDER + script)  # diagnose reads the lines of its model
    done = subprocess.run(
        [sys.executable, "-W", "ignore", folder / "script.py", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture
def added(tmp_path: Path) -> Callable[..., tuple[dict[str, Any], dict[str, Any]]]:
    """Runs a script without an addition and with it."""

    def both(script: str, files: tuple[str, ...], add: Callable[[Path], None]) -> tuple[dict[str, Any], dict[str, Any]]:
        before, after = tmp_path / "before", tmp_path / "after"
        for folder in (before, after):
            copied(folder, *files)
        add(after)
        return told(before, script), told(after, script)

    return both


OPERATION = """
import json, torch
from torch import nn
from halfscope.torch import diagnose, emulate
from halfscope.torch.operations.table import table_text

class Tails(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        nn.init.constant_(self.linear.weight, 0.0)
        nn.init.constant_(self.linear.bias, -3.5)

    def forward(self, x):
        return torch.special.erfcx(self.linear(x))  # 2 exp(12.25) is beyond FP16

def attempt(make):
    try:
        return make()
    except Exception as error:
        return str(error)

def outputs(**options):
    with emulate(model, "fp16", **options):
        return model(x).detach().flatten().tolist()

model, x = Tails(), torch.ones(1, 2)
first = diagnose(model, lambda: model(x).sum(), "fp16_mixed").findings[0]
print(json.dumps({
    "table": table_text(["erfcx"]),
    "kind": first.kind,
    "strict": attempt(lambda: outputs(strict=True)),
    "rule": attempt(lambda: outputs(exceptions={"*:exponentials": "fp32"})),
    "autocast": attempt(lambda: outputs()),
}))
"""


def test_an_operation_of_pytorchs_is_one_row(added: Any) -> None:
    """Its arithmetic, its name in sources, its group for rules and its faults come from there."""
    rows = [f"operations/rows/{path.name}" for path in PACKAGE.joinpath("operations/rows").iterdir()]
    row = "special_erfcx: exponential called=erfcx"
    before, after = added(
        OPERATION, ("operations/table.py", *rows),
        lambda folder: with_line(folder / "operations/rows/elementwise.txt", "[rounded exponentials]", row),
    )  # fmt: skip
    assert before["table"] == "" and after["table"].split("  ")[0] == "special_erfcx"
    assert (before["kind"], after["kind"]) == ("overflow", "exponential")
    assert "no rule for the operation special_erfcx" in before["strict"]
    assert after["strict"] == after["autocast"] == [float("inf")] * 2
    assert before["rule"] == [float("inf")] * 2 and after["rule"] == pytest.approx([417962.85] * 2, rel=1e-2)


SILENT = """
import json, torch
from torch import nn
from halfscope.torch import diagnose

model = nn.Linear(4, 2)
found = diagnose(model, lambda: model(torch.ones(3, 4)).square().mean(), "fp16_mixed")
print(json.dumps({"kinds": [each.kind for each in found.findings], "texts": list(map(str, found.findings))}))
"""
SAMPLE = '''"""Losses above a tenth: a sample of a finding."""

from halfscope.torch.diagnose.silent.silent import Silent, seen_alone
from halfscope.torch.findings.finding import Finding


def _look(steps):
    return [steps.exact.loss] if steps.exact.loss > 0 else []


def _words(steps, loss, sure):
    return Finding("sample", "type a sample", f"the loss is above 0 in {steps.session.format.label}.", sure)


SAMPLE = Silent("sample", _look, seen_alone("seen in FP32"), _words)
'''


def test_a_silent_finding_is_one_file_and_its_line(added: Any) -> None:
    """With the line that imports the file."""

    def add(folder: Path) -> None:
        (folder / "diagnose/silent/sample.py").write_text(SAMPLE)
        table = folder / "diagnose/silent/silent_table.py"
        with_line(table, "from __future__", "from halfscope.torch.diagnose.silent.sample import SAMPLE")
        with_line(table, "    LOST_UPDATES,", "    SAMPLE,")

    before, after = added(SILENT, ("diagnose/silent/silent_table.py",), add)
    assert before["kinds"] == [] and after["kinds"] == ["sample"]
    assert after["texts"] == ["the loss is above 0 in FP16\n  Sure: seen in FP32"]


COUNTED = """
import json, sys, torch
from pathlib import Path
from torch import nn
from halfscope.torch import watch

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
out = Path(sys.argv[1]) / "run"
try:
    with watch(model, every=1, optimizer=optimizer, format="elements", out=out, ranks="alone") as watched:
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    line = next(out.rglob("metrics.jsonl")).read_text().splitlines()[0]
    print(json.dumps({"line": json.loads(line), "verdict": watched.verdict}))
except ValueError as error:
    print(json.dumps({"error": str(error)}))
"""
COUNTER = '''"""Elements of a step's tensors: a sample of a counter."""

from collections import Counter

from halfscope.torch.counts.blocks import BlockWeights


class Elements:
    def __init__(self):
        self.format, self.formats, self.found, self.steps = "elements", {}, Counter(), 0

    def count(self, role, tensor, given, scale=1.0):
        self.found[f"{role} {tensor}"] += given.numel()

    def count_all(self, role, tensors, scale):
        for name, tensor in tensors.items():
            self.count(role, name, tensor)

    recount = count_all

    def finish(self):
        pass

    def gradients(self, scale):
        return None

    def line(self):
        return {"elements": dict(self.found)}

    def histogram_lines(self, step):
        return []

    def draw(self, board, step):
        pass

    def add(self, seen):
        self.steps += 1
        self.found += seen.found


class ElementCounter:
    knows_scale, unseen, format = False, "Not looked at: numbers.", "elements"

    def __init__(self, format):
        pass

    @staticmethod
    def takes(format):
        return format == "elements"

    def observe(self):
        return Elements()

    totals = observe

    def weights(self, owned):
        return BlockWeights(owned)

    def merge(self, seen, ranks, scale):
        pass

    def words(self, totals, about):
        return f"{sum(totals.found.values())} elements."
'''


def test_a_counter_is_one_file_and_its_line(added: Any) -> None:
    """The steps, the run's folder and the report take it as they take histograms and blocks."""

    def add(folder: Path) -> None:
        (folder / "counts/element_counter.py").write_text(COUNTER)
        table = folder / "counts/counters.py"
        with_line(table, "from __future__", "from halfscope.torch.counts.element_counter import ElementCounter")
        with_line(table, "COUNTERS = (", "    ElementCounter,")

    before, after = added(COUNTED, ("counts/counters.py",), add)
    assert "format='elements'" in before["error"]
    counted = {"activation ": 6, "weight_gradient weight": 8, "weight_gradient bias": 2, "weight weight": 8}
    assert {name: after["line"]["elements"][name] for name in counted} == counted
    assert after["line"]["format"] == "elements" and after["verdict"].endswith("elements.")


OBSERVED = """
import json, torch
from halfscope.torch import emulate

model = torch.nn.Linear(2, 2)
with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)):
    model(torch.ones(1, 2))
print(json.dumps({"told": getattr(torch, "told", [])}))
"""
OBSERVER = '''"""Names of operations: a sample of an observer."""

import torch

from halfscope.torch.events.observer import Observer

torch.told = []


class SampleObserver(Observer):
    def ran(self, ran):
        torch.told.append(ran.operation)
'''


def test_an_observer_is_one_file_and_its_line(added: Any) -> None:
    def add(folder: Path) -> None:
        (folder / "emulate/sample_observer.py").write_text(OBSERVER)
        training = folder / "emulate/training.py"
        with_line(training, "from __future__", "from halfscope.torch.emulate.sample_observer import SampleObserver")
        with_line(training, "            observers += [found.trail]", "        observers.append(SampleObserver())")

    before, after = added(OBSERVED, ("emulate/training.py",), add)
    assert before["told"] == [] and after["told"] == ["addmm"]


TRANSFORMED = """
import json, torch
from halfscope.torch import diagnose

torch.manual_seed(0)
model, x = torch.nn.Linear(4, 4), torch.randn(8, 4) * 12
diagnose(model, lambda: torch.log(torch.exp(model(x)).sum(-1) + 1e-8).mean())
print(json.dumps({"asked": getattr(torch, "asked", 0)}))
"""
TRANSFORMATION = '''"""Nothing to try: a sample of a family of transformations."""

import torch


def samples(group):
    torch.asked = getattr(torch, "asked", 0) + 1
    return iter(())
'''


def test_a_transformation_is_one_file_and_its_line(added: Any) -> None:
    def add(folder: Path) -> None:
        (folder / "doctor/transformations/samples.py").write_text(TRANSFORMATION)
        table = folder / "doctor/transformations/table.py"
        with_line(table, "from __future__", "from halfscope.torch.doctor.transformations.samples import samples")
        with_line(table, "FAMILIES: tuple", "    samples,")

    before, after = added(TRANSFORMED, ("doctor/transformations/table.py",), add)
    assert before["asked"] == 0 and after["asked"] > 0

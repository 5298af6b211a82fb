"""`diagnose` on the tests' models: each remedy with a text is typed into their source, and that is run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import more_victims
import near_victims
import victims
from halfscope.torch import diagnose
from halfscope.torch.doctor.advice_words import told
from halfscope.torch.doctor.diagnosing import Course
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.find_remedy import program_of as program_in
from halfscope.torch.doctor.program import Program, Trial
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.doctor.typing_edits import typed
from halfscope.torch.steps.optimizers import optimizers_of

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
MODULES = ("victims", "near_victims", "more_victims")
HELPERS = ("behind", "random")
UNSPOILED_NAMES = """
    lm_head_bf16 gemma_normalizer fp16_constants partial_sums cancelling_parts capped_head hidden_by_relu
    hidden_by_sigmoid hidden_by_clamp compared unused mask_of_two_softmaxes mask_without_harm mask_of_infinity healthy
    a_tuple
"""
UNSPOILED = UNSPOILED_NAMES.split()  # no outcome of the step shows the format
FP32 = ("padding_alone", "not_finite_in_fp32")
LONG = ("running_sum", "own_mean", "accumulated_gradients")  # loops of hundreds of calls
STATE = ("ema_stuck", "bf16_weights_stuck", "own_clipping", "adam_eps_half", "adagrad_in_half", "accumulated_gradients")


def names_in(module: ModuleType) -> list[str]:
    return [
        name
        for name, each in vars(module).items()
        if callable(each) and not isinstance(each, type) and getattr(each, "__module__", "") == module.__name__
        and not name.startswith("_") and name not in HELPERS
    ]  # fmt: skip


NAMES = [name for module in (victims, near_victims, more_victims) for name in names_in(module)]
SPOILED = [
    pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])
    for name in NAMES
    if name not in UNSPOILED and name not in FP32
]


def program_of(name: str) -> Program:
    """The victim of that name in the modules of victims that are imported now."""
    torch.manual_seed(0)
    maker = next(getattr(sys.modules[module], name) for module in MODULES if hasattr(sys.modules[module], name))
    model, step, options = maker()
    format = options.get("format", "fp16").removesuffix("_pure")
    return program_in(model, step, format, optimizers_of(options.get("optimizer", ()), "diagnose"), 1.0)


def search(name: str) -> tuple[Examination, Diagnosis]:
    about = Examination(program_of(name), Progress(240.0 if name in LONG else 60.0))
    about.begin()
    about.look()
    course = Course(about)
    course.search()
    return about, told(about, course)


def program_with(report: Diagnosis, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The victim, of source in which the report's remedies are typed."""
    edits = [edit for advice in report.findings for edit in advice.edits]
    for module in MODULES:
        path = Path(str(sys.modules[module].__file__))
        own = [edit for edit in edits if Path(edit.file) == path]
        (folder / path.name).write_text(typed(path.read_text(), own))
    monkeypatch.syspath_prepend(str(folder))
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module)
    importlib.invalidate_caches()
    for module in MODULES:
        monkeypatch.setitem(sys.modules, module, importlib.import_module(module))
    return program_of(name)


def has_text(report: Diagnosis) -> bool:
    return all(advice.edits for advice in report.findings)


@pytest.mark.parametrize("name", SPOILED)
def test_a_victim_is_healed_by_what_is_typed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about, report = search(name)
    assert report.findings and all(advice.kind for advice in report.findings), report
    if not has_text(report):
        return
    program = program_with(report, name, tmp_path, monkeypatch)
    program.is_plain = about.program.is_plain
    exact, narrow = program.run(Trial(is_exact=True)), program.run(Trial())
    assert about.floor.keeps_fp32(exact.outcome, about.exact.outcome, True), report
    assert about.floor.is_healed(narrow.outcome, about.exact.outcome), report


def test_most_victims_have_a_text_to_type() -> None:
    fast = [name for name in NAMES if name not in (*UNSPOILED, *FP32, *LONG, *STATE)]
    reports = [search(name)[1] for name in fast]
    assert sum(map(has_text, reports)) >= 0.6 * len(fast)


@pytest.mark.parametrize("name", UNSPOILED)
def test_what_no_outcome_shows_is_healthy(name: str) -> None:
    program = program_of(name)
    report = diagnose(program.model, program.step, program.format.name)
    assert report.is_healthy, report


@pytest.mark.parametrize("name", [each for each in STATE if each not in LONG])
def test_state_that_a_format_loses_is_kept_in_fp32(name: str) -> None:
    _, report = search(name)
    assert [advice.kind for advice in report.findings] == ["state"], report


def test_a_clip_of_gradients_in_the_loop_has_its_line() -> None:
    _, report = search("own_clipping")
    assert report.findings[0].code == "total = total + parameter.grad.norm(2) ** 2"
    _, report = search("adam_eps_half")
    assert report.findings[0].place is None


def test_the_buffer_that_is_stuck_is_named() -> None:
    _, report = search("ema_stuck")
    assert report.findings[0].change == "keep average in FP32: BF16 loses what a step adds"


class Scaled(torch.nn.Module):
    """A function of a layer's results times a factor."""

    def __init__(self, function: Any, factor: float) -> None:
        super().__init__()
        self.layer, self.function, self.factor = torch.nn.Linear(8, 8), function, factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.layer(x) * self.factor)


def kinds_of(function: Any, factor: float) -> tuple[list[str], Diagnosis]:
    torch.manual_seed(1)
    model, x = Scaled(function, factor), torch.randn(6, 8)
    report = diagnose(model, lambda: model(x).square().sum())
    return [advice.kind for advice in report.findings], report


@pytest.mark.parametrize("factor", [300.0, 500.0, 900.0])
def test_no_clamp_or_factor_hides_behind_a_softmax_that_saturates(factor: float) -> None:
    for function in (lambda y: torch.softmax(y**2, -1), lambda y: torch.softmax(y * y.abs().amax(), -1)):
        kinds, report = kinds_of(function, factor)
        assert kinds and not set(kinds) & {"clamp", "power of two"}, report


@pytest.mark.parametrize("factor", [4.0, 6.0, 9.0])
def test_a_clamp_is_right_for_what_a_mask_drops(factor: float) -> None:
    def function(y: torch.Tensor) -> torch.Tensor:
        y = y + factor * 2
        return torch.where(y > 8, y, torch.log1p(torch.exp(y)))

    kinds, report = kinds_of(function, factor)
    assert kinds == ["clamp"] or kinds == ["identity"], report

"""Copies of a watched model, and what stays behind: hooks are weak, and a copy has none that counts."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import subprocess
import sys
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope.torch import watch
from planted import ELEMENTS, Planted, train
from recording.source_tree import ROOT


def save(model: torch.nn.Module) -> torch.nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return (
        torch.load(file, weights_only=False) if "weights_only" in torch.load.__code__.co_varnames else torch.load(file)
    )


COPIES = {
    "deepcopy": copy.deepcopy,
    "torch.save": save,
    "AveragedModel": lambda model: torch.optim.swa_utils.AveragedModel(model).module,
}


@pytest.mark.parametrize("way", COPIES)
def test_a_model_is_copied_before_every_step_and_the_copy_is_not_watched(way: str) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with watch(model, 3, optimizer=optimizer) as watched:
            for _ in range(6):
                copied = COPIES[way](model)
                copied(torch.ones(ELEMENTS)).sum().backward()
                train(model, optimizer, 1)
            assert watched.histogram("activation").elements == 3 * 2 * ELEMENTS
    assert torch.equal(COPIES[way](model).first.weight, model.first.weight)


def test_counts_are_pickled_copied_and_added() -> None:
    values = torch.randn(1000)
    for format in ("fp16", "fp8_e4m3"):
        histogram = halfscope.Histogram(values, format=format)
        for copied in (pickle.loads(pickle.dumps(histogram)), copy.copy(histogram), copy.deepcopy(histogram)):
            assert copied == histogram and copied.format == format and copied.max_abs == histogram.max_abs
            copied.update(values)
            assert copied.elements == 2000 and histogram.elements == 1000
        assert histogram + histogram == copied
    assert halfscope.Histogram.from_numbers(halfscope.Histogram(values).numbers()) == halfscope.Histogram(values)
    with pytest.raises(ValueError, match="7; 1113 are expected"):
        halfscope.Histogram.from_numbers(halfscope.Histogram(values).numbers()[:7])
    with pytest.raises(ValueError, match="count at different edges"):
        halfscope.Histogram() + histogram
    counters = halfscope.lost_updates(values, 1e-4 * values)
    assert pickle.loads(pickle.dumps(counters)) == copy.deepcopy(counters) == copy.copy(counters) == counters
    both = counters + counters
    assert (both.elements, both.nonzero, both.lost) == (2000, 2 * counters.nonzero, 2 * counters.lost)
    assert both.applied_over_intended == pytest.approx(counters.applied_over_intended)
    assert repr(counters).startswith(
        f"<UpdateCounters of 1000 elements: {counters.nonzero} nonzero, {counters.lost} lost"
    )


def test_a_closed_watch_gives_its_memory_back() -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watched = watch(model, 1, optimizer=optimizer)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    train(model, optimizer, 1)
    schedule.step()
    (weights,) = watched._watcher._weights
    kept = weakref.ref(weights._kept) if "__weakref__" in dir(weights._kept) else None
    watched.close()
    assert not weights._plain and not weights._copies and (kept is None or kept() is None)
    about = weakref.ref(watched)
    del watched, weights
    gc.collect()
    if hasattr(optimizer, "register_step_pre_hook"):  # before, the scheduler keeps the method that it wrapped
        assert about() is None


def test_a_script_that_holds_its_loss_ends_without_messages() -> None:
    script = (
        "import torch\nfrom halfscope.torch import watch\n"
        "model = torch.nn.Linear(3, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "watched = watch(model, 1, optimizer=optimizer)\nloss = model(torch.ones(3)).sum()\n"
        "loss.backward()\noptimizer.step()\nkept = [watched.histograms(), model, loss]\n"
        "import builtins\nbuiltins.kept = kept\nkept.append(kept)\n"
    )
    environment = {"PYTHONPATH": str(ROOT / "lib" / "python"), "PATH": ""}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, env=environment
    )
    assert (ran.returncode, ran.stderr) == (0, "")

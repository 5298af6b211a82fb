"""`ablate`: arms side by side, their verdict, and a folder that the other tools read."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from halfscope.results import read_experiment
from halfscope.torch import Ablation, TrainingRun, ablate
from halfscope.torch.ablate.table import AblationArm, detectable, verdict_text
from halfscope.torch.policy import Policy

pytestmark = pytest.mark.torch

# Student's t of 95 % by degrees of freedom.
T_95 = {1: 12.706, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622}
PROGRAM = Path(__file__).resolve().parents[4] / "build/release/experiments/halfscope"


def make() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.ReLU(), torch.nn.Linear(24, 3))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-20)


def train(run: TrainingRun) -> float:
    """The loss is so small that FP16 flushes its gradients, unless it is scaled."""
    inputs, labels = torch.randn(256, 12), torch.randint(3, (256,))
    labels[:] = inputs[:, :3].argmax(1)
    for step in range(12):
        run.optimizer.zero_grad()
        part = slice(16 * step, 16 * step + 16)
        loss = torch.nn.functional.cross_entropy(run.model(inputs[part]), labels[part])
        run.log(loss)
        run.scaler.scale(loss * 2.0**-24).backward()
        run.scaler.step(run.optimizer)
        run.scaler.update()
    with torch.no_grad():
        return torch.nn.functional.cross_entropy(run.model(inputs), labels).item()


@pytest.fixture(scope="module")
def ablation() -> Ablation:
    lines: list[str] = []
    found = ablate(
        make, train, ["fp32", "fp16_mixed", "fp16_pure"], loss_scale=[1, 2**20], seeds=3, metric="loss", every=4,
        progress=lines.append,
    )  # fmt: skip
    assert len(lines) == 15
    assert lines[0].startswith("fp32, seed 0: loss ")
    return found


def test_arms_are_policies_at_loss_scales(ablation: Ablation) -> None:
    names = [arm.name for arm in ablation.arms]
    assert names == [
        "fp32", "fp16_mixed_s1", "fp16_mixed_s1048576", "fp16_pure_s1", "fp16_pure_s1048576",
    ]  # fmt: skip
    assert [len(arm.metrics) for arm in ablation.arms] == [3] * 5


def test_a_verdict_says_which_arms_end_as_fp32_does(ablation: Ablation) -> None:
    lines = ablation.verdict.splitlines()
    assert lines[0].startswith("fp16_mixed_s1 ends worse than fp32, by ")
    assert lines[1].startswith("fp16_mixed_s1048576 ends as fp32 does")
    assert lines[3] == "fp16_pure_s1048576 diverges in 3 of 3 seeds."
    table = str(ablation).splitlines()
    assert table[0].split()[:3] == ["arm", "seeds", "loss"]
    assert "detectable" in table[0]
    assert table[5].split()[2:5] == ["diverged", "in", "3"]


def arm(name: str, metrics: list[float]) -> AblationArm:
    return AblationArm(name, Policy(name, None, {}), 1, metrics, [0.0] * len(metrics))


def test_the_detectable_difference_is_the_paired_intervals_half_width() -> None:
    random = np.random.default_rng(0)
    for seeds in [one + 1 for one in T_95] * 20:
        theirs = random.normal(1, 0.3, seeds)
        ours = theirs + random.normal(0, 0.1, seeds)
        paired = ours - theirs
        half = T_95[seeds - 1] * paired.std(ddof=1) / seeds**0.5
        pair = arm("fp16_mixed", list(ours)), arm("fp32", list(theirs))
        assert detectable(*pair) == pytest.approx(half, rel=1e-3)
        line = verdict_text([*pair], "loss", True)
        if abs(paired.mean()) <= half:
            share = 100 * half / theirs.mean()
            assert "is not told from fp32" in line and f"a difference of {share:.2g} % or more" in line
        else:
            assert "than fp32, by" in line


def test_two_seeds_that_scatter_do_not_end_as_fp32_does() -> None:
    """0.99 beside 0.95 of two seeds that lie 0.1 apart says nothing."""
    line = verdict_text([arm("fp32", [0.9, 1.0]), arm("fp16_mixed", [0.84, 1.14])], "loss", True)
    assert "ends as" not in line and "is not told from fp32 by 2 seeds" in line
    close = verdict_text([arm("fp32", [0.9, 1.0]), arm("fp16_mixed", [0.9001, 1.0001])], "loss", True)
    assert "ends as fp32 does, within 0.011 %" in close or "ends as fp32 does, within 0.01 %" in close
    assert math.isnan(detectable(arm("fp16_mixed", [1.0]), arm("fp32", [1.0])))
    assert math.isnan(detectable(arm("fp16_mixed", [1.0, math.nan]), arm("fp32", [1.0, 1.0])))


def test_the_folder_is_that_of_a_run(ablation: Ablation, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "mine"
    ablation.write(folder)
    assert "ends as fp32 does" in str(ablation.report)
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    experiment = read_experiment(folder)
    assert [arm.name for arm in experiment.arms] == [arm.name for arm in ablation.arms]
    assert experiment.arms[0].mean == pytest.approx(ablation.arms[0].mean)
    run = experiment.runs["fp16_mixed_s1"][1]
    assert (run.config["policy"], run.config["activation_gradient"], run.seed) == ("fp16_mixed", "fp16", 1)
    assert len(run.steps) == 12
    assert run.steps["loss"].notna().all()
    tensors = run.counters("tensors")
    assert set(tensors["step"]) == {1, 4, 8, 12}
    assert tensors[tensors["role"] == "activation_gradient"]["flushed"].sum() > 0
    with pytest.raises(ValueError, match="exists; give a new folder"):
        ablation.write(folder)
    if PROGRAM.exists():
        table = subprocess.run([PROGRAM, "report", folder], check=True, capture_output=True, text=True).stdout
        assert "fp16_pure_s1048576" in table
        assert "3 of 3" in table


def test_an_exception_of_the_training_is_raised(tmp_path: Path) -> None:
    def broken(run: TrainingRun) -> float:
        raise OSError("no data")

    with pytest.raises(OSError, match="no data"):
        ablate(make, broken, ["fp16_mixed"], seeds=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 0}, "ablate: seeds=0; give 1 or more"),
        ({"loss_scale": ["dynamik"]}, "unknown loss scale 'dynamik'"),
        ({"loss_scale": []}, "give a policy, or several, and a loss scale"),
        ({"loss_scale": [8, 8]}, "the arm fp16_mixed_s8 is given twice"),
        ({"order": "fp16_kahan"}, "order = 'fp16_kahan'"),
    ],
)
def test_bad_requests_train_nothing(options: dict, message: str) -> None:
    def train_nothing(run: TrainingRun) -> float:
        raise AssertionError("trained")

    with pytest.raises(ValueError) as refused:
        ablate(make, train_nothing, ["fp16_mixed"], **options)
    assert message in str(refused.value)

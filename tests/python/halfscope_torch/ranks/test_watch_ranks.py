"""Two processes that train together: the counts of both, added up, are those of one process on the same batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch without torch.distributed"),
]

from halfscope import Histogram
from halfscope.torch.counts.totals import ROLES
from planted import records
from rank_processes import run_ranks

SIZE = 2
needs_fsdp = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6), reason="fully_shard came with PyTorch 2.6"
)


def run(case: str, folder: Path) -> list[str]:
    """Output of each rank."""
    return run_ranks("ranks.py", case, folder, SIZE)


def counts_of(folder: Path, rank: int) -> dict:
    return json.loads((folder / f"rank{rank}.json").read_text())["histograms"]


def one_process(case: str) -> dict:
    import ranks

    options = ranks.STATES if case.endswith("states") else {}
    watched = ranks.watched_training(ranks.network(), slice(None), case.endswith("clipped"), **options)
    return {role: {name: found.record() for name, found in watched.histograms(role).items()} for role in ROLES}


def doubled(record: dict) -> dict:
    return Histogram.from_record(record).scaled(2.0).record()


@pytest.mark.parametrize(
    "case",
    [f"ddp{c}" for c in ("", " clipped", " states")]
    + [pytest.param(f"fsdp{c}", marks=needs_fsdp) for c in ("", " clipped", " states")],
)
def test_merged_counts_are_those_of_one_process(case: str, tmp_path: Path) -> None:
    printed = run(case, tmp_path)
    expected = one_process(case)
    # The clipping norm is a sum of squares, whose last bit depends on the order.
    exact = {*expected} - ({"optimizer_gradient", "update_ratio"} if case.endswith("clipped") else set())
    # A rank's mean is over half of the samples: its gradients of activations are twice those of one process.
    expected["activation_gradient"] = {
        name: doubled(record) for name, record in expected["activation_gradient"].items()
    }
    for rank in range(SIZE):
        found = counts_of(tmp_path, rank)
        for role in exact:
            assert found[role] == expected[role], (rank, role)
    assert bool(counts_of(tmp_path, 0)["optimizer_gradient"]) == case.endswith("clipped")
    assert len(counts_of(tmp_path, 0)["optimizer_state"]) == (4 if case.endswith("states") else 0)
    assert "Over 3 watched steps, over 2 ranks: " in printed[0] and printed[1] == ""
    assert [line["step"] for line in records(tmp_path / "shared", "metrics.jsonl")] == [1, 2, 3, 4]
    updates = records(tmp_path / "shared", "metrics.jsonl")[0]["updates"]
    assert [update["elements"] for update in updates] == [16 * 31, 31, 31 * 7, 7]


@pytest.mark.parametrize("case", ["ddp blocks", pytest.param("fsdp blocks", marks=needs_fsdp)])
def test_merged_counts_of_blocks_are_those_of_one_process(case: str, tmp_path: Path) -> None:
    import ranks

    printed = run(case, tmp_path)
    expected = ranks.blocks_of(ranks.watched_training(ranks.network(), slice(None), **ranks.BLOCKS))
    by_role = {key.split()[0] for key in expected}
    assert by_role == {"activation", "activation_gradient", "weight", "weight_gradient", "optimizer_state"}
    for rank in range(SIZE):
        found = counts_of(tmp_path, rank)
        assert found.keys() == expected.keys()
        for key in expected:  # a rank's gradients of activations are twice as large, which is another scale
            if not key.startswith("activation_gradient"):
                assert found[key] == expected[key], (rank, key)
    assert "MXFP4 over 3 watched steps of 2 ranks:" in printed[0] and printed[1] == ""


def test_each_rank_can_count_alone(tmp_path: Path) -> None:
    printed = run("alone", tmp_path)
    assert all("Over 3 watched steps: " in text for text in printed)
    assert counts_of(tmp_path, 0)["activation"] != counts_of(tmp_path, 1)["activation"]
    assert {path.name for path in tmp_path.glob("own*")} == {"own0", "own1"}


def test_a_rank_that_waits_in_vain_says_so(tmp_path: Path) -> None:
    first, second = run("one watches", tmp_path)
    assert first == "watch: not all 2 ranks watch this model; call watch on every rank, or give ranks='alone'\n"
    assert second == ""


def test_a_state_is_counted_by_the_rank_that_has_it(tmp_path: Path) -> None:
    sizes = {"0.bias": 31, "0.weight": 31 * 16, "2.bias": 7, "2.weight": 7 * 31}
    expected = [(f"{name}.momentum_buffer", size) for name, size in sizes.items()]
    assert run("owned states", tmp_path) == [f"{expected}\n"] * 2


@pytest.mark.parametrize("case", ["other models", "other formats"])
def test_ranks_that_watch_something_else_are_told(case: str, tmp_path: Path) -> None:
    says = "watch: the ranks watch other layers, or for other formats or roles; give ranks='alone'\n"
    assert run(case, tmp_path) == [says] * 2


def test_emulated_ranks_send_and_sum_in_the_format_of_the_weight_gradients(tmp_path: Path) -> None:
    says = "The gradients of 2 ranks were sent in FP16, and their sum was rounded once.\n"
    assert all(
        text.startswith("1 step under fp16_mixed: ") and text.endswith(says) for text in run("emulated", tmp_path)
    )

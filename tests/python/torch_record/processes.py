"""Two processes that train together over gloo: DistributedDataParallel and fully_shard, watched and emulated.

usage, as the record starts it: processes.py GROUP RANK SIZE FOLDER
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import torch_record  # noqa: F401, tables of the tests on the path

import torch
import torch.distributed as dist

import ranks
import recipe_ranks
import sharded_ranks
from rank_end import end_rank
from rank_processes import run_ranks
from torch_record.doors import files_of, of_emulation, of_model
from torch_record.values import plain

SIZE = 2


def watched(rank: int, folder: Path) -> dict[str, Any]:
    """The trainings of test_watch_ranks.py."""
    share = ranks.SAMPLES // SIZE
    found = {}
    for name, case in ranks.CASES.items():
        own = folder / name.replace(" ", "_")
        own.mkdir(exist_ok=True)
        result = case(rank, slice(rank * share, (rank + 1) * share), own)
        counts = ranks.blocks_of(result) if name.endswith("blocks") else ranks.histograms_of(result)
        dist.barrier()
        found[name] = {"text": result.verdict, "counts": counts, "files": files_of(own)}
    return found


def emulated(rank: int, _folder: Path) -> dict[str, Any]:
    """DistributedDataParallel, then the trainings of test_emulated_shards.py."""
    model = torch.nn.parallel.DistributedDataParallel(ranks.network())
    found = {"ddp": {**of_emulation(ranks.emulated(rank, model, 2)), **of_model(model)}}
    for name, case in sharded_ranks.CASES.items():
        trained = sharded_ranks.train_sharded(case, rank)
        found[name] = {"losses": trained.losses, "tensors": trained.tensors, **of_emulation(trained.emulation)}
    return found


def recipes(rank: int, _folder: Path) -> dict[str, Any]:
    """The trainings of test_recipe_ranks.py."""
    pairs = [(wrapper, recipe) for wrapper in ("ddp", "fsdp") for recipe in ("mxfp8", "fp8_current", "fp8_delayed")]
    return {f"{recipe}, {wrapper}": recipe_ranks.trained(recipe, wrapper, rank, SIZE) for wrapper, recipe in pairs}


GROUPS: dict[str, Callable[[int, Path], dict[str, Any]]] = {
    "watched": watched, "emulated": emulated, "recipes": recipes
}  # fmt: skip


def together(group: str) -> dict[str, Any]:
    """Records of each rank."""
    with tempfile.TemporaryDirectory() as name:
        output = run_ranks(str(Path(__file__).resolve()), group, Path(name), SIZE)
        found = {f"rank {rank}": json.loads((Path(name) / f"{rank}.json").read_text()) for rank in range(SIZE)}
    return {**found, "output": output}


def rank_cases() -> dict[str, Callable[[], dict[str, Any]]]:
    return {f"ranks/{group}": partial(together, group) for group in GROUPS} if dist.is_available() else {}


def main(arguments: list[str]) -> None:
    group, rank, folder = arguments[0], int(arguments[1]), Path(arguments[3])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=SIZE)
    (folder / f"{rank}.json").write_text(json.dumps(plain(GROUPS[group](rank, folder))))
    dist.barrier()
    end_rank()


if __name__ == "__main__":
    main(sys.argv[1:])

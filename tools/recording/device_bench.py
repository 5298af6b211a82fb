"""Timings of a GPU for docs/dev/gpu.md, from experiments/recorded/bench-DEVICE.json.

`bench` in it is what `halfscope bench --device cuda --json` prints, `amp` what tools/bench_amp.py writes.
"""

from __future__ import annotations

from pathlib import Path

from halfscope.results.json_files import read_json

HEAD = ("`halfscope bench --device cuda`", "figure", "beside")
STEPS = ("ms a step", "PyTorch", "cuBLAS's products", "products in the model's order")


def device_bench(folder: Path, device: str) -> str:
    """Its driver and day, the kernels, and steps beside PyTorch's.

    folder: experiments/recorded.
    """
    found = read_json(folder / f"bench-{device}.json")
    about = f"{found['device']}, driver {found['driver']}, CUDA {found['cuda']}, {found['date']}:"
    cases = [_case(case) for case in found["bench"]["cases"]]
    beside = (
        f"A step beside PyTorch {found['amp']['torch']} with autocast and `GradScaler` (`tools/bench_amp.py`). "
        'The last column has the emulation\'s bits.\n"Watched" makes a histogram of every tensor: '
        "here by the trackers, in PyTorch by hooks and `torch.histc`."
    )
    steps = [row for network in found["amp"]["networks"] for row in _steps(network)]
    return "\n\n".join((about, _table(HEAD, cases), beside, _table(STEPS, steps)))


def _case(case: dict) -> tuple[str, str, str]:
    figure = "-" if case["value"] is None else f"{case['value']:.4g} {case['unit']}"
    beside = "" if case["ratio"] is None else f"{case['ratio']:.2f} of {case['against']}"
    return f"`{case['name']}`", figure, beside


def _steps(network: dict) -> list[tuple[str, ...]]:
    """Unwatched and watched."""
    name, ours = f"`{network['name']}`, batch {network['sizes']['batch']}", network["halfscope"]
    times = (
        (name, network["torch"]["plain"], ours["cublas"], ours["plain"]),
        (f"{name}, watched", network["torch"]["watched"], ours["cublas watched"], ours["watched"]),
    )
    return [(label, *(f"{time['ms']:.3g}" for time in own)) for label, *own in times]


def _table(head: tuple[str, ...], rows: list) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))

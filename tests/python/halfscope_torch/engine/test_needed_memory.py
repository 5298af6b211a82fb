"""Work that the machine has no memory for is refused before it begins, and only then."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn

from halfscope.torch import check, diagnose, emulate
from halfscope.torch.tensors import host_memory
from peak_memory import peak_of, weights_of

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
Work = Callable[[], object]


def doors(name: str) -> tuple[nn.Module, dict[str, Work]]:
    """A model that is nearly all weights, and the doors that hold copies of them. name: of the optimizer."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(300, 300, bias=False) for _ in range(5)))
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3)
    x = torch.randn(1, 300)

    def loss() -> torch.Tensor:
        return model(x).square().mean()

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        result = loss()
        result.backward()
        optimizer.step()
        return result

    step()
    optimizer.zero_grad()

    def emulated(*steps: int) -> Work:
        def work() -> None:
            with emulate(model, "fp16_mixed", optimizer=optimizer, compare_steps=steps, restarts=False):
                step()

        return work

    return model, {
        "diagnose": lambda: diagnose(model, loss),
        "diagnose, a step": lambda: diagnose(model, step, optimizer=optimizer),
        "diagnose, quick": lambda: diagnose(model, step, optimizer=optimizer, quick=True),
        "check": lambda: check(model, loss),
        "emulate": emulated(),
        "emulate, compared": emulated(1),
    }


def asked(work: Work, monkeypatch: pytest.MonkeyPatch) -> tuple[float, str]:
    """Bytes that a door wants free, to three digits, and its refusal."""
    with monkeypatch.context() as changed:
        changed.setattr(host_memory, "free_bytes", lambda: 0)
        with pytest.raises(MemoryError) as refused:
            work()
    text = str(refused.value)
    found = re.search(r"needs ([0-9.e-]+) GB or more", text)
    assert found is not None, text
    return 1e9 * float(found[1]), text


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize(
    "door", ["diagnose", "diagnose, a step", "diagnose, quick", "check", "emulate", "emulate, compared"]
)
def test_no_door_asks_for_more_than_it_takes_nor_for_less_than_half(
    door: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, works = doors(optimizer)
    wanted, text = asked(works[door], monkeypatch)
    taken = peak_of(works[door])
    assert weights_of(model) < wanted <= 1.005 * taken <= 2 * wanted, (
        wanted / weights_of(model),
        taken / weights_of(model),
    )
    assert text.startswith(f"{door.partition(',')[0]}: needs ") and "\n" not in text


@pytest.mark.parametrize(
    ("door", "says"),
    [
        ("diagnose", 'look at one block: halfscope.torch.capture(model, NAME, "dump.safetensors") in the training'),
        ("emulate", "emulate one block: halfscope.torch.load_block(CHECKPOINT, NAME)"),
        ("emulate, compared", "give compare_steps=()"),
    ],
)
def test_a_refusal_says_what_to_type(door: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "free_bytes", lambda: 1000)
    with pytest.raises(MemoryError) as refused:
        doors("SGD")[1][door]()
    assert says in str(refused.value) and "and 1e-06 GB are free; " in str(refused.value)


def test_free_memory_is_that_of_the_machine_or_of_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr(host_memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(host_memory, "_GROUP", tmp_path)
    assert host_memory.free_bytes() is None
    meminfo.write_text("MemTotal:        9000 kB\nMemAvailable:    5000 kB\n")
    assert host_memory.free_bytes() == 5000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert host_memory.free_bytes() == 5000 * 1024
    (tmp_path / "memory.max").write_text("3000\n")
    assert host_memory.free_bytes() == 2000


def test_tensors_elsewhere_need_no_memory_of_the_host() -> None:
    assert host_memory.bytes_on_host([torch.empty(4), torch.empty(10, device="meta")]) == 16

"""The seam of devices: an emulation asks one object for rounding, products, sums and counts, and nothing else."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import halfscope
from halfscope import _core
from halfscope.torch import diagnose, emulate
from halfscope.torch.device import arithmetic
from halfscope.torch.device.arithmetic import Host, device_of
from halfscope.torch.private import without_modes
from halfscope.torch.tensors.elements import address_of_floats
from recording.source_tree import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

FOLDER = ROOT / "lib" / "python" / "halfscope" / "torch"
ROOMS = ("emulate", "findings", "diagnose", "watch")
# Arithmetic of the compiled module, and what brings a tensor to the host.
OF_THE_SEAM = {"cpu", "count_floats", "gather_matmul", "lost_updates", "matmul", "round", "sum"}
MODULES = ("halfscope", "_core")


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines of calls of `tensor.cpu()`, and of the compiled module's arithmetic, by whatever name it is imported."""
    imported = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("halfscope", "halfscope._core")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Attribute):
            of_module = isinstance(function.value, ast.Name) and function.value.id in MODULES
            if function.attr == "cpu" or (of_module and function.attr in OF_THE_SEAM):
                yield node.lineno, function.attr
        elif isinstance(function, ast.Name) and imported.get(function.id) in OF_THE_SEAM:
            yield node.lineno, function.id


def test_no_room_does_arithmetic_of_its_own() -> None:
    found = {
        f"{path.relative_to(FOLDER)}:{line} {name}"
        for room in ROOMS
        for path in (FOLDER / room).rglob("*.py")
        for line, name in calls(ast.parse(path.read_text()))
    }
    assert not found


@pytest.mark.parametrize(
    "source",
    ["x.detach().cpu()", "import halfscope\nhalfscope.round(x, 'fp16')", "from halfscope import _core\n_core.sum(x, 0)",
     "from halfscope import lost_updates as lost\nlost(a, b, 'fp16')",
     "from halfscope._core import count_floats\ncount_floats([])"],
)  # fmt: skip
def test_the_check_finds_arithmetic(source: str) -> None:
    assert list(calls(ast.parse(source)))


class Elsewhere(Host):
    """A device whose memory is not the compiled module's: it sees copies alone, and counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def near(self, tensor: torch.Tensor) -> torch.Tensor:
        with without_modes():
            return tensor.clone()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name != "asked":
            self.asked[name] += 1
        return super().__getattribute__(name)


class Network(nn.Module):
    """Products, a convolution with groups, a norm, attention and a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Conv2d(2, 4, 3, padding=1, stride=2, groups=2)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.norm, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 2, batch_first=True)
        self.last = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.up(torch.relu(self.image(x))).flatten(2).unfold(2, 16, 16).flatten(1, 2))
        y, _ = self.attention(y, y, y)
        return self.last(y).square().mean()


SETTINGS: dict[str, dict[str, Any]] = {
    "fp16": {"order": "fp16_sequential"},
    "fp16_mixed": {"floor": True, "order": "fp32_chunked(4)"},
    "bf16/stochastic": {"every": 1},
    "mxfp8": {},
}


def trained(policy: str) -> tuple[Any, ...]:
    """Weights, gradients and counts of two steps, and a diagnosis."""
    torch.manual_seed(0)
    model, x = Network(), torch.randn(2, 2, 8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.01)
    with emulate(model, policy, optimizer=optimizer, zeros=True, **SETTINGS[policy]) as emulated:
        for _ in range(2):
            optimizer.zero_grad()
            model(x).backward()
            optimizer.step()
    counts = {key: vars(total) for key, total in emulated.casts().items()}
    words = str(diagnose(model, lambda: model(x), policy)) if policy != "bf16/stochastic" else ""
    return (
        [p.detach() for p in model.parameters()],
        [p.grad for p in model.parameters()],
        counts,
        str(emulated.zeros()),
        words,
    )


@pytest.mark.parametrize("policy", SETTINGS)
def test_another_device_has_the_same_bits_and_is_asked_for_everything(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, gradients, *expected = trained(policy)
    device = Elsewhere()
    monkeypatch.setitem(arithmetic.devices, "cpu", device)
    found_weights, found_gradients, *found = trained(policy)
    assert all(map(torch.equal, found_weights, weights)) and all(map(torch.equal, found_gradients, gradients))
    assert found == expected
    assert device.asked["cast"] > 50 and device.asked["near"] >= device.asked["cast"]


@pytest.mark.parametrize("policy", SETTINGS)
def test_without_the_seam_the_compiled_module_computes_nothing(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the compiled module refuse where the device's object has not called them."""
    device, depth = Elsewhere(), [0]

    def entered(function: Any) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            depth[0] += 1
            try:
                return function(*arguments, **options)
            finally:
                depth[0] -= 1

        return run

    def guarded(function: Any) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            assert depth[0], f"{function.__name__} called beside the seam"
            return function(*arguments, **options)

        return run

    for name in ("round", "cast", "cast_blocks", "matmul", "gather_matmul", "sum", "histogram", "updates", "checksum"):
        monkeypatch.setattr(device, name, entered(getattr(device, name)))
    for module, name in (
        (halfscope, "round"),
        (halfscope, "lost_updates"),
        (_core, "matmul"),
        (_core, "gather_matmul"),
        (_core, "sum"),
    ):
        monkeypatch.setattr(module, name, guarded(getattr(module, name)))
    monkeypatch.setitem(arithmetic.devices, "cpu", device)
    trained(policy)


def test_a_tensor_of_an_unknown_device_goes_through_the_host() -> None:
    class Tensor:
        device = torch.device("meta")

    assert type(device_of(Tensor())) is arithmetic.ThroughHost  # type: ignore[arg-type]
    assert type(device_of(torch.ones(1))) is Host


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_the_compiled_module_is_given_no_other_type(kind: torch.dtype) -> None:
    """It would write 4 bytes for each element of 2."""
    assert address_of_floats(torch.zeros(3)) != 0
    with pytest.raises(TypeError, match=f"{kind} in the place of torch.float32"):
        address_of_floats(torch.zeros(3, dtype=kind))
    with pytest.raises(TypeError, match="in the place of"):
        device_of(torch.zeros(1)).cast(_core.Cast("fp16", "activation"), torch.zeros(3, dtype=kind), "x", {})

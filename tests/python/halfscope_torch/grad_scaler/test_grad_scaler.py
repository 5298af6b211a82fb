"""halfscope.torch.GradScaler beside PyTorch's own, and every loss scaler in a training."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope.torch import GradScaler, watch

DRIVING = [name for name, row in halfscope.list_scalers().iterrows() if row["replays"]]
OPTIMIZERS: dict[str, Callable] = {
    "sgd": partial(torch.optim.SGD, lr=0.05, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=0.01),
}


def pytorchs_own(**options: float) -> object:
    """torch.amp.GradScaler for the CPU, which PyTorch has since 2.3."""
    try:
        return torch.amp.GradScaler("cpu", **options)
    except AttributeError:
        pytest.skip("this PyTorch has no GradScaler for the CPU")


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 3))


def train(scaler: object, steps: int, optimizer: str = "sgd", clip: bool = False, model: object = None) -> dict:
    """Scales, and whether the weights moved, of each step, and the weights; every seventh loss is infinite, one NaN."""
    model = model or network()
    optimizing = OPTIMIZERS[optimizer](model.parameters())
    torch.manual_seed(1)
    scales, moved = [], []
    for step in range(steps):
        inputs = torch.randn(32, 12)
        before = model[0].weight.detach().clone()
        optimizing.zero_grad()
        loss = model(inputs).square().mean() * (math.inf if step % 7 == 3 else math.nan if step == 12 else 1e-3)
        scales.append(scaler.get_scale())
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizing)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        scaler.step(optimizing)
        scaler.update()
        moved.append(not torch.equal(before, model[0].weight))
    return {"scales": scales, "moved": moved, "weights": [p.detach().clone() for p in model.parameters()]}


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("factor", "interval"), [(2.0, 4), (2.0, 2000), (1.5, 3)])
def test_dynamic_is_pytorchs_own_bit_for_bit(optimizer: str, factor: float, interval: int, clip: bool) -> None:
    ours = GradScaler("dynamic", growth_factor=factor, growth_interval=interval)
    theirs = pytorchs_own(growth_factor=factor, growth_interval=interval)
    one, other = (train(scaler, 60, optimizer, clip) for scaler in (ours, theirs))
    assert one["scales"] == other["scales"] and len(set(one["scales"])) > 2
    assert one["moved"] == other["moved"] and 5 < one["moved"].count(False) < 30
    assert all(map(torch.equal, one["weights"], other["weights"]))
    assert (ours.get_scale(), ours.is_enabled()) == (theirs.get_scale(), True)


def step_of(model: torch.nn.Module, scaler: GradScaler, size: float) -> np.ndarray:
    """Scaled gradients, all together, after a backward pass of a loss of this size."""
    model.zero_grad()
    scaler.scale(model(torch.ones(4, 12)).square().mean() * size).backward()
    return np.concatenate([parameter.grad.numpy().ravel() for parameter in model.parameters()])


@pytest.mark.parametrize("name", [*DRIVING, 1024])
def test_every_scaler_is_told_of_the_gradients(name: str | float) -> None:
    """The scale goes where that of a LossScaler goes that is told by hand of all that there is."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler, by_hand = GradScaler(name), halfscope.LossScaler(name)
    scales = set()
    for step in range(40):
        assert scaler.get_scale() == by_hand.scale
        scales.add(by_hand.scale)
        scaled = step_of(model, scaler, 10.0 ** (step % 9 - 5) if step % 11 not in (5, 6) else math.inf)
        finite = bool(np.isfinite(scaled).all())
        stepped = []
        optimizer.step = lambda stepped=stepped: stepped.append(True)
        scaler.step(optimizer)
        told = {"finite": finite, "histogram": halfscope.Histogram(scaled)}
        if finite:
            told["max_abs"] = float(np.abs(scaled).max())
        try:
            skipped = by_hand.update(**told)
        except RuntimeError as error:  # its rule is to end the run
            with pytest.raises(RuntimeError, match=str(error)[:20]):
                scaler.update()
            break
        scaler.update()
        assert bool(stepped) == (not skipped)
    assert len(scales) > 1 or by_hand.needs == "none"


def test_gradients_are_unscaled_once_and_exactly() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler(2.0**10)
    scaled = step_of(model, scaler, 1.0)
    scaler.unscale_(optimizer)
    found = np.concatenate([parameter.grad.numpy().ravel() for parameter in model.parameters()])
    assert (found == scaled / 2.0**10).all()
    with pytest.raises(RuntimeError, match="already called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step: already called"):
        scaler.step(optimizer)
    scaler.update()
    with pytest.raises(RuntimeError, match="no optimizer was unscaled"):
        scaler.update()


def test_two_optimizers_are_told_of_together_and_skip_apart() -> None:
    good, bad = network(), network()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (good, bad)]
    scaler = GradScaler("popart")
    before = [model[0].weight.detach().clone() for model in (good, bad)]
    for model, size in ((good, 1e-6), (bad, 1e36)):
        step_of(model, scaler, size)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(good[0].weight, before[0]) and torch.equal(bad[0].weight, before[1])
    assert scaler.get_scale() == 2.0**15


def steps_of(optimizer: torch.optim.Optimizer) -> list[bool]:
    """Grows by one at each step that the optimizer takes."""
    taken: list[bool] = []
    own = optimizer.step
    optimizer.step = lambda *arguments, **options: (taken.append(True), own(*arguments, **options))[1]
    return taken


def replay(scaler: object, finite: np.ndarray) -> list[tuple[float, tuple[bool, ...]]]:
    """The scale after each update and the optimizers that stepped, by finite gradients (steps, optimizers)."""
    parameters = [torch.nn.Parameter(torch.ones(3)) for _ in range(finite.shape[1])]
    optimizers = [torch.optim.SGD([parameter], lr=0.0) for parameter in parameters]
    taken = [steps_of(optimizer) for optimizer in optimizers]
    seen = []
    for row in finite:
        before = [len(steps) for steps in taken]
        scaler.scale(torch.ones(()))  # from which PyTorch's has its scale
        for parameter, optimizer, holds in zip(parameters, optimizers, row, strict=True):
            parameter.grad = torch.tensor([1.0, 2.0, 3.0 if holds else math.inf])
            scaler.step(optimizer)
        scaler.update()
        stepped = tuple(len(steps) > had for steps, had in zip(taken, before, strict=True))
        seen.append((scaler.get_scale(), stepped))
    return seen


def told_of(finite: np.ndarray, **options: float) -> list[float]:
    """The scale after each step of a LossScaler that is told whether all optimizers' gradients are finite."""
    scaler, scales = halfscope.LossScaler("dynamic", **options), []
    for row in finite:
        scaler.update(finite=bool(row.all()))
        scales.append(scaler.scale)
    return scales


@pytest.mark.parametrize("optimizers", [1, 2, 3])
@pytest.mark.parametrize("interval", [1, 3, 7])
def test_several_optimizers_skip_and_scale_as_pytorchs(optimizers: int, interval: int) -> None:
    draw = np.random.default_rng([optimizers, interval])
    finite = draw.random((300, optimizers)) > np.repeat(draw.choice([0.02, 0.3, 0.9], 30), 10)[:, None] / optimizers
    options = {"growth_interval": interval}
    ours = replay(GradScaler("dynamic", **options), finite)
    assert [scale for scale, _ in ours] == told_of(finite, **options)
    assert [stepped for _, stepped in ours] == [tuple(map(bool, row)) for row in finite]
    assert ours == replay(pytorchs_own(**options), finite)


def test_one_infinite_optimizer_halves_once_and_stays_bitwise() -> None:
    scaler = GradScaler("dynamic")
    moves, stays = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    moves.grad, stays.grad = torch.ones(3), torch.tensor([1.0, math.inf, 1.0])
    optimizers = [torch.optim.SGD([parameter], lr=1.0) for parameter in (moves, stays)]
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 32768 and scaler.state_dict()["state"]["good_steps"] == 0
    assert moves[0] == 1 - 1 / 65536 and stays.tolist() == [1, 1, 1]


def test_a_scaler_for_each_loss_lowers_alone() -> None:
    scalers = [GradScaler("dynamic"), GradScaler("dynamic")]
    for scaler, value in zip(scalers, (math.inf, 1.0), strict=True):
        parameter = torch.nn.Parameter(torch.ones(1))
        parameter.grad = torch.tensor([value])
        scaler.step(torch.optim.SGD([parameter], lr=0.1))
        scaler.update()
    assert [scaler.get_scale() for scaler in scalers] == [32768, 65536]


@pytest.mark.parametrize(("unscales", "gradient"), [(True, 1.5), (False, 4096.5)])
def test_a_gradient_penalty_needs_the_inner_gradient_unscaled(unscales: bool, gradient: float) -> None:
    """Gradient of w^2 / 2 + |d/dw (w^2 / 2)| at w = 1/2: w + 1, or w + S if the penalty takes the scaled gradient."""
    scaler = GradScaler("dynamic", initial_scale=4096)
    w = torch.nn.Parameter(torch.tensor(0.5))
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss = w.square() / 2
    (inner,) = torch.autograd.grad(scaler.scale(loss), w, create_graph=True)
    penalty = (inner / scaler.get_scale() if unscales else inner).abs()
    scaler.scale(loss + penalty).backward()
    scaler.unscale_(optimizer)
    assert w.grad == gradient


@pytest.mark.parametrize("name", ["openseq2seq_logmax", "popart"])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("large", [0, 1, 2])
def test_the_largest_gradient_counts_wherever_it_is(name: str, apart: bool, large: int) -> None:
    parameters = [torch.nn.Parameter(torch.ones(5)) for _ in range(3)]
    for place, parameter in enumerate(parameters):
        parameter.grad = torch.full((5,), 9000.0 if place == large else 2.0**-10)
    optimizers = [torch.optim.SGD(some, lr=0.1) for some in ([[p] for p in parameters] if apart else [parameters])]
    scaler, by_hand = GradScaler(name), halfscope.LossScaler(name)
    by_hand.update(finite=True, max_abs=9000.0, histogram=halfscope.Histogram(np.float32([9000] * 5 + [2.0**-10] * 10)))
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == by_hand.scale


@pytest.mark.parametrize("name", ["dynamic", "headroom", "popart", 64])
def test_a_training_goes_on_from_the_state(name: str | float) -> None:
    model = network()
    whole = train(GradScaler(name), 20)["scales"]
    first = GradScaler(name)
    train(first, 20, model=model)
    second = GradScaler(name)
    second.load_state_dict(first.state_dict())
    assert second.get_scale() == first.get_scale() and second.state_dict() == first.state_dict()
    assert train(second, 20)["scales"] == train(first, 20)["scales"]
    assert len(set(whole)) > 1 or name == 64


def test_disabled_it_does_nothing() -> None:
    scaler = GradScaler("headroom", enabled=False)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.ones(2, 12)).sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1 and not scaler.is_enabled()
    loss.backward()
    before = model[0].weight.detach().clone()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model[0].weight) and scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_losses_of_any_form_and_type_are_scaled() -> None:
    scaler = GradScaler(2.0**20)
    assert scaler.scale([torch.ones(()), (torch.ones(2),)])[1][0].tolist() == [2.0**20] * 2
    assert list(scaler.scale(iter([torch.ones(())]))) == [2.0**20]
    assert torch.isfinite(scaler.scale(torch.ones((), dtype=torch.float16)))  # as PyTorch's: in FP32
    with pytest.raises(ValueError, match="give a tensor or an iterable of tensors, not int"):
        scaler.scale(3)


def test_sparse_and_missing_gradients() -> None:
    table, unused = torch.nn.Embedding(10, 4, sparse=True), torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*table.parameters(), unused], lr=1.0)
    before = table.weight.detach().clone()
    scaler = GradScaler("popart", initial_scale=1024)
    scaler.scale(table(torch.tensor([1, 3])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2048
    assert (before - table.weight.detach())[:, 0].tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0, 0]


def test_watch_sees_its_scale() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler("headroom", initial_scale=256)
    with watch(model, 1, optimizer=optimizer, scaler=scaler) as watched:
        for _ in range(3):
            step_of(model, scaler, 1e-3)
            scaler.step(optimizer)
            scaler.update()
    assert watched.trace()[0]["scale"] == 256 and watched.steps == 3


class Sharded(torch.Tensor):
    """As torch.distributed's DTensor."""

    def to_local(self) -> torch.Tensor:
        raise AssertionError


def unscale(make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    parameter = torch.nn.Parameter(
        torch.ones(3).half() if make(torch.ones(1)).dtype is torch.float16 else torch.ones(3)
    )
    parameter.grad = make(parameter.detach())
    GradScaler().unscale_(torch.optim.SGD([parameter], lr=0.1))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: GradScaler("layerwise"), ValueError, "layerwise scales inside the backward pass"),
        (lambda: GradScaler("dynamc"), ValueError, "did you mean 'dynamic'"),
        (lambda: GradScaler("headroom", growth_interval=3), ValueError, "growth_interval"),
        (lambda: GradScaler("popart").load_state_dict(GradScaler().state_dict()), ValueError, "of 'dynamic'; this"),
        (lambda: GradScaler().load_state_dict({}), ValueError, "give what state_dict"),
        (
            lambda: unscale(lambda p: torch.ones_like(p).half()),
            ValueError,
            "FP16 gradients, which unscaling would flush",
        ),
        (lambda: unscale(lambda p: torch.ones_like(p).as_subclass(Sharded)), ValueError, "sharded gradients"),
    ],
)
def test_a_clear_error(call: Callable, error: type, words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)

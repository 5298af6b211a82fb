"""Steps of a training, as `watch` and `emulate` are told of them: late losses, and passes that end in an error."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from halfscope.torch import emulate, watch
from halfscope.torch.steps.records import Records, Sinks
from halfscope.torch.steps.trainee import Trainee
from halfscope.torch.steps.training_steps import Tally, TrainingSteps

pytestmark = pytest.mark.torch


class Listening:
    """A listener that keeps the records, and the order of what it is told."""

    records_step = True

    def __init__(self, records: Records) -> None:
        self._records, self.kept, self.told = records, [], []

    def begin_step(self) -> None:
        self.told.append("begin")

    def before_update(self, place: int, has_closure: bool) -> None:
        self.told.append(f"before {place}")

    def after_update(self, place: int, skipped: bool) -> None:
        self.told.append(f"after {place}")

    def end_step(self, stepped: bool, record: dict[str, Any] | None) -> None:
        assert record is not None
        self.told.append("end" if stepped else "skipped")
        self.kept.append(record)
        self._records.add(record, None)

    def abandon_step(self) -> None:
        self.told.append("abandon")


def followed(model: Any, optimizers: list[Any], scaler: Any = None) -> tuple[TrainingSteps, Listening]:
    records = Records(Sinks(None, None))
    listening = Listening(records)
    steps = TrainingSteps(Trainee(model, optimizers, scaler), Tally(), records, listening)
    steps.follow_model()
    steps.start()
    return steps, listening


@pytest.mark.parametrize("seed", range(40))
def test_a_loss_is_of_the_step_under_way_once_a_forward_pass_has_begun(seed: int) -> None:
    chosen = random.Random(seed)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    steps, listening = followed(model, [optimizer])
    expected: list[float | None] = []
    loss, begun = None, False
    for number in range(60):
        event = chosen.choice(("forward", "evaluation", "step", "log", "log"))
        if event == "forward":
            model(torch.ones(1, 2))
            begun = True
        elif event == "evaluation":
            with torch.no_grad():
                model(torch.ones(1, 2))
        elif event == "step":
            optimizer.step()
            expected.append(loss)
            loss, begun = None, False
        else:
            steps.log(float(number))
            if not begun and expected and expected[-1] is None:
                expected[-1] = float(number)
            else:
                loss = float(number)
    assert [record["loss"] for record in listening.kept] == expected
    assert [record["step"] for record in listening.kept] == list(range(1, len(expected) + 1))


def test_a_step_of_two_optimizers_is_told_in_order() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in model]
    steps, listening = followed(model, optimizers)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    step = ["before 0", "after 0", "before 1", "after 1", "end", "begin"]
    assert listening.told == ["begin", *step, *step]
    steps.close()
    optimizers[1].step()
    assert listening.told == ["begin", *step, *step]


def test_a_scaler_ends_the_step_and_says_whether_it_was_taken() -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    _, listening = followed(model, [optimizer], scaler)
    for value in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(model(torch.full((1, 1), value)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert [(record["skipped"], record["scale"]) for record in listening.kept] == [
        (False, 4.0),
        (True, 4.0),
        (False, 2.0),
    ]


class Fragile(torch.nn.Module):
    """Raises in the middle of a forward pass whose input is negative."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        hidden = self.first(x)
        if bool((x < 0).any()):
            raise ValueError("negative")
        return self.second(hidden.relu())


def passes(seed: int) -> list[str]:
    """Passes of three steps: each has one or two that return, and some that raise."""
    chosen = random.Random(seed)
    found = []
    for _ in range(3):
        found += ["raises"] * chosen.randrange(3) + ["returns"] * chosen.randrange(1, 3) + ["step"]
    return found


def train(seed: int, raises: bool, door: Any) -> Any:
    """door: of a model and its optimizer; raises: whether the passes that raise are made."""
    torch.manual_seed(seed)
    model = Fragile()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = torch.rand(16, 8, 4)
    with door(model, optimizer) as found:
        for number, event in enumerate(passes(seed)):
            if event == "step":
                optimizer.step()
                optimizer.zero_grad()
            elif event == "returns":
                model(batches[number]).sum().backward()
            elif raises:
                with pytest.raises(ValueError, match="negative"):
                    model(-batches[number])
    return model, found


@pytest.mark.parametrize("seed", range(10))
def test_a_pass_that_raises_leaves_nothing_in_the_histograms_of_watch(seed: int) -> None:
    def door(model: Any, optimizer: Any) -> Any:
        return watch(model, 1, optimizer=optimizer)

    (_, with_errors), (_, without) = train(seed, True, door), train(seed, False, door)
    for role in ("activation", "activation_gradient", "weight_gradient"):
        found, wanted = with_errors.histograms(role), without.histograms(role)
        assert {name: each.record() for name, each in found.items()} == {
            name: each.record() for name, each in wanted.items()
        }
    assert with_errors.steps == 3


@pytest.mark.parametrize("seed", range(10))
def test_a_pass_that_raises_leaves_nothing_in_a_comparison(seed: int) -> None:
    """Nor do the random bits of the step know of it."""

    def door(model: Any, optimizer: Any) -> Any:
        return emulate(model, "fp16/stochastic", optimizer=optimizer, compare_steps=(1, 2, 3))

    (trained, with_errors), (wanted, without) = train(seed, True, door), train(seed, False, door)
    assert str(with_errors.compare_to()) == str(without.compare_to())
    for weight, other in zip(trained.parameters(), wanted.parameters()):
        assert torch.equal(weight, other)


def test_a_recomputed_pass_that_stops_early_abandons_nothing() -> None:
    """Checkpoints leave their modules by an exception, inside of the backward pass."""
    from torch.utils.checkpoint import checkpoint

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    _, listening = followed(model, [optimizer])
    for _ in range(3):
        checkpoint(model, torch.ones(1, 2, requires_grad=True), use_reentrant=False).sum().backward()
    assert "abandon" not in listening.told

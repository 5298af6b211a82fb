"""`emulate`: what it rounds, what it counts, which layers it blames, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import halfscope
from halfscope.torch import Emulation, GradScaler, emulate

pytestmark = pytest.mark.torch


def make_network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.ReLU(), torch.nn.Linear(24, 3))


def batches(steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(16, 12, generator=generator), torch.randint(3, (16,), generator=generator)) for _ in range(steps)
    ]


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int = 5, scaler: object = None) -> float:
    for inputs, labels in batches(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return loss.item()


def emulated_weights(policy: object, **options: object) -> list[torch.Tensor]:
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, policy, optimizer=optimizer, **options):
        train(model, optimizer)
    return [parameter.detach() for parameter in model.parameters()]


def test_a_layers_arithmetic_is_the_one_of_the_policy() -> None:
    """Forward and backward of a layer, written down with halfscope's own functions."""
    model = torch.nn.Sequential(torch.nn.Linear(12, 24))
    inputs = batches(1)[0][0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    with emulate(model, "fp16_mixed", optimizer=optimizer, order="fp16_fused"):
        outputs = model(inputs)
        (outputs * 0.37).sum().backward()
    x, w, b = (halfscope.round(t.detach(), "fp16") for t in (inputs, model[0].weight, model[0].bias))
    expected = halfscope.round(halfscope.matmul(x, w.t().contiguous(), order="fp16_fused") + b, "fp16")
    assert torch.equal(outputs, expected)
    gradient = halfscope.round(torch.full((16, 24), 0.37), "fp16")
    products = halfscope.matmul(gradient.t().contiguous(), x, order="fp16_fused")
    assert torch.equal(model[0].weight.grad, halfscope.round(products, "fp16"))
    sums = halfscope.sum(gradient, 0, order="fp32_chunked(256)")
    assert torch.equal(model[0].bias.grad, halfscope.round(sums, "fp16"))


def test_a_gradient_that_two_branches_share_is_rounded_before_and_after_its_sum() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        model[0].weight.fill_(1)
    x = torch.ones(1, 1)

    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = model[0]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.stem(x)
            return y * 1.0 + y * torch.full((1, 1), 1 / 3)

    branches = Branches()
    optimizer = torch.optim.SGD(branches.parameters(), lr=0)
    with emulate(branches, "fp16_mixed", optimizer=optimizer) as emulated:
        branches(x).sum().backward()
    third = torch.tensor(1 / 3).half().float()
    assert model[0].weight.grad.item() == (1 + third).half().item()
    assert emulated.casts()["activation_gradient", "stem"].elements == 2  # the first part, and the sum


def test_formats_differ_by_role() -> None:
    roles = {"activation": "bf16", "activation_gradient": "fp8_e5m2", "weight_gradient": "fp16"}
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    seen: dict[str, torch.Tensor] = {}
    model[0].register_forward_hook(lambda _m, _i, output: seen.update(output=output.detach().clone()))
    with emulate(model, roles, optimizer=optimizer) as emulated:
        train(model, optimizer, steps=1)
    assert torch.equal(seen["output"], halfscope.round(seen["output"], "bf16"))
    for parameter in model.parameters():
        assert torch.equal(parameter.grad, halfscope.round(parameter.grad, "fp16"))
    quantizers = {role: total.quantizer for (role, _), total in emulated.casts().items()}
    assert quantizers == roles


def test_weights_without_a_master_copy_stay_in_their_format_and_lose_updates() -> None:
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    with emulate(model, "fp16_no_master", optimizer=optimizer) as emulated:
        train(model, optimizer, steps=3)
    for parameter in model.parameters():
        assert torch.equal(parameter, parameter.half().float())
    assert emulated.lost_updates > 0.5
    first, why, *_ = emulated.verdict.splitlines()
    assert first == "keep an FP32 master copy"
    assert re.fullmatch(r"  Why: FP16 weights lost \d+\.\d % of the updates", why)
    assert str(emulated.report).count("FP32 master copy") == 1


def test_an_update_in_the_optimizers_format_is_rounded_operation_by_operation() -> None:
    """Momentum SGD in FP16: m = 0.9 m + g, then w = w - lr m, each product and sum rounded, and the constants."""
    weight = torch.nn.Parameter(torch.tensor([1.0, -0.3]))
    model = torch.nn.Module()
    model.weight = weight
    optimizer = torch.optim.SGD([weight], lr=0.003, momentum=0.9)

    def half(x: torch.Tensor) -> torch.Tensor:
        return x.half().float()

    w, m = half(weight.detach().clone()), None
    with emulate(model, "fp16_pure", optimizer=optimizer):
        for gradient in ([0.1, 0.7], [0.3, -0.2], [0.01, 1e-7]):
            weight.grad = torch.tensor(gradient)
            optimizer.step()
            g = torch.tensor(gradient)
            m = g if m is None else half(half(m * half(torch.tensor(0.9))) + g)
            w = half(w + half(m * half(torch.tensor(-0.003))))
    assert torch.equal(weight.detach(), w)


def test_stochastic_rounding_is_a_function_of_the_seed() -> None:
    first, again, other = (emulated_weights("fp16/stochastic", seed=seed) for seed in (3, 3, 4))
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_threads_change_no_bit() -> None:
    threads = torch.get_num_threads()
    results = []
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(emulated_weights("fp16_mixed"))
    torch.set_num_threads(threads)
    assert all(map(torch.equal, *results))


def test_a_rule_keeps_layers_in_another_format() -> None:
    assert all(map(torch.equal, emulated_weights("fp8_e4m3", exceptions={"*": "fp16"}), emulated_weights("fp16")))
    ruled = emulated_weights("fp8_e4m3", exceptions={"0": {"activation": "fp32", "weight": "fp32"}, "2": "fp16"})
    assert not all(map(torch.equal, ruled, emulated_weights("fp8_e4m3")))


def test_an_overflow_is_reported_once_with_its_place() -> None:
    model = make_network()
    with torch.no_grad():
        model[2].weight.fill_(3e4)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), GradScaler("dynamic")
    with emulate(model, "fp16_mixed", optimizer=optimizer, scaler=scaler) as emulated:
        train(model, optimizer, 2, scaler)
    assert emulated.first_overflow[:3] == (1, "2", "activation")
    assert "First overflow: step 1, activation 2, " in emulated.verdict
    assert emulated.steps == 2  # counted by the scaler's updates, skipped ones too


class Planted(torch.nn.Module):
    """A layer that leaves FP16's range on its way, and comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight) * 1e6 / 1e6


def twenty_layers() -> torch.nn.Sequential:
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = [torch.nn.Linear(8, 8) for _ in range(20)]
    layers[13] = Planted()
    return torch.nn.Sequential(*layers)


def test_bisection_finds_a_planted_layer_and_comparison_ranks_it_first() -> None:
    model = twenty_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(16, 8)

    def final_loss() -> float:
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(inputs) ** 2).mean()
            loss.backward()
            optimizer.step()
        return loss.item()

    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        final_loss()
    ranked = emulated.compare_to("fp32", steps=[1]).ranked()
    assert (ranked[0].role, ranked[0].tensor) == ("activation", "13.mul")
    seen: list[bool] = []

    def accepts() -> bool:
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
        seen.append(final_loss() < 1e3)
        return seen[-1]

    found = emulated.bisect(accepts)
    assert found.layers == ("13",)
    assert found.exceptions == {"13": "fp32"}
    assert found.runs == len(seen) <= 12
    assert str(found).startswith(
        "Keep 13 in FP32: emulate(..., exceptions={'13': 'fp32'}).\nWhy: with nothing in FP32 "
    )
    assert f"\nHow sure: {found.runs} trainings from the same start; it cannot be left out" in str(found)


def test_bisection_says_where_formats_are_not_to_blame() -> None:
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        train(model, optimizer, 1)
    words = "Keep nothing in FP32.\nWhy: the result is accepted so.\nHow sure: 1 training from the same start."
    assert str(emulated.bisect(lambda: True)) == words
    with pytest.raises(ValueError, match="with all 2 candidates in FP32 the result is refused too"):
        emulated.bisect(lambda: False)
    with pytest.raises(ValueError, match="no module 'head'; the layers are 0, 2"):
        emulated.bisect(lambda: True, layers=["head"])


def test_a_comparison_is_with_fp32_from_the_same_weights() -> None:
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (inputs, labels), _ = batches(2)
    exact = torch.nn.functional.cross_entropy(model(inputs), labels)
    gradients = torch.autograd.grad(exact, list(model.parameters()))
    with emulate(model, "fp16_mixed", optimizer=optimizer, compare_steps=[1]) as emulated:
        train(model, optimizer, 1)
    found = {(d.role, d.tensor): d for d in emulated.compare_to("fp32").ranked()}
    for (name, parameter), reference in zip(model.named_parameters(), gradients):
        difference = found["weight_gradient", name]
        expected = float((parameter.grad - reference).norm() / reference.norm())
        assert difference.relative_error == pytest.approx(expected, rel=1e-3)
        assert 0.99 < difference.cosine <= 1
    assert {("activation", "0"), ("activation", "2"), ("activation_gradient", "0")} <= set(found)
    with pytest.raises(ValueError, match=r"step 7 was not compared, only \[1\]"):
        emulated.compare_to("fp32", steps=[7])
    with pytest.raises(ValueError, match="steps are compared with 'fp32'"):
        emulated.compare_to("bf16")


def test_a_probe_measures_under_the_policy() -> None:
    model = make_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    inputs, _ = batches(1)[0]
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        probes = emulated.probe_scales(lambda: (model(inputs) ** 2).mean() * 1e-7, [1, 2**12, 2**50])
    assert [probe.finite for probe in probes] == [True, True, False]
    assert probes[0].error > 0.5 > 1e-2 > probes[1].error
    assert not emulated.casts()


def two_models() -> torch.nn.Module:
    return torch.nn.DataParallel(make_network())


BAD = {
    "unknown policy 'fp61_mixed'": lambda m, o: emulate(m, "fp61_mixed", optimizer=o),
    "policy: no setting activations; give some of policy, weight, activation": lambda m, o: emulate(
        m, {"activations": "fp16"}, optimizer=o
    ),
    "unknown format": lambda m, o: emulate(m, {"activation": "fp61"}, optimizer=o),
    "exception 'head*' matches no module; the modules are 0, 1, 2": lambda m, o: emulate(
        m, "fp16_mixed", optimizer=o, exceptions={"head*": "fp32"}
    ),
    "order = 'fp32_kahan'": lambda m, o: emulate(m, "fp16_mixed", optimizer=o, order="fp32_kahan"),
    "every=0; give 1 or more steps": lambda m, o: emulate(m, "fp16_mixed", optimizer=o, every=0),
    "give an optimizer of PyTorch": lambda m, o: emulate(m, "fp16_mixed", optimizer=3),
    "policy=3; give a name, a format, or a mapping": lambda m, o: emulate(m, 3, optimizer=o),
    "model=3; give a module of PyTorch": lambda m, o: emulate(3, "fp16_mixed", optimizer=o),
    "the model is DataParallel, whose threads are not followed": lambda m, o: emulate(
        two_models(), "fp16_mixed", optimizer=o
    ),
    "the model is a script": lambda m, o: emulate(torch.jit.script(m), "fp16_mixed", optimizer=o),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_requests_get_one_line(message: str) -> None:
    model = make_network()
    request: Callable = BAD[message]
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as refused:
        request(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert "\n" not in str(refused.value)


class FirstTwo(torch.nn.Module):
    """A model of many weights that uses two of them."""

    def __init__(self, weights: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(weights))

    def forward(self) -> torch.Tensor:
        return self.weight[:2] * 2


def step_of_first_two(weights: int, **options: object) -> tuple[Emulation, Callable[[], bool]]:
    model = FirstTwo(weights)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)

    def step() -> bool:
        model().sum().backward()
        optimizer.step()
        return True

    with emulate(model, "bf16", optimizer=optimizer, **options) as emulated:
        step()
    return emulated, step


@pytest.mark.parametrize(
    ("weights", "given", "compared"),
    [(10_000_000, None, True), (10_000_001, None, False), (10_000_001, (1,), True), (1, (), False)],
)
def test_a_large_model_is_compared_when_asked(weights: int, given: tuple[int, ...] | None, compared: bool) -> None:
    emulated, _ = step_of_first_two(weights, **({} if given is None else {"compare_steps": given}))
    if compared:
        assert emulated.compare_to().steps == [1] and "compare_steps" not in emulated.report.about
        return
    with pytest.raises(ValueError, match=r"no step is compared; give emulate\(..., compare_steps=\[1\]\)"):
        emulated.compare_to()
    says = (
        "Not done for 10 million weights unless asked: compare_steps=[1] compares step 1 with FP32, restarts=True "
        "keeps the copy that `bisect` begins with."
    )
    assert emulated.report.about == (says if weights > 10_000_000 else "")


@pytest.mark.parametrize(
    ("weights", "given", "restarts"),
    [(10_000_000, None, True), (10_000_001, None, False), (10_000_001, True, True), (1, False, False)],
)
def test_the_state_at_entry_of_a_large_model_is_kept_when_asked(
    weights: int, given: bool | None, restarts: bool
) -> None:
    emulated, step = step_of_first_two(weights, restarts=given, compare_steps=[1])
    if restarts:
        assert emulated.bisect(step).layers == () and emulated.report.about == ""
        return
    with pytest.raises(
        RuntimeError, match=r"no copy of the state at entry was kept; give emulate\(..., restarts=True\)"
    ):
        emulated.bisect(step)
    says = "Not done for 10 million weights unless asked: restarts=True keeps the copy that `bisect` begins with."
    assert emulated.report.about == (says if weights > 10_000_000 else "")

"""An emulation in FP32 changes no bit, and every emulation leaves a training as it found it."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from emulated_mode import difference
from foreign_networks import OF_OTHERS, OF_PYTORCH
from halfscope.torch import GradScaler, emulate
from halfscope.torch.steps import training_steps as training_module
from torch_networks import NETWORKS, Sizes

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

STEPS = 50
SIZES = Sizes(2, 32, vocabulary=64, sequence_length=8, embedding_size=16, hidden_size=16)
FOREIGN = {**OF_PYTORCH, **{name: OF_OTHERS[name] for name in ("ssd", "faster_rcnn", "bert", "gpt2")}}


def training(name: str) -> tuple[nn.Module, Callable[[], torch.Tensor], torch.optim.Optimizer]:
    torch.manual_seed(0)
    if name in NETWORKS:
        made = NETWORKS[name](SIZES)
        return made.module, made.loss, made.optimizer()
    if name in OF_OTHERS:
        pytest.importorskip("transformers" if name in ("bert", "gpt2") else "torchvision")
    module, loss = FOREIGN[name]()
    return module, loss, torch.optim.Adam(module.parameters(), 1e-3)


def trained(name: str, policy: str | None) -> list[torch.Tensor]:
    """Losses, weights, buffers and the optimizer's state after 50 steps."""
    module, loss_of, optimizer = training(name)
    losses = []

    def steps() -> None:
        for _ in range(STEPS):
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())

    if policy is None:
        steps()
    else:
        with emulate(module, policy, optimizer=optimizer):
            steps()
    state = [value for held in optimizer.state.values() for value in held.values() if isinstance(value, torch.Tensor)]
    return [*losses, *(tensor.detach() for tensor in module.state_dict().values()), *state]


@pytest.mark.parametrize("name", [*NETWORKS, *(f"foreign {name}" for name in FOREIGN if name not in NETWORKS)])
def test_fp32_changes_no_bit(name: str) -> None:
    name = name.removeprefix("foreign ")
    plain, emulated = trained(name, None), trained(name, "fp32")
    assert len(plain) == len(emulated) > STEPS
    for one, other in zip(plain, emulated):
        assert difference(one, other) == ""


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3))
        self.body[1].eval()
        self.body[0].register_forward_hook(lambda *_: None)
        self.body[3].weight.register_hook(lambda gradient: None)
        self.fails = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fails == "forward":
            raise KeyError("in forward")
        output = self.body(x)
        if self.fails == "backward":
            output.register_hook(fail)
        return output


def fail(_gradient: torch.Tensor) -> None:
    raise KeyError("in backward")


def flags() -> dict[str, Any]:
    cuda, mha = torch.backends.cuda, getattr(torch.backends, "mha", None)
    names = ("flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled")
    found = {name: getattr(cuda, name)() for name in names if hasattr(cuda, name)}
    return {
        **found, "mkldnn": torch._C._get_mkldnn_enabled(), "cudnn": torch._C._get_cudnn_enabled(),
        "mha": mha.get_fastpath_enabled() if mha is not None and hasattr(mha, "get_fastpath_enabled") else None,
        "backward": torch.autograd.backward, "grad": torch.autograd.grad, "autocast": torch.autocast.__enter__,
        "left": torch.autocast.__exit__, "grad mode": torch.is_grad_enabled(), "threads": torch.get_num_threads(),
    }  # fmt: skip


def state_of(model: Model, optimizer: torch.optim.Optimizer, scaler: Any) -> dict[str, Any]:
    """All that an emulation may touch, beside tensors' numbers."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_always_called",
             "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs")  # fmt: skip
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    steps = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    return {
        "flags": flags(),
        "hooks": {(name, kind): list(getattr(module, kind, {}).items())
                  for name, module in model.named_modules() for kind in hooks},
        "tensors": {name: list((tensor._backward_hooks or {}).items()) for name, tensor in model.named_parameters()},
        "modes": [module.training for module in model.modules()],
        "attributes": [sorted(module.__dict__) for module in model.modules()],
        "keys": list(model.state_dict()),
        "optimizer": (groups, dict(optimizer.defaults), sorted(optimizer.state_dict())),
        "steps": [list(getattr(optimizer, name, {})) for name in steps],
        "methods": ("step" in optimizer.__dict__, "update" in vars(scaler)),
        "modes of dispatch": getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)(),
    }  # fmt: skip


def make(foreach: bool | None = True) -> tuple[Model, torch.optim.Optimizer, GradScaler]:
    torch.manual_seed(0)
    model = Model()
    return model, torch.optim.Adam(model.parameters(), 1e-3, foreach=foreach), GradScaler("dynamic")


def one_step(model: Model, optimizer: torch.optim.Optimizer, scaler: GradScaler) -> None:
    loss = model(torch.randn(4, 6)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


POLICIES = ("fp32", "fp16_mixed", "fp16_pure", "bf16", "autocast_cuda")


@pytest.mark.parametrize("policy", POLICIES)
def test_after_the_block_everything_is_as_before(policy: str) -> None:
    model, optimizer, scaler = make()
    one_step(model, optimizer, scaler)
    before = state_of(model, optimizer, scaler)
    with emulate(model, policy, optimizer=optimizer, scaler=scaler):
        one_step(model, optimizer, scaler)
        with torch.autocast("cpu", torch.bfloat16):
            model(torch.randn(4, 6))
    assert state_of(model, optimizer, scaler) == before


@pytest.mark.parametrize("where", ["block", "forward", "backward", "autocast"])
@pytest.mark.parametrize("policy", ["fp32", "fp16_pure"])
def test_after_an_exception_too(policy: str, where: str) -> None:
    model, optimizer, scaler = make()
    one_step(model, optimizer, scaler)
    before = state_of(model, optimizer, scaler)
    with pytest.raises(KeyError), emulate(model, policy, optimizer=optimizer, scaler=scaler):
        one_step(model, optimizer, scaler)
        if where == "block":
            raise KeyError("in the block")
        if where == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                raise KeyError("in autocast")
        model.fails = where
        one_step(model, optimizer, scaler)
    assert state_of(model, optimizer, scaler) == before
    model.fails = ""
    fresh = GradScaler("dynamic")
    with emulate(model, policy, optimizer=optimizer, scaler=fresh) as emulated:
        one_step(model, optimizer, fresh)
    assert emulated.steps == 1


def test_after_an_exception_in_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer, scaler = make()
    before = state_of(model, optimizer, scaler)
    emulation = emulate(model, "fp16_pure", optimizer=optimizer, scaler=scaler)
    with monkeypatch.context() as patched:
        patched.setattr(optimizer, "register_step_pre_hook", _refuses, raising=False)
        patched.setattr(training_module, "StepHooks", _refuses)
        with pytest.raises(KeyError, match="no hooks"):
            emulation.__enter__()
    assert state_of(model, optimizer, scaler) == before


def _refuses(*_: Any) -> None:
    raise KeyError("no hooks")


COPIES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.save": lambda model: reloaded(model),
}


def reloaded(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_the_model_is_not_emulated(how: str) -> None:
    model, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), torch.randn(4, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    expected = model(x)
    with emulate(model, "fp8_e5m2", optimizer=optimizer):
        rounded = model(x)
        copied = COPIES[how](model)
        inside = copied(x)
        inside.square().mean().backward()
    assert torch.equal(inside, expected) and torch.equal(copied(x), expected)
    assert not torch.equal(rounded, expected)
    assert list(copied.state_dict()) == list(model.state_dict())


def test_entering_twice_and_nesting_are_errors() -> None:
    model, optimizer, scaler = make()
    before = state_of(model, optimizer, scaler)
    other = nn.Linear(6, 3)
    with emulate(model, "bf16", optimizer=optimizer, scaler=scaler) as emulated:
        with pytest.raises(RuntimeError, match="entered already"):
            emulated.__enter__()
        with pytest.raises(RuntimeError, match="inside of another"):
            emulate(other, "bf16", optimizer=torch.optim.SGD(other.parameters(), 0.1)).__enter__()
        one_step(model, optimizer, scaler)
    assert emulated.steps == 1
    assert state_of(model, optimizer, scaler) == before

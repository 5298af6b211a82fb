"""A block that was captured in a step of the whole model, loaded alone: it has the whole model's bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from block_models import captured, gpt2, llama, loss_of, made, t5, tokens
from halfscope.torch import LoadedBlock, capture, load_block
from halfscope.torch.one_block.block_dump import read_dump

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

BLOCKS = {
    "llama": (llama, "model.layers.1"),
    "llama, eager attention": (partial(llama, attn_implementation="eager"), "model.layers.2"),
    "llama, tied embedding": (partial(llama, tie_word_embeddings=True), "lm_head"),
    "llama, angles": (llama, "model.rotary_emb"),
    "llama, one part": (llama, "model.layers.0.mlp.down_proj"),
    "gpt2": (gpt2, "transformer.h.1"),
    "t5 encoder": (t5, "encoder.block.0"),
    "t5 decoder": (t5, "decoder.block.1"),
}


class Pair(NamedTuple):
    first: object
    last: torch.Tensor


@dataclass
class Output(transformers.utils.ModelOutput):
    x: torch.Tensor | None = None
    unused: torch.Tensor | None = None
    more: Pair | None = None


def activations(model: torch.nn.Module, name: str, run: Callable[[], torch.Tensor]) -> dict[str, list[torch.Tensor]]:
    """Tensors that the modules of a block return, by their names in the whole model; a backward pass follows."""
    found: dict[str, list[torch.Tensor]] = {}

    def note(key: str, _module: object, _inputs: object, output: object) -> None:
        parts = output if isinstance(output, tuple) else (output,)
        found[key] = [part.detach().clone() for part in parts if isinstance(part, torch.Tensor)]

    hooks = [
        module.register_forward_hook(partial(note, key))
        for key, module in model.named_modules()
        if key == name or key.startswith(f"{name}.")
    ]
    run().backward()
    for hook in hooks:
        hook.remove()
    return found


def assert_same(found: dict[str, list[torch.Tensor]], expected: dict[str, list[torch.Tensor]]) -> None:
    assert found.keys() == expected.keys()
    for key, tensors in expected.items():
        assert len(found[key]) == len(tensors) and all(map(torch.equal, found[key], tensors)), key


@pytest.mark.parametrize("case", [case for case in BLOCKS if case != "llama, angles"])
def test_activations_and_gradients_have_the_bits_of_the_whole_model(case: str, tmp_path: Path) -> None:
    make, name = BLOCKS[case]
    model = made(make, tmp_path)
    capture(model, name, tmp_path / "dump.safetensors")
    expected = activations(model, name, lambda: loss_of(model))
    block = load_block(tmp_path, name, tmp_path / "dump.safetensors")
    assert_same(activations(block, name, block.loss), expected)
    weights = dict(model.named_parameters(remove_duplicate=False))
    if not case.endswith("embedding"):  # whose gradient comes from both of its uses
        for key, weight in block.named_parameters():
            assert torch.equal(weight, weights[key]) and torch.equal(weight.grad, weights[key].grad), key
    assert {key for key, _ in block.named_parameters()} == {key for key in weights if key.startswith(f"{name}.")}


def test_buffers_that_no_file_holds_are_the_library_s(tmp_path: Path) -> None:
    make, name = BLOCKS["llama, angles"]
    model, block = made(make, tmp_path), load_block(tmp_path, name)
    assert torch.equal(block.get_buffer(f"{name}.inv_freq"), model.get_buffer(f"{name}.inv_freq"))


def gradients(block: LoadedBlock) -> list[torch.Tensor]:
    block.zero_grad()
    block.loss().backward()
    return [weight.grad.clone() for weight in block.parameters()]


@pytest.fixture
def expected(tmp_path: Path) -> list[torch.Tensor]:
    """Gradients of a block by its dump, in which the checkpoint and the first dump are made."""
    captured(llama, "model.layers.1", tmp_path)
    return gradients(load_block(tmp_path, "model.layers.1", tmp_path / "dump.safetensors"))


def captured_by(run: Callable[[torch.nn.Module], object], folder: Path, **options: object) -> list[torch.Tensor]:
    """The same, where `run` makes the step."""
    torch.manual_seed(0)
    model = llama()
    waiting = capture(model, "model.layers.1", folder / "other.safetensors", **options)
    assert waiting.waits_for == ["model.layers.1"]
    run(model)
    assert waiting.waits_for == [] and not model.model.layers[1]._forward_hooks
    return gradients(load_block(folder, "model.layers.1", folder / "other.safetensors"))


def evaluated_first(model: torch.nn.Module) -> None:
    """Passes without a backward pass are not the step, whether they keep a graph or not."""
    with torch.no_grad():
        model(input_ids=tokens().flip(0))
    model(input_ids=tokens().flip(1))
    loss_of(model).backward()


def accumulated(model: torch.nn.Module) -> None:
    for part in (tokens(), tokens().flip(1)):
        model(input_ids=part, labels=part).loss.backward()


def recomputed(reentrant: bool) -> Callable[[torch.nn.Module], None]:
    def run(model: torch.nn.Module) -> None:
        model.activation_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
        loss_of(model).backward()

    return run


@pytest.mark.parametrize("run", [evaluated_first, accumulated, recomputed(False), recomputed(True)])
def test_the_first_pass_with_a_backward_pass_is_saved(
    run: Callable, expected: list[torch.Tensor], tmp_path: Path
) -> None:
    assert all(map(torch.equal, captured_by(run, tmp_path), expected))


def test_the_gradient_is_without_the_loss_scale(expected: list[torch.Tensor], tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    found = captured_by(lambda model: scaler.scale(loss_of(model)).backward(), tmp_path, scaler=scaler)
    assert all(map(torch.equal, found, expected))


def test_a_wrapped_model_has_its_own_names(expected: list[torch.Tensor], tmp_path: Path) -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    def run(model: torch.nn.Module) -> None:
        loss_of(model).backward()

    torch.manual_seed(0)
    model = llama()
    model.model.layers[1] = checkpoint_wrapper(model.model.layers[1])
    capture(model, "model.layers.1", tmp_path / "other.safetensors")
    run(model)
    found = gradients(load_block(tmp_path, "model.layers.1", tmp_path / "other.safetensors"))
    assert all(map(torch.equal, found, expected))


def test_sixteen_bits_are_read_in_fp32(tmp_path: Path) -> None:
    model = made(lambda: llama().bfloat16(), tmp_path)
    capture(model, "model.layers.1", tmp_path / "dump.safetensors")
    loss_of(model).backward()
    block = load_block(tmp_path, "model.layers.1", tmp_path / "dump.safetensors")
    assert {weight.dtype for weight in block.parameters()} == {torch.float32}
    weights = dict(model.named_parameters())
    assert all(torch.equal(weight, weights[key].float()) for key, weight in block.named_parameters())
    assert block().dtype is torch.float32 and bool(block.loss().isfinite())


@pytest.mark.parametrize("kind", ["tuple", "mapping"])
def test_dumps_by_torch_save_are_read(kind: str, expected: list[torch.Tensor], tmp_path: Path) -> None:
    """As a script saves them with two hooks of its own."""
    torch.manual_seed(0)
    model, found = llama(), {}
    layer = model.get_submodule("model.layers.1")

    def keep(_module: object, args: tuple, kwargs: dict) -> None:
        found["args"] = tuple(each.detach() for each in args)
        found["kwargs"] = {key: value for key, value in kwargs.items() if isinstance(value, (torch.Tensor, tuple))}

    layer.register_forward_pre_hook(keep, with_kwargs=True)
    layer.register_forward_hook(lambda *given: given[2].register_hook(lambda g: found.update(gradient=g)) and None)
    loss_of(model).backward()
    whole = {key: found[key] for key in ("args", "kwargs", "gradient")}
    torch.save(whole if kind == "mapping" else tuple(whole.values()), tmp_path / "dump.pt")
    block = load_block(tmp_path, "model.layers.1", tmp_path / "dump.pt")
    assert all(map(torch.equal, gradients(block), expected))


def test_all_arguments_come_back_with_their_types(tmp_path: Path) -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, *more: object, **options: object) -> Output:
            return Output(x=self.layer(x), unused=self.layer(x), more=Pair(None, x * 2))

    model = torch.nn.Sequential(torch.nn.Identity(), Block())  # the output has parts that nobody uses
    x = torch.randn(2, 4, requires_grad=True)
    whole = [torch.arange(3), torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.complex64)]
    options = {"a": [1, 2.5, "b", None, True], "type": torch.bfloat16, "cache": object(), "sparse": x.to_sparse()}
    capture(model, "1", tmp_path / "dump.safetensors")
    output = model[1](x.expand(3, 2, 4), whole, **options)
    assert isinstance(output, Output) and isinstance(output.more, Pair)
    (output.x + output["more"].last).sum().backward()
    dump = read_dump(tmp_path / "dump.safetensors")
    assert torch.equal(dump.args[0], x.expand(3, 2, 4)) and dump.args[0].requires_grad
    assert isinstance(dump.args[1], list) and all(map(torch.equal, dump.args[1], whole))
    assert [each.dtype for each in dump.args[1]] == [each.dtype for each in whole]
    assert dump.kwargs == {"a": [1, 2.5, "b", None, True], "type": torch.bfloat16, "cache": None, "sparse": None}
    assert dump.left_out.keys() == {"kwargs.cache", "kwargs.sparse"}
    assert torch.equal(dump.gradient["x"], torch.ones(3, 2, 4)) and dump.gradient["unused"] is None
    assert dump.gradient["more"][0] is None and torch.equal(dump.gradient["more"][1], torch.ones(3, 2, 4))

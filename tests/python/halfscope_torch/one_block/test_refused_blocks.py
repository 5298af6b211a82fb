"""Captures, dumps and checkpoints that do not do: one line each, and nothing half-written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from block_models import captured, llama, loss_of, made
from halfscope.torch import capture, load_block

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

NAME = "model.layers.1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint, and a dump of it."""
    captured(llama, NAME, tmp_path)
    return tmp_path


def refused(call: Callable[[], object], *parts: str, kind: type[Exception] = ValueError) -> None:
    """The refusal is one line that has all parts."""
    with pytest.raises(kind) as error:
        call()
    text = str(error.value)
    assert "\n" not in text and all(part in text for part in parts), text


def test_names_that_the_model_does_not_have(folder: Path) -> None:
    near = "no module 'model.layer.1'; near it: model.layers.1, "
    refused(lambda: load_block(folder, "model.layer.1"), str(folder), near)
    refused(lambda: capture(llama(), "model.layer.1", folder / "x.safetensors"), "capture: ", near)
    refused(lambda: capture(llama(), "encoder.*", folder), "capture: the model has no module 'encoder.*'")


def test_captures_that_cannot_be_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = llama()
    refused(lambda: capture(model, NAME, folder / "none" / "x.safetensors"), "none is no folder; make it first")
    refused(lambda: capture(model, NAME, folder / "x.pt"), "x.pt is no file of safetensors")
    refused(lambda: capture(model, "model.layers.*", folder / "none"), "none is no folder; make it first")
    refused(lambda: capture("model", NAME, folder), "capture: model is of type str", kind=TypeError)
    compiled = torch.compile(model, backend="eager")
    refused(lambda: capture(compiled, NAME, folder / "x.safetensors"), "before torch.compile", kind=TypeError)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    refused(lambda: capture(model, NAME, folder / "x.safetensors"), "pip install safetensors", kind=ImportError)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_full_disk_does_not_end_the_training(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    model = llama()
    monkeypatch.setattr("halfscope.torch.one_block.block_dump.write_whole", full)
    waiting = capture(model, NAME, folder / "x.safetensors")
    with pytest.warns(UserWarning, match="x.safetensors was not written: No space left"):
        loss_of(model).backward()
    assert not waiting.waits_for and not (folder / "x.safetensors").exists()


def test_a_closed_capture_saves_nothing(folder: Path) -> None:
    model = llama()
    capture(model, NAME, folder / "x.safetensors").close()
    loss_of(model).backward()
    assert not (folder / "x.safetensors").exists()


def test_dumps_of_another_block(folder: Path) -> None:
    dump = folder / "dump.safetensors"
    refused(lambda: load_block(folder, "model.layers.0", dump), f"{dump}: is a dump of 'model.layers.1', and")
    (folder / "wide").mkdir()
    made(lambda: llama(head_dim=16), folder / "wide")
    refused(
        lambda: load_block(folder / "wide", NAME, dump),
        f"{dump}: does not fit 'model.layers.1' of {folder / 'wide'}: its block's self_attn.q_proj.weight was (32, 32)",
    )
    x = torch.randn(2, 5, 32)
    for given, reason in (
        ((x[..., :7], {}, x), "the block does not run on its arguments: "),
        ((x, {"unknown": 1}, x), "the block does not run on its arguments: "),
        ((x, {}, x[:1]), "the gradient of the output is (1, 5, 32), and the output is (2, 5, 32)"),
        ((x, {}, {"y": x}), "the output has no part 'y', of which the dump has a gradient"),
        ((x, {}, None), "the dump has no gradient of the output"),
    ):
        torch.save(given, folder / "own.pt")
        refused(lambda: load_block(folder, "model.layers.1.mlp", folder / "own.pt"), "own.pt: does not fit", reason)


def test_files_that_are_no_dumps(folder: Path) -> None:
    refused(lambda: load_block(folder, NAME, folder / "no.pt"), "no.pt: no such file", kind=FileNotFoundError)
    for content in ([1, 2], (1, 2, 3), {"args": 1}, (torch.ones(1), torch.ones(1), torch.ones(1))):
        torch.save(content, folder / "own.pt")
        refused(lambda: load_block(folder, NAME, folder / "own.pt"), "own.pt: holds a", "no dump of a block; give what")
    (folder / "own.pt").write_bytes(b"garbage")
    refused(lambda: load_block(folder, NAME, folder / "own.pt"), "own.pt: torch.load reads no tensors")
    torch.save((Path("x"), {}, None), folder / "own.pt")
    refused(lambda: load_block(folder, NAME, folder / "own.pt"), "own.pt: torch.load reads no tensors")
    shard = next(folder.glob("model-0*.safetensors"))
    refused(lambda: load_block(folder, NAME, shard), "holds no dump of a block; give what capture wrote")
    whole = (folder / "dump.safetensors").read_bytes()
    for size in (0, 7, len(whole) // 2, len(whole) - 1):
        (folder / "cut.safetensors").write_bytes(whole[:size])
        refused(lambda: load_block(folder, NAME, folder / "cut.safetensors"), "cut.safetensors: is no whole dump")


def test_shards_that_are_missing_or_broken(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    names = json.loads(index.read_text())["weight_map"]
    key = f"{NAME}.mlp.up_proj.weight"
    shard = folder / names[key]
    content = shard.read_bytes()
    shard.unlink()
    refused(lambda: load_block(folder, NAME), f"{shard}: this shard is missing, and has 'model.layers.1.")
    load_block(folder, "model.norm")  # which is in another one
    for size in (0, len(content) // 2):
        shard.write_bytes(content[:size])
        refused(lambda: load_block(folder, NAME), f"{shard}: is no whole file of safetensors", "copy it again")
    shard.write_bytes(content)
    other = next(name for name in names.values() if name != shard.name)
    index.write_text(json.dumps({"weight_map": {**names, key: other}}))
    refused(lambda: load_block(folder, NAME), f"{folder / other}: ", f"its index says that it holds '{key}'")
    index.write_text(json.dumps({"weight_map": {name: each for name, each in names.items() if name != key}}))
    refused(lambda: load_block(folder, NAME), f"{folder}: holds no tensor '{key}'", "near it: model.layers.")
    for text in ("", "[]", "{}"):
        index.write_text(text)
        refused(lambda: load_block(folder, NAME), f"{index}: is no index of shards")
    index.unlink()
    refused(lambda: load_block(folder, NAME), "no model.safetensors and no model.safetensors.index.json")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"intermediate_size": 60}, "is (64, 32), and config.json makes it (60, 32)"),
        ({"architectures": ["Unheard"]}, "has no model 'Unheard'"),
        ({"architectures": None}, "has no model ''"),
        ({"model_type": "unheard"}, "config.json: "),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "its weights are quantized"),
    ],
)
def test_configurations_of_other_models(change: dict, reason: str, folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
    refused(lambda: load_block(folder, NAME), str(folder), reason)


def test_folders_that_are_no_checkpoints(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(lambda: load_block(folder / "none", NAME), "none: no config.json; give a folder that model.save_pretrained")
    (folder / "config.json").write_text("{")
    refused(lambda: load_block(folder, NAME), "config.json: ")
    monkeypatch.setitem(sys.modules, "transformers", None)
    refused(lambda: load_block(folder, NAME), "pip install transformers", kind=ImportError)


def test_a_block_without_a_dump_has_no_loss(folder: Path) -> None:
    block = load_block(folder, "model.layers.1.mlp")
    refused(block.loss, "load_block: the block has no dump; give one")
    assert block(torch.ones(1, 2, 32)).shape == (1, 2, 32)

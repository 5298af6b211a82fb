"""Faults that were planted in one layer of a model: named by the doors on that block alone, in the model's names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from block_models import WIDTH, captured, gpt2, llama, loss_of, made
from halfscope.reporting import Finding, Report
from halfscope.torch import LoadedBlock, capture, check, check_blocks, diagnose, emulate, load_block, sensitivity
from halfscope.torch.doctor.transformations import moved_powers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

CHANNEL = 11


def overflowing() -> torch.nn.Module:
    """The product in the MLP of layer 1 leaves FP16's range; the sums after it do not."""
    model = llama()
    layer = model.get_submodule("model.layers.1")
    with torch.no_grad():
        layer.post_attention_layernorm.weight.mul_(2.0**8)
        layer.mlp.up_proj.weight.mul_(2.0**8)
        layer.mlp.down_proj.weight.mul_(2.0**-8)
    return model


def with_outlier() -> torch.nn.Module:
    """A norm makes one channel large, and the weights behind it are small there."""
    model = llama()
    layer = model.get_submodule("model.layers.1")
    with torch.no_grad():
        layer.input_layernorm.weight[CHANNEL] = 300.0
        for name in ("q_proj", "k_proj", "v_proj"):
            layer.self_attn.get_submodule(name).weight[:, CHANNEL] = 1e-4
    return model


def block_of(make: Callable[[], torch.nn.Module], folder: Path) -> LoadedBlock:
    return load_block(folder, "model.layers.1", captured(make, "model.layers.1", folder))


@pytest.mark.parametrize("door", [check, diagnose])
def test_an_overflow_has_its_line_its_remedy_and_its_place(door: Callable, tmp_path: Path) -> None:
    block = block_of(overflowing, tmp_path)
    found = door(block, block.loss)
    first = found.findings[0]
    assert first.place.file.endswith("modeling_llama.py") and "up_proj(x)" in first.code, str(found)
    assert first.change.startswith("type rescale("), str(found)
    assert all(f"model.layers.1.mlp.{name}.weight by 2^" in first.change for name in ("up_proj", "down_proj"))
    assert first.why.startswith("`self.act_fn(self.gate_proj(x)) * self.up_proj(x)` overflows: 1.19")
    assert "tried: " in first.sure and "FP32's but for round-off" in first.sure


def test_emulate_names_the_overflow_and_counts_by_the_model_s_names(tmp_path: Path) -> None:
    block = block_of(overflowing, tmp_path)
    with emulate(block, "fp16_mixed", optimizer=torch.optim.SGD(block.parameters(), 0.0), zeros=True) as emulation:
        block.loss().backward()
    assert emulation.first_overflow.tensor.startswith("model.layers.1.mlp"), emulation.first_overflow
    assert ("activation", "model.layers.1.self_attn.o_proj") in emulation.casts()


def test_an_outlier_channel_is_named(tmp_path: Path) -> None:
    block = block_of(with_outlier, tmp_path)
    scores = sensitivity(block, [()], ["nvfp4"], "gaussian")
    first = str(scores.outlier_channels().report)
    operand = "the input of model.layers.1.self_attn.q_proj + k_proj + v_proj"
    assert first.startswith(f"Multiply channel {CHANNEL} of {operand} apart from nvfp4, in BF16\n"), first


def dumps_of(make: Callable[[], torch.nn.Module], pattern: str, folder: Path) -> torch.nn.Module:
    model = made(make, folder)
    (folder / "dumps").mkdir()
    waiting = capture(model, pattern, folder / "dumps")
    loss_of(model).backward()
    assert not waiting.waits_for
    return model


def faults(found: Report) -> tuple[list[Finding], list[Finding]]:
    """Findings with a line of the library, and those on the loss scale."""
    lines = [each for each in found.findings if each.place is not None]
    return lines, [each for each in found.findings if each.place is None]


def test_all_blocks_are_checked_one_after_the_other(tmp_path: Path) -> None:
    dumps_of(overflowing, "model.layers.*", tmp_path)
    assert sorted(path.stem for path in (tmp_path / "dumps").iterdir()) == [f"model.layers.{i}" for i in range(3)]
    found = check_blocks(tmp_path, tmp_path / "dumps")
    lines, scale = faults(found)
    assert found.kind == "check_blocks" and "3 blocks of" in found.about
    assert [each.why.rpartition("; ")[2] for each in lines] == ["in model.layers.1"]
    assert [each.why.rpartition("; ")[2] for each in scale] == ["in model.layers.2"]  # behind large activations
    assert "Nothing to change in 1 block: model.layers.0." in found.about


def test_healthy_blocks_have_nothing_to_change(tmp_path: Path) -> None:
    dumps_of(gpt2, "transformer.h.*", tmp_path)
    found = check_blocks(tmp_path, tmp_path / "dumps")
    assert not found.findings
    assert found.verdict == "Nothing to change in 3 blocks: transformer.h.0, transformer.h.1, transformer.h.2."


def everywhere() -> torch.nn.Module:
    model = overflowing()
    for part in ("mlp", "post_attention_layernorm"):
        first, second = (model.get_submodule(f"model.layers.{index}.{part}") for index in range(2))
        first.load_state_dict(second.state_dict())
    return model


def test_a_finding_of_several_blocks_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In FP32: powers of two fit one of the two alone."""
    monkeypatch.setattr(moved_powers, "_rescaled", lambda about: None)
    dumps_of(everywhere, "model.layers.*", tmp_path)
    found = check_blocks(tmp_path, sorted((tmp_path / "dumps").iterdir()))
    assert [each.why.rpartition("; ")[2] for each in faults(found)[0]] == [
        "in model.layers.0, model.layers.1, the numbers in model.layers.0"
    ]


def test_powers_of_each_block_are_one_finding() -> None:
    changes = {name: f"it multiplies {name}.up by 2^-{power}" for name, power in (("a.0", 6), ("a.1", 12), ("a.2", 6))}
    changes["a.3"] = "it multiplies a.3.down by 2^-6"
    reports = {name: Report("check", (Finding("k", change, "why", "sure"),)) for name, change in changes.items()}
    found = list(check_blocks.__globals__["_merged"](reports))
    assert [each.change for each in found] == [changes["a.0"], changes["a.3"]]
    assert found[0].why == "why; in a.0, a.1, a.2, the numbers in a.0" and found[1].why == "why; in a.3"


def test_a_dump_that_does_not_fit_is_a_finding(tmp_path: Path) -> None:
    dumps_of(llama, "model.layers.*", tmp_path)
    (tmp_path / "dumps" / "model.layers.1.safetensors").write_bytes(b"no dump")
    found = check_blocks(tmp_path, tmp_path / "dumps")
    assert [each.kind for each in found.findings] == ["unread"]
    assert "model.layers.1.safetensors: is no whole dump of a block" in found.findings[0].why
    with pytest.raises(ValueError, match="holds no dump; capture"):
        check_blocks(tmp_path, tmp_path / "dumps" / "none")


def test_dumps_without_names_are_given_them(tmp_path: Path) -> None:
    made(llama, tmp_path)
    torch.save((torch.randn(2, 4, WIDTH), {}, torch.randn(2, 4, WIDTH)), tmp_path / "mlp.pt")
    found = check_blocks(tmp_path, {"model.layers.2.mlp": tmp_path / "mlp.pt"})
    assert found.verdict == "Nothing to change in 1 block: model.layers.2.mlp."
    told = check_blocks(tmp_path, [tmp_path / "mlp.pt"])
    assert "does not tell its block; give check_blocks a mapping, {name: path}" in told.findings[0].why

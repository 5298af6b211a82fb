"""The transformer under recipes, beside the simulator's: the same weights, sentences, formats and sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from exported_training import export_training
from halfscope.torch import emulate
from test_emulated_networks import counts_of
from torch_translation_networks import NORM_EPSILON, POSITION_AMPLITUDE, sinusoids

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("one_thread"),
]

Tensor = torch.Tensor
WIDTH, HEADS, LAYERS, OUT_OF_SIGHT = 96, 4, 2, -1e4
SETTINGS = (
    "model=transformer", "dataset=numbers_to_words", f"embedding_size={WIDTH}", f"heads={HEADS}", f"layers={LAYERS}",
    "batch=32", "optimizer=adam", "learning_rate=1e-3", "schedule=cosine", "warmup_steps=20", "observe_every=1000",
    "loss_scale=none",
)  # fmt: skip


class Attention(torch.nn.Module):
    """Pre-LN: x + attention of the normalised x to itself, or to a memory."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH, NORM_EPSILON)
        self.query, self.key, self.value, self.output = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor | None, mask: Tensor) -> Tensor:
        normal = self.norm(x)
        memory = normal if memory is None else memory

        def heads(part: Tensor) -> Tensor:
            return part.unflatten(-1, (HEADS, -1)).transpose(1, 2)

        query = heads(self.query(normal) * (WIDTH / HEADS) ** -0.5)
        weights = (query @ heads(self.key(memory)).transpose(2, 3) + mask).softmax(-1)
        context = (weights @ heads(self.value(memory))).transpose(1, 2).flatten(2)
        return self.output(context) + x


class FeedForward(torch.nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH, NORM_EPSILON)
        self.inner, self.outer = torch.nn.Linear(WIDTH, hidden), torch.nn.Linear(hidden, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(self.norm(x)).relu()) + x


class Transformer(torch.nn.Module):
    """sim/models/transformer.cpp, with its names of layers."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        hidden = weights["model.encoder1.feed_forward.inner.bias"].numel()
        tables = weights["model.source_embedding"], weights["model.target_embedding"]
        self.source_embedding, self.target_embedding = (torch.nn.Embedding(*table.shape) for table in tables)
        for side, parts in (("encoder", ("self",)), ("decoder", ("self", "source"))):
            for i in range(1, LAYERS + 1):
                layer = torch.nn.ModuleDict({part: Attention() for part in parts})
                layer["feed_forward"] = FeedForward(hidden)
                self.add_module(f"{side}{i}", layer)
            norm = torch.nn.Module()
            norm.norm = torch.nn.LayerNorm(WIDTH, NORM_EPSILON)
            self.add_module(side, norm)
        self.output = torch.nn.Linear(WIDTH, tables[1].shape[0])
        self.load(weights)

    def load(self, weights: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, module in self.named_modules():
                if isinstance(module, torch.nn.Linear):
                    module.weight.copy_(weights[f"model.{name}.weight"].t())
                    module.bias.copy_(weights[f"model.{name}.bias"])
                elif isinstance(module, torch.nn.LayerNorm):
                    module.weight.copy_(weights[f"model.{name}.gamma"])
                    module.bias.copy_(weights[f"model.{name}.beta"])
                elif isinstance(module, torch.nn.Embedding):
                    module.weight.copy_(weights[f"model.{name}"])

    def forward(self, batch: Sentences) -> Tensor:
        """Logits of the target's own tokens."""
        x = self.target_embedding(batch.target) + batch.target_positions
        memory = self.source_embedding(batch.source) + batch.source_positions
        for i in range(1, LAYERS + 1):
            layer = self.get_submodule(f"encoder{i}")
            memory = layer["feed_forward"](layer["self"](memory, None, batch.hidden))
        memory = self.encoder.norm(memory)
        for i in range(1, LAYERS + 1):
            layer = self.get_submodule(f"decoder{i}")
            x = layer["source"](layer["self"](x, None, batch.later), memory, batch.hidden)
            x = layer["feed_forward"](x)
        return self.output(self.decoder.norm(x)[batch.predicting])


@dataclass
class Sentences:
    """A batch, with what follows from its lengths alone; masks are added to scores (batch, head, query, key)."""

    source: Tensor
    target: Tensor
    source_positions: Tensor
    target_positions: Tensor
    hidden: Tensor
    later: Tensor
    predicting: Tensor
    labels: Tensor


def sentences_of(exported: dict[str, Tensor], step: int) -> Sentences:
    lengths, own = exported[f"lengths.{step}"].long()[:, None], exported[f"label_counts.{step}"].long()[:, None]
    source, target = (
        exported[f"{kind}.{step}"].long().reshape(len(lengths), -1) for kind in ("tokens", "decoder_tokens")
    )
    places = torch.arange(source.shape[1]), torch.arange(target.shape[1])
    later = (places[1][:, None] < places[1]) | (places[1] >= own[:, None])
    return Sentences(
        source, target, *(POSITION_AMPLITUDE * sinusoids(len(each), WIDTH, torch.float32) for each in places),
        OUT_OF_SIGHT * (places[0] >= lengths).float()[:, None, None], OUT_OF_SIGHT * later.float()[:, None],
        places[1] < own, exported[f"labels.{step}"].long(),
    )  # fmt: skip


def emulated_losses(exported: dict[str, Tensor], policy: str, steps: int) -> tuple[list[float], dict[str, list[int]]]:
    """Losses, and the counts of the first step."""
    model = Transformer(exported)
    optimizer = torch.optim.Adam(model.parameters())
    batches = [sentences_of(exported, step) for step in range(steps)]
    losses: list[float] = []
    first: dict[str, list[int]] = {}
    with emulate(model, policy, optimizer=optimizer, compare_steps=()) as emulated:
        for batch, rate in zip(batches, exported["learning_rates"].tolist()):
            optimizer.param_groups[0]["lr"] = rate
            loss = torch.nn.functional.cross_entropy(model(batch), batch.labels)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            first = first or counts_of(emulated)
    return losses, first


def trained_twice(recipe: str, steps: int, folder: Path) -> tuple[dict[str, Tensor], list[float], dict[str, list[int]]]:
    """The simulator's training as a file; the emulated losses, and the first step's counts."""
    exported = export_training(folder / "training.safetensors", *SETTINGS, f"policy={recipe}", f"steps={steps}")
    return exported, *emulated_losses(exported, recipe, steps)


def operand_counts(exported: dict[str, Tensor]) -> dict[str, list[int]]:
    """The simulator's, of its first step."""
    first = "operand_counts.1."
    return {
        f"operand_counts.{name[len(first) :]}": [int(count) for count in counts]
        for name, counts in exported.items()
        if name.startswith(first)
    }


@pytest.mark.parametrize("recipe", ["mxfp8", "mxfp4", "fp8_current", "fp8_delayed"])
def test_counts_of_the_first_step_are_the_simulators(recipe: str, tmp_path: Path) -> None:
    """All counts of 192 operands: six of each linear layer but the head."""
    exported, _, ours = trained_twice(recipe, 1, tmp_path)
    theirs = operand_counts(exported)
    assert len(theirs) == 6 * (LAYERS * (4 + 2) + LAYERS * (8 + 2))
    assert {name: counts for name, counts in ours.items() if name.startswith("operand_counts.")} == theirs


@pytest.mark.parametrize("recipe", ["mxfp8_floor", "mxfp6", "fp8_deepseek", "nvfp4"])
def test_counts_differ_where_a_last_bit_decides_a_rounding(recipe: str, tmp_path: Path) -> None:
    """PyTorch's exp and rsqrt differ from the simulator's in the last bit of FP32, now and then in that of BF16.

    The first encoder layer's forward pass is the same, random bits of nvfp4 included. The other counts differ in less
    than one per cent: the largest difference seen is 2 of 384 blocks.
    """
    exported, _, ours = trained_twice(recipe, 1, tmp_path)
    for name, theirs in operand_counts(exported).items():
        if ".encoder1." in name and ".forward." in name:
            assert ours[name] == theirs
        elements, blocks = theirs[0], theirs[5]
        for count, their, whole in zip(ours[name], theirs, (*[elements] * 5, *[blocks] * 3)):
            assert abs(count - their) < 0.01 * whole, name


def test_a_last_bit_moves_the_better_scale_of_a_gradients_blocks(tmp_path: Path) -> None:
    """nvfp4_4over6: a bit of a gradient's largest magnitude moves the choice between 4 and 6 in 8 % of its blocks.

    A block clips or does not by that choice. Elements that become zero or subnormal differ in less than one per cent,
    and every count of weights and activations is the same.
    """
    exported, _, ours = trained_twice("nvfp4_4over6", 1, tmp_path)
    for name, theirs in operand_counts(exported).items():
        if not name.endswith("gradient.left"):
            assert ours[name] == theirs, name
        elements, zeros, flushed, subnormal, _, blocks, _, zero_scales = zip(ours[name], theirs)
        for our, their in (elements, blocks, zero_scales):
            assert our == their, name
        for our, their in (zeros, flushed, subnormal):
            assert abs(our - their) < 0.01 * theirs[0], name


@pytest.mark.parametrize("recipe", ["mxfp8", "mxfp4", "nvfp4"])
def test_losses_are_the_simulators_until_a_rounding_parts_them(recipe: str, tmp_path: Path) -> None:
    """Within 1e-6 for two steps; then such a bit parts the trainings: mxfp8 by 2.3e-3 at most in 50 steps, and by less
    than 1e-3 in 45 of them."""
    exported, losses, _ = trained_twice(recipe, 10, tmp_path)
    for step, (ours, theirs) in enumerate(zip(losses, exported["losses"].tolist()), 1):
        tolerance = 1e-6 if step <= 2 else 5e-3
        assert math.isclose(ours, theirs, rel_tol=tolerance), f"step {step}: emulated {ours}, simulated {theirs}"
    assert losses[-1] < 0.95 * losses[0]

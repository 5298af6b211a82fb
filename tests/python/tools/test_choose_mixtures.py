"""Mixtures of `format-mixtures`: their budgets, and the networks that choose them beside the simulator's."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
tomllib = pytest.importorskip("tomllib", reason="from Python 3.11 on")
pytest.importorskip("safetensors", reason="safetensors is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")

import choose_mixtures
from exported_training import export_training

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

BITS = {"mxfp4": 4.25, "nvfp4": 4.5, "mxfp6_e2m3": 6.25, "mxfp8_e4m3": 8.25, "bf16": 16.0}
SMALL = {"embedding_size": 32, "hidden_size": 48, "batch": 4, "steps": choose_mixtures.BATCHES}


def definition() -> dict[str, Any]:
    return tomllib.loads(choose_mixtures.DEFINITION.read_text())


def settings_of(network: str, **changed: Any) -> dict[str, Any]:
    read = definition()
    own = {**read["settings"], **read["arm"][f"{network}_fp32"], **changed}
    return {key: value for key, value in own.items() if key not in choose_mixtures.NOT_TRAINED}


def exported(network: str, file: Path, **changed: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    settings = settings_of(network, **changed)
    return export_training(file, *(f"{key}={value}" for key, value in settings.items())), settings


def formats_of(rules: str) -> dict[str, str]:
    """Formats of layers; a rule is forward=FORMAT@LAYER."""
    pairs = [rule.removeprefix("forward=").split("@") for rule in rules.split(", ")]
    found = {layer: format for format, layer in pairs}
    assert len(found) == len(pairs)
    return found


@pytest.mark.parametrize("network", choose_mixtures.NETWORKS)
def test_every_mixture_keeps_its_budget(network: str, tmp_path: Path) -> None:
    """Budgets of the whole networks, by the sizes of the weights that the simulator makes."""
    tensors, _ = exported(network, tmp_path / "one.safetensors", steps=1, batch=1, warmup_steps=0)
    sizes = {name.removeprefix("model.").removesuffix(".weight"): each.numel()
             for name, each in tensors.items() if name.startswith("model.") and name.endswith(".weight")}  # fmt: skip
    arms = {name: formats_of(arm["operands"]) for name, arm in definition()["arm"].items()
            if name.startswith(network) and "operands" in arm}  # fmt: skip
    assert len(arms) == 11
    for name, formats in arms.items():
        assert formats.keys() == sizes.keys()
        bits = sum(BITS[format] * sizes[layer] for layer, format in formats.items()) / sum(sizes.values())
        budget = name.rpartition("_")[2]
        if budget.startswith(("mx", "nv")):
            assert len(set(formats.values())) == 1
        else:
            assert float(budget) - 0.1 < bits <= float(budget)


@pytest.mark.parametrize("network", choose_mixtures.NETWORKS)
def test_the_networks_are_the_simulators(network: str, tmp_path: Path) -> None:
    """Loss of the last step, at a learning rate of 0, from the weights behind it."""
    length = {"sequence_length": 16, "vocabulary": 100} if network == "llama" else {}
    tensors, settings = exported(network, tmp_path / "few.safetensors", **SMALL, **length, learning_rate=0)
    trained = choose_mixtures.NETWORKS[network](tensors, settings)
    batch = trained.batches[-1]
    with torch.no_grad():
        logits, labels = trained.labelled(batch, trained.logits(trained.model, batch))
    loss = torch.nn.functional.cross_entropy(logits, labels)
    assert math.isclose(loss.item(), float(tensors["losses"][-1]), rel_tol=1e-5)


def test_a_mixture_of_few_bits_has_less_of_each_score_than_a_uniform_format(tmp_path: Path) -> None:
    tensors, settings = exported("llama", tmp_path / "few.safetensors", **SMALL, sequence_length=16, vocabulary=100)
    found, scores = choose_mixtures.scores_of(choose_mixtures.llama(tensors, settings))
    groups = [unit for unit in found.units if not found._subject.is_scored_only(unit)]
    assert [len(nats) for nats in scores.values()] == [len(found.scores)] * 3
    for nats in scores.values():
        chosen = choose_mixtures.mixture(found, nats, 4.5)
        assert list(chosen) == groups
        sizes = {group: found._subject.elements(group) for group in groups}
        assert sum(BITS[chosen[group]] * size for group, size in sizes.items()) <= 4.5 * sum(sizes.values())
        assert sum(nats[key] for key in chosen.items()) <= sum(nats[group, "nvfp4"] for group in groups)
        layers = {unit: format for group, format in chosen.items() for unit in found._subject.groups[group]}
        assert formats_of(choose_mixtures.rules(found, chosen)) == layers


def test_rules_are_written_where_their_arm_is() -> None:
    text = '[arm.a_score_5]\nlike = "b"\noperands = "x"\n\n[arm."a_score_4.5"]\noperands = "y"\n\n[arm.c]\n'
    assert choose_mixtures.written(text, "a_score_4.5", "z") == text.replace('"y"', '"z"')
    assert choose_mixtures.written(text, "a_score_5", "z") == text.replace('"x"', '"z"')
    with pytest.raises(SystemExit, match="no operands of c"):
        choose_mixtures.written(text, "c", "z")

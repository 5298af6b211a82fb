"""Mixtures of the experiment `format-mixtures`, chosen by three scores and written into its definition.

usage: choose_mixtures.py [--print]

Trains each network of the definition in FP32 with other seeds than the experiment's, and takes each score's mean over
these trainings: the squares of AutoQuantize, `sensitivity`'s own, and the true divergence of each unit alone. The
integer program of `choose` turns means into a mixture for each budget. `choose` itself, with its trials, has the first
of these trainings. --print: prints the means, and writes nothing.
Needs PyTorch, SciPy, Python 3.11 and a build with tests, whose halfscope_export_training trains; some minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib  # type: ignore[import-not-found]  # from Python 3.11 on
import torch
from safetensors.torch import load_file

from halfscope.torch import Sensitivity, sensitivity
from halfscope.torch.sensitivity.experiment_toml import operand_rules
from halfscope.torch.sensitivity.mixture_search import Search
from halfscope.torch.sensitivity.mixture_trials import tried, unit_formats

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests/peer")]
from squared_errors import Labelled, squared_errors
from torch_modules import Llama, Transformer
from torch_translation_networks import Sentences

PROGRAM = ROOT / "build/release/tests/halfscope_export_training"
DEFINITION = ROOT / "experiments/definitions/format-mixtures.toml"
FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3")
SEEDS = range(100, 103)
CHOSEN = "chosen"  # arms of `choose`
BATCHES = 4  # the last ones of a training
NOT_TRAINED = ("baseline", "like", "operands", "second_execution", "start_from", "summary")  # keys of arms alone

Nats = dict[tuple[str, str], float]
"""By group of units and format."""


@dataclass(frozen=True)
class Trained:
    """A network of the simulator with batches of its training; mask: of the terms that have a label."""

    model: torch.nn.Module
    batches: list[Any]
    labelled: Labelled
    mask: Callable[[Any], torch.Tensor] | None = None

    def scored(self) -> Sensitivity:
        return sensitivity(self.model, self.batches, FORMATS, call=self.logits, mask=self.mask)

    @staticmethod
    def logits(model: torch.nn.Module, batch: Any) -> torch.Tensor:
        return model(batch[0] if isinstance(batch, tuple) else batch)


def llama(exported: Mapping[str, torch.Tensor], settings: Mapping[str, Any]) -> Trained:
    heads = settings["heads"], settings["key_value_heads"]
    length = settings["sequence_length"]
    batches = [
        tuple(exported[f"{part}.{step}"].long().reshape(-1, length) for part in ("tokens", "labels"))
        for step in _last(settings)
    ]
    return Trained(
        Llama(_weights(exported), heads), batches, lambda batch, output: (output.flatten(0, 1), batch[1].flatten())
    )


def transformer(exported: Mapping[str, torch.Tensor], settings: Mapping[str, Any]) -> Trained:
    return Trained(
        Transformer(_weights(exported), settings["heads"]),
        [sentences(exported, step) for step in _last(settings)],
        lambda batch, output: (output[batch.predicting()], batch.labels),
        Sentences.predicting,
    )


NETWORKS = {"llama": llama, "transformer": transformer}


def sentences(exported: Mapping[str, torch.Tensor], step: int) -> Sentences:
    source, target, lengths, counts, labels = (
        exported[f"{part}.{step}"].long() for part in ("tokens", "decoder_tokens", "lengths", "label_counts", "labels")
    )
    count = len(lengths)
    return Sentences(source.reshape(count, -1), target.reshape(count, -1), lengths, counts, labels)


def _last(settings: Mapping[str, Any]) -> range:
    return range(settings["steps"] - BATCHES, settings["steps"])


def _weights(exported: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """After the training, by the simulator's names."""
    prefix = "after.model."
    return {name.removeprefix(prefix): each for name, each in exported.items() if name.startswith(prefix)}


def trained(settings: Mapping[str, Any], seed: int) -> Trained:
    words = [f"{key}={value}" for key, value in settings.items() if key not in NOT_TRAINED]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "training.safetensors"
        subprocess.run([PROGRAM, file, *words, f"seed={seed}", "observe_every=0"], check=True)
        return NETWORKS[settings["model"]](load_file(file), settings)


def scores_of(network: Trained) -> tuple[Sensitivity, dict[str, Nats]]:
    """The three scores of the groups of units."""
    found = network.scored()
    keys = list(found.scores)
    alone = tried(found._subject, [{group: format} for group, format in keys])
    return found, {
        "squares": squared_errors(found, network.labelled),
        "score": {key: score.nats for key, score in found.scores.items()},
        "singles": dict(zip(keys, (each.mean for each in alone))),
    }


def mixture(found: Sensitivity, nats: Nats, bits: float) -> dict[str, str]:
    """The integer program's: formats by group."""
    subject = found._subject
    search = Search(subject, found.scores, tuple(unit for unit in found.units if not subject.is_scored_only(unit)))
    chosen = search.choices(lambda *key: nats[key]).solve(bits * search.elements)
    if chosen is None:
        raise SystemExit(f"choose_mixtures.py: no mixture has {bits:g} bits")
    return chosen


def rules(found: Sensitivity, groups: Mapping[str, str]) -> str:
    """A mixture for the setting `operands`."""
    return operand_rules(unit_formats(found._subject, groups))


def mixtures(
    network: str, arms: Mapping[str, Any], settings: Mapping[str, Any], says: bool
) -> Iterator[tuple[str, str]]:
    """Rules of each of a network's arms that a score has chosen: NETWORK_SCORE_BITS."""
    each = [scores_of(trained({**settings, **arms[f"{network}_fp32"]}, seed)) for seed in SEEDS]
    found = each[0][0]
    means = {
        score: {key: sum(scores[score][key] for _, scores in each) / len(each) for key in found.scores}
        for score in each[0][1]
    }
    if says:
        for group, format in found.scores:
            print(network, group, format, *(f"{score} {nats[group, format]:.3e}" for score, nats in means.items()))
    for arm in arms:
        name = re.fullmatch(rf"{network}_({'|'.join((*means, CHOSEN))})_([\d.]+)", arm)
        if name:
            bits = float(name[2])
            groups = found.choose(bits=bits).groups if name[1] == CHOSEN else mixture(found, means[name[1]], bits)
            yield arm, rules(found, groups)


def written(text: str, arm: str, operands: str) -> str:
    """A definition with the rules of an arm."""
    head = re.escape(f'[arm."{arm}"]' if "." in arm else f"[arm.{arm}]")
    result, count = re.subn(rf'(^{head}\n(?:.+\n)*?operands = )".*"$', rf'\1"{operands}"', text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"choose_mixtures.py: {DEFINITION.name} has no operands of {arm}")
    return result


def main(options: list[str]) -> int:
    text = DEFINITION.read_text()
    definition = tomllib.loads(text)
    torch.set_num_threads(1)
    for network in NETWORKS:
        for arm, operands in mixtures(network, definition["arm"], definition["settings"], bool(options)):
            print(f"{arm}: {operands}", flush=True)
            text = written(text, arm, operands)
    if not options:
        DEFINITION.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

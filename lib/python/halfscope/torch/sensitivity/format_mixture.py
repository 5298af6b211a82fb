"""Result of `choose`: a format for each unit, as exceptions of `emulate`, beside uniform formats."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfscope.reporting import Finding, Report, Reported
from halfscope.results.dataframes import frame
from halfscope.text_tables import aligned
from halfscope.torch.sensitivity.experiment_toml import experiment_toml
from halfscope.torch.sensitivity.measurement import Subject
from halfscope.torch.sensitivity.mixture_trials import Tried, unit_formats
from halfscope.torch.sensitivity.operand_images import STATIC
from halfscope.torch.sensitivity.runtime_configs import runtime_config
from halfscope.torch.sensitivity.unit_scores import FEWEST_SAMPLES
from halfscope.torch.words import counted, listed, to_paste

if TYPE_CHECKING:
    import pandas as pd

MIXTURE = "mixture"
EVERY = "*"


@dataclass(frozen=True)
class Evidence:
    """Trials by name, of uniform formats and of the mixture, on the calibration batches and on held-out ones."""

    bits: Mapping[str, float]
    times: Mapping[str, float] | None  # with a table of speeds, which the limit is on then
    limit: float  # bits, or time, of the uniform formats that the mixture is held against
    calibration: Mapping[str, Tried]
    held_out: Mapping[str, Tried] | None
    seed: int

    @property
    def judged(self) -> Mapping[str, Tried]:
        """The trials that judge: held-out ones where there are any."""
        return self.held_out or self.calibration

    def best_uniform(self) -> str | None:
        """The uniform format within the limit that has the least KL."""
        prices = self.bits if self.times is None else self.times
        known = [name for name in self.judged if name != MIXTURE and prices[name] <= self.limit + 1e-9]
        return min(known, key=lambda name: self.judged[name].mean, default=None)

    def gain(self) -> tuple[float, float]:
        """Interval of how much less KL the mixture has than the best uniform format; NaN without one."""
        best = self.best_uniform()
        if best is None:
            return math.nan, math.nan
        return self.judged[MIXTURE].less(self.judged[best], self.seed)


class FormatMixture(Reported):
    """A format for each unit, with the trials that it was chosen by."""

    def __init__(self, subject: Subject, formats: Mapping[str, str], evidence: Evidence, effort: str) -> None:
        """formats: by group; effort: what the choice took, in words."""
        self._subject, self._evidence, self._effort = subject, evidence, effort
        self.groups: dict[str, str] = dict(formats)

    @property
    def formats(self) -> dict[str, str]:
        """Format of each unit by name; units that stay FP32 are not among them."""
        return {unit: format for group, format in self.groups.items() for unit in self._subject.groups[group]}

    @property
    def bits(self) -> float:
        """Bits per weight of the units that have a format, scales included."""
        return self._evidence.bits[MIXTURE]

    @property
    def time(self) -> float | None:
        """Time of the products with these weights over that at a speed of 1; None without a table of speeds."""
        times = self._evidence.times
        return None if times is None else times[MIXTURE]

    @property
    def bytes(self) -> int:
        """Bytes of the weights of the units that have a format, scales of whole blocks included."""
        return math.ceil(self._subject.bits(self.groups) / 8)

    @property
    def kl(self) -> float:
        """Nats per term from FP32: on held-out batches, where there are any."""
        return self._evidence.judged[MIXTURE].mean

    @property
    def is_better_than_uniform(self) -> bool | None:
        """Whether it has less KL than the best uniform format within the limit; None where the interval has both."""
        low, high = self._evidence.gain()
        return True if low > 0 else False if high <= 0 else None

    @property
    def exceptions(self) -> dict[str, dict[str, str]]:
        """For `emulate(model, "fp32", exceptions=...)`: the most frequent format for all units, and others.

        Raises ValueError for a format with static scales, which `emulate` has not.
        """
        if self._has_static(self.formats):
            raise ValueError("exceptions: emulate has no static scales; .formats names the formats of the units")
        return exceptions_of(self._subject, self.formats)

    def config(self, runtime: str) -> dict[str, Any]:
        """The mixture for a runtime, as its own loader takes it: "modelopt", "compressed-tensors" or "torchao".

        Units in "bf16" and modules without a format are left as they are, for a model whose weights are BF16. The
        runtime makes the scales by rules of its own, which the trials do not have.

        modelopt: a dictionary for `mtq.quantize(model, config, forward_loop)`; JSON has not its tuples and whole keys.
            Checked with nvidia-modelopt 0.47.0: after `mtq.quantize` the quantizers of each layer are these, and those
            of all others are off.
        compressed-tensors: JSON for `QuantizationConfig.model_validate`; layers are to be quantized by it. Checked with
            compressed-tensors 0.20.0: after `apply_quantization_config` each layer has its scheme, a preset's for
            block formats, and no other layer has one.
        torchao: JSON for `torchao.core.config.config_from_dict`, whose result is for `quantize_(model, config,
            filter_fn=None)`. Checked with torchao 0.18.0: `quantize_` hands each layer its config, and no other one.

        Raises ValueError, in one line, for a format that the runtime has not and for a unit that is no linear layer.
        """
        return runtime_config(self._subject.calibration.model, unit_formats(self._subject, self.groups), runtime)

    def experiment(self, base: str, layers: Mapping[str, str] | None = None) -> str:
        """TOML of an experiment for `halfscope run`: FP32, the mixture, and the best uniform format within its limit.

        The arms train a network of the simulator in these formats; `halfscope report` tells each beside FP32.

        base: a built-in experiment, whose network, data and metric are taken over, such as "fp4-components".
        layers: the simulator's name of each unit; by default they have the same.

        Raises ValueError for a unit without a name, and for static scales.
        """
        uniform, formats = self._evidence.best_uniform(), self._subject.formats
        units = unit_formats(self._subject, self.groups)
        return experiment_toml(units, None if uniform is None else formats[uniform], base, layers)

    @property
    def report(self) -> Report:
        """The exceptions to type, or the uniform format that is as good; why, and how sure."""
        uniform = self._evidence.best_uniform()
        is_as_good = self._evidence.gain()[0] <= 0  # not where too few sequences tell
        finding = self._uniform(uniform) if is_as_good and uniform is not None else self._mixture(uniform)
        name = "formats" if self._has_static(finding.about) else "exceptions"
        lines = [finding.change, *to_paste(name, finding.about), f"  Why: {finding.why}", f"  Sure: {finding.sure}"]
        return Report("choose", (finding,), about=self._about(), text="\n".join(lines), table=self.table())

    def _mixture(self, uniform: str | None) -> Finding:
        kept = self._evidence.judged
        why = f"{kept[MIXTURE].mean:.3g} nats per term from FP32 at {self._price_words(MIXTURE)}"
        if uniform is not None:
            why += f"; {uniform} for all units has {kept[uniform].mean:.3g} at {self._price_words(uniform)}"
        if self._has_static(self.formats):
            change = "Quantize the units so, with the calibrated scales where they are static:"
            return Finding("mixture", change, why, self._sure(uniform), self.formats)
        change = 'Type emulate(model, "fp32", exceptions=exceptions) with'
        return Finding("mixture", change, why, self._sure(uniform), self.exceptions)

    def _uniform(self, uniform: str) -> Finding:
        kept = self._evidence.judged
        formats = dict.fromkeys(self.formats, uniform)
        relation = "is as good as" if self.is_better_than_uniform is False else "is not told from"
        why = (
            f"{kept[uniform].mean:.3g} nats per term from FP32 at {self._price_words(uniform)} {relation} "
            f"the mixture's {kept[MIXTURE].mean:.3g} at {self._price_words(MIXTURE)} "
            f"({'.formats' if self._has_static(self.formats) else '.exceptions'})"
        )
        if self._has_static(formats):
            change = f"Use {uniform} for all units, with the calibrated scales:"
            return Finding("uniform", change, why, self._sure(uniform), formats)
        change = f'Use {uniform} for all units: emulate(model, "fp32", exceptions=exceptions) with'
        return Finding("uniform", change, why, self._sure(uniform), exceptions_of(self._subject, formats))

    def _price_words(self, name: str) -> str:
        """4.25 bits; with a table of speeds the time too."""
        bits = f"{self._evidence.bits[name]:{'.2f' if name == MIXTURE else 'g'}} bits"
        times = self._evidence.times
        return bits if times is None else f"{bits} and {times[name]:.3g} of the time"

    @staticmethod
    def _has_static(formats: Mapping[str, Any]) -> bool:
        """Whether a unit has a format with static scales, which `emulate` has not; exceptions have none."""
        return any(str(format).endswith(STATIC) for format in formats.values())

    def _sure(self, uniform: str | None) -> str:
        evidence = self._evidence
        count = len(evidence.judged[MIXTURE].terms)
        where = "held-out" if evidence.held_out else "calibration"
        words = f"tried on {counted(count, f'{where} sequence')}"
        low, high = evidence.gain()
        if uniform is not None and not math.isnan(low):
            words += f"; {uniform} minus mixture {low:.3g} to {high:.3g} nats (95 %)"
        elif uniform is not None:
            words += f"; too few to tell it from {uniform}: {FEWEST_SAMPLES} give an interval"
        return words if evidence.held_out else f"{words}; the same batches chose it: give held_out="

    def to_pandas(self) -> pd.DataFrame:
        """A row for the mixture and for each uniform format: bits, nats and their 95 % interval, of trials that judge.

        Raises ImportError without pandas.
        """
        evidence = self._evidence
        trials = evidence.judged.items()
        rows = [[name, evidence.bits[name], tried.mean, *tried.interval(evidence.seed)] for name, tried in trials]
        return frame(rows, columns=["format", "bits", "nats", "low", "high"]).set_index("format")

    def table(self) -> str:
        """Bits and nats of the mixture and of uniform formats."""
        evidence = self._evidence
        rows = [("", "bits", "calibration", "held out", "95 % interval")]
        for name in sorted(evidence.calibration, key=lambda each: evidence.judged[each].mean):
            low, high = evidence.judged[name].interval(evidence.seed)
            held = "-" if evidence.held_out is None else f"{evidence.held_out[name].mean:.3g}"
            interval = "-" if math.isnan(low) else f"{low:.3g} to {high:.3g}"
            bits = f"{evidence.bits[name]:.2f}"
            rows.append((name, bits, f"{evidence.calibration[name].mean:.3g}", held, interval))
        return aligned(rows, right=False)

    def _about(self) -> str:
        subject = self._subject
        left = [group for group in subject.groups if group not in self.groups]
        words = f"KL from FP32 in nats per term of the loss. {self._effort}."
        caches = any(subject.units.by_name[unit].is_cache for group in left for unit in subject.groups[group])
        kind = "embeddings and caches" if caches else "an embedding"
        return f"{words} FP32 stay {listed(left)}: emulate has no rule for {kind}." if left else words


def exceptions_of(subject: Subject, formats: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Rules of `emulate` for the formats of units by name.

    One rule for all modules comes first where every product of the model has a unit; else each unit has its own.
    """
    counts = Counter(dict.fromkeys(formats.values(), 0))
    for unit, format in formats.items():
        counts[format] += subject.units.by_name[unit].elements
    (most, _), *_ = counts.most_common(1)
    units = subject.units
    covers = not units.without_gradient and not units.uncovered(subject.calibration.model)
    exceptions = {EVERY: {"operands": subject.formats[most].rule}} if covers else {}
    others = {unit: format for unit, format in formats.items() if not covers or format != most}
    exceptions |= {_literal(unit): {"operands": subject.formats[format].rule} for unit, format in others.items()}
    return exceptions


def _literal(name: str) -> str:
    """A glob that matches `name` alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)

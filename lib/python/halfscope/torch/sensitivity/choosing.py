"""`choose`: a mixture of formats under a budget, with the trials that prove it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from halfscope.torch.sensitivity.calibration import Calibration
from halfscope.torch.sensitivity.format_mixture import MIXTURE, Evidence, FormatMixture
from halfscope.torch.sensitivity.measurement import Subject
from halfscope.torch.sensitivity.mixture_search import Scores, Search
from halfscope.torch.sensitivity.mixture_trials import tried
from halfscope.torch.words import called, counted


@dataclass(frozen=True)
class Limit:
    """The limit on a mixture: one of the first four."""

    bits: float | None = None  # per weight
    bytes: float | None = None  # all weights together
    max_kl: float | None = None  # nats per term of the loss
    time: float | None = None  # products with weights, over their time at a speed of 1
    speeds: Mapping[str, float] | None = None  # products, by format

    def check(self, formats: Iterable[str]) -> None:
        """Raises ValueError for none, for two, for a number that is not positive, and for formats without a speed."""
        given = {name: getattr(self, name) for name in ("bits", "bytes", "max_kl", "time")}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "choose: give one of bits=4.5, bits per weight, bytes=2**20, of all weights, max_kl=0.01, nats per "
                "term of the loss, and time=0.4 with speeds={FORMAT: SPEED}"
            )
        ((name, value),) = given.items()
        _check_positive(name, value)
        if (self.speeds is None) is (name == "time"):
            raise ValueError("choose: time= and speeds= go together: time=0.4, speeds={'nvfp4': 4, 'bf16': 1}")
        if self.speeds is None:
            return
        for format in formats:
            if format not in self.speeds:
                raise ValueError(f"choose: speeds: none for {format}, which is one of the formats")
            _check_positive(f"speeds[{format!r}]", self.speeds[format])

    def prices(self, subject: Subject) -> dict[str, float]:
        """Price of a weight in each format: its bits, or its time."""
        if self.speeds is None:
            return {name: format.bits for name, format in subject.formats.items()}
        return {name: 1 / self.speeds[name] for name in subject.formats}

    def price_per_weight(self, elements: int) -> float | None:
        """None where the limit is on nats."""
        if self.bytes is not None:
            return 8 * self.bytes / elements
        return self.bits if self.time is None else self.time


def _check_positive(name: str, value: object) -> None:
    if not (isinstance(value, (int, float)) and 0 < value < math.inf):
        raise ValueError(f"choose: {name}={value!r}; give a positive number")


def choose(subject: Subject, scores: Scores, limit: Limit, held_out: Iterable[Any] | None) -> FormatMixture:
    """As `Sensitivity.choose` has it."""
    limit.check(subject.formats)
    others = None if held_out is None else subject.calibration.with_batches(held_out)
    search = Search(subject, scores, _groups(subject, scores), limit.prices(subject))
    price = limit.price_per_weight(search.elements)
    mixture = _within_nats(search, float(limit.max_kl or 0)) if price is None else _within_price(search, price, limit)
    evidence = _evidence(search, mixture, limit, others)
    if not math.isfinite(evidence.calibration[MIXTURE].mean):
        raise ValueError(
            "choose: the mixture is not finite on the calibration batches; leave out formats of few exponents"
        )
    effort = f"{counted(search.trials, 'mixture')} tried; scored beside a mixture {counted(search.rounds, 'time')}"
    return FormatMixture(subject, mixture, evidence, effort)


def _groups(subject: Subject, scores: Scores) -> tuple[str, ...]:
    """Groups that rules can give a format. Raises ValueError for one that is finite in no format, and for none."""
    found = tuple(group for group in subject.groups if not subject.is_scored_only(group))
    for group in found:
        if not any((group, format) in scores for format in subject.formats):
            raise ValueError(
                f"choose: '{called(group)}' is finite in none of {', '.join(subject.formats)}; add 'bf16' to formats="
            )
    if not found:
        raise ValueError("choose: the model has no linear layer, convolution or recurrent layer to give a format")
    return found


def _within_price(search: Search, price: float, limit: Limit) -> dict[str, str]:
    """limit: as given, for the error."""
    mixture = search.within_price(price)
    if mixture is None:
        fewest = sum(min(formats.values()) for formats in search.predicted().prices.values())
        raise ValueError(f"choose: {_too_little(limit, fewest, search.elements)}")
    return mixture


def _too_little(limit: Limit, fewest: float, elements: int) -> str:
    if limit.bytes is not None:
        size = math.ceil(fewest / 8)
        return f"bytes={limit.bytes:.10g}: these formats take {size} or more; give bytes={size}"
    if limit.time is not None:
        least = f"{math.ceil(1e3 * fewest / elements) / 1e3:g}"
        return f"time={limit.time:g}: these formats take {least} or more; give time={least}"
    each = f"{fewest / elements:.2f}"
    return f"bits={limit.bits:g}: these formats take {each} or more; give bits={each}"


def _within_nats(search: Search, max_kl: float) -> dict[str, str]:
    mixture = search.within_nats(max_kl)
    if mixture is None:
        raise ValueError(
            f"choose: max_kl={max_kl:g}: no mixture of {', '.join(search.subject.formats)} that was tried is within "
            "it; give a larger one, or add 'bf16' to formats="
        )
    return mixture


def _evidence(search: Search, mixture: dict[str, str], limit: Limit, held_out: Calibration | None) -> Evidence:
    """Trials of the mixture, and of each format for all units."""
    subject, own = search.subject, search.predicted().total(mixture, "prices") / search.elements
    uniform = [name for name in subject.formats if all((group, name) in search.scores for group in search.groups)]
    names = {MIXTURE: mixture, **{name: dict.fromkeys(search.groups, name) for name in uniform}}
    calibration = dict(zip(names, search.trial(*names.values())))
    outside = None if held_out is None else dict(zip(names, tried(subject, list(names.values()), held_out)))
    own_bits = subject.bits(mixture) / search.elements
    bits = {MIXTURE: own_bits, **{name: subject.formats[name].bits for name in uniform}}
    times = None if limit.speeds is None else {MIXTURE: own, **{name: search.prices[name] for name in uniform}}
    most = max(own, limit.price_per_weight(search.elements) or 0)
    return Evidence(bits, times, most, calibration, outside, subject.seed)

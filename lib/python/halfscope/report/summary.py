"""The table that opens a report: a row per experiment."""

from __future__ import annotations

from html import escape

from halfscope.results import Experiment
from halfscope.results.claims import HOLDS, NOT_JUDGED, judgement

FEW_ARMS = 4  # whose results a row spells out


def summary_row(experiment: Experiment) -> str:
    """The experiment, its claim, what came out, and whether the claim holds."""
    claim = experiment.summary.get("claim") or {"text": "", "holds": None, "expectations": []}
    word = judgement(claim) if claim["expectations"] else NOT_JUDGED
    name = escape(experiment.name)
    return (
        f'<tr><th scope="row"><a href="#{name}">{name}</a></th><td>{escape(claim["text"] or experiment.title)}</td>'
        f"<td>{escape(_outcome(experiment, claim['expectations']))}</td>"
        f'<td class="{word.replace(" ", "-")}">{word}</td></tr>'
    )


def _outcome(experiment: Experiment, expectations: list[dict]) -> str:
    """The arms that the claim is about with their metric, or how many of many are as expected."""
    if not expectations:
        return ""
    arms = list(dict.fromkeys(name for line in expectations for name in (line["baseline"], line["arm"])))
    if len(arms) <= FEW_ARMS:
        return f"{experiment.metric_label}: {', '.join(_result(experiment, arm) for arm in arms)}"
    others = [f"{line['arm']} {judgement(line)}" for line in expectations if judgement(line) != HOLDS]
    as_expected = f"{len(expectations) - len(others)} of {len(expectations)} arms as expected"
    return as_expected + (f"; {', '.join(others)}" if others else "")


def _result(experiment: Experiment, name: str) -> str:
    arm = next((arm for arm in experiment.arms if arm.name == name), None)
    if arm is None:
        return f"{name} not run"
    return f"{name} diverged" if arm.mean is None else f"{name} {arm.mean:.{experiment.digits}f}"

"""Recounts a rule of the advisor: the trainings at loss scales that are recorded, beside FP32 runs trained again.

The records of advice-validity and narrow-windows hold a line of each training and no histograms, so that another rule
asks for the FP32 arms again. These have the recorded losses to the digit, or nothing is written. Predictors that they
lack, such as probes of every scale, which take the most time, keep their recorded values.

    halfscope run narrow-windows --arms gru_adam_fp32,... --seeds 3 --out DIR
    python -m recording.recount DIR/narrow-windows experiments/recorded/cpu/narrow-windows HALFSCOPE
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from halfscope.results.json_files import FORMAT_VERSION, read_json
from halfscope.results.packed import ENVIRONMENT
from halfscope.text_tables import aligned
from recording.pack_results import report_of

SUMMARY = "summary.json"
RECOUNTED = ("harm", "findings", "verdict")  # parts of a summary that the advisor's rule has a part in
STEPS = ("first", "all", "mean")
PROBED = ". With one: "  # in a verdict, before the predictor that has probes
AS_RECORDED = ("task", "set", "seed", "scale_log2", "loss_ratio", "harmed")  # keys of a training that no rule changes


def recount(results: Path, record: Path, program: Path) -> None:
    """Writes summary, report and environment of `record` anew.

    results: the experiment's folder with its FP32 arms, of all recorded seeds. program: halfscope with the new rule.

    Raises ValueError where an FP32 run is missing, or ended at another loss than the recorded one.
    """
    recorded = read_json(record / SUMMARY)
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / record.name
        _write_runs(recorded, results, runs)
        report = report_of(program, "--save", runs)
        made = read_json(runs / SUMMARY)
    _require_same_trainings(recorded, made)
    report = _keep_predictors(recorded, made, report)
    recorded |= {key: made[key] for key in RECOUNTED}
    (record / SUMMARY).write_text(json.dumps(recorded, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (record / "report.txt").write_text(report, encoding="utf-8")
    _write_environment(recorded, results, record)


def _write_runs(recorded: dict, results: Path, runs: Path) -> None:
    """A folder for each recorded run: FP32's as trained again, of the others how they ended."""
    for arm in recorded["arms"]:
        for seed, value in zip(arm["seed_list"], arm["values"]):
            run = runs / arm["arm"] / f"seed{seed}"
            run.parent.mkdir(parents=True, exist_ok=True)
            if arm["baseline"] is None:
                shutil.copytree(_same_run(results / arm["arm"] / run.name, value), run)
            else:
                run.mkdir()
                ending = _ending(recorded["experiment"], arm["arm"], seed, value)
                (run / SUMMARY).write_text(json.dumps(ending), encoding="utf-8")


def _same_run(run: Path, value: float) -> Path:
    if not (run / SUMMARY).exists():
        raise ValueError(f"{run}: no finished run; a recount needs every FP32 arm with all recorded seeds")
    found = read_json(run / SUMMARY)["train_loss"]
    if found != value:
        raise ValueError(f"{run}: it ends at {found!r}, the recorded run at {value!r}; record all arms anew")
    return run


def _ending(experiment: str, arm: str, seed: int, loss: float | None) -> dict:
    """A run's summary as far as harm is read from it; without a loss it diverged."""
    return {
        "format_version": FORMAT_VERSION,
        "experiment": experiment,
        "arm": arm,
        "seed": seed,
        "diverged": loss is None,
        "diverged_step": 1 if loss is None else None,
        "metric": None,
        "train_loss": loss,
    }


def _require_same_trainings(recorded: dict, made: dict) -> None:
    """No rule changes how a training ended."""
    before, now = (
        [[line[key] for key in AS_RECORDED] for line in found["harm"]["trainings"]] for found in (recorded, made)
    )
    if before != now:
        raise ValueError(f"{recorded['experiment']}: the trainings are not those recorded; record all arms anew")


def _keep_predictors(recorded: dict, made: dict, report: str) -> str:
    """Adds what `made` lacks of the recorded predictors to it, and to its report."""
    before, now = recorded["harm"], made["harm"]
    lines = {_key(line): line for line in now["predictors"]}
    kept = {_key(line): line for line in before["predictors"] if _key(line) not in lines}
    if not kept:
        return report
    order = sorted(lines | kept, key=lambda key: STEPS.index(key[1]))  # stable: recorded ones follow in their steps
    places = [list(map(_key, found["predictors"])) for found in (before, now)]
    for old, new in zip(before["trainings"], now["trainings"]):
        values = dict(zip(places[0], old["predictors"])) | dict(zip(places[1], new["predictors"]))
        new["predictors"] = [values[key] for key in order]
    now["predictors"] = [(lines | kept)[key] for key in order]
    section, recorded_section = (_predictor_section(found) for found in (made, recorded))
    rows = {tuple(row[:2]): row for row in (*recorded_section["rows"], *section["rows"])}
    table = _indented([section["columns"], *section["rows"]])
    section["rows"] = [rows[key] for key in order]
    verdict = made["verdict"].removesuffix(".") + recorded["verdict"][recorded["verdict"].index(PROBED) :]
    report = report.replace(table, _indented([section["columns"], *section["rows"]])).replace(made["verdict"], verdict)
    made["verdict"] = verdict
    return report


def _key(predictor: dict) -> tuple[str, str]:
    return predictor["name"], predictor["steps"]


def _predictor_section(summary: dict) -> dict:
    return next(
        section
        for finding in summary["findings"]
        for section in finding["sections"]
        if section["columns"][:1] == ["predictor"]
    )


def _indented(rows: list[list[str]]) -> str:
    return "\n".join(f"  {line}" for line in aligned(rows).splitlines())


def _write_environment(recorded: dict, results: Path, record: Path) -> None:
    """Names the machine of the FP32 runs beside that of the trainings."""
    baseline = next(arm for arm in recorded["arms"] if arm["baseline"] is None)
    again = read_json(results / baseline["arm"] / f"seed{baseline['seed_list'][0]}" / ENVIRONMENT)
    environment = read_json(record / ENVIRONMENT)
    environment["fp32_again"] = {key: again[key] for key in ("git_revision", "cpu", "instruction_set")}
    (record / ENVIRONMENT).write_text(json.dumps(environment, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print("usage: python -m recording.recount RESULTS/EXPERIMENT RECORDED/EXPERIMENT PROGRAM", file=sys.stderr)
        return 2
    try:
        recount(*map(Path, arguments))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

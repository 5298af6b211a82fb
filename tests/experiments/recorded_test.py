"""Recorded results: tables and summaries are what the recorded runs say, byte for byte, and the settings of the runs,
which several versions wrote, are the settings that their arms have today."""

import json
import shutil
import unittest
import uuid
from pathlib import Path

from program import WithFolder, halfscope

RECORDED = Path(__file__).parents[2] / "experiments/recorded"
DERIVED = ("summary.json", "report.txt")
# Hundreds of runs, of which the summary alone is kept.
WITHOUT_RUNS = {"advice-validity", "narrow-windows"}


def read_runs(experiment):
    """The recorded runs, each with its whole config."""
    head, *runs = (json.loads(line) for line in (experiment / "runs.jsonl").read_text().splitlines())
    return [{**run, "config": {**head["config"], **run["config"]}} for run in runs]


def names(runs, key):
    """Comma-separated, each once."""
    return ",".join(dict.fromkeys(str(run[key]) for run in runs))


def hash_of_runs(listed):
    return {(run["arm"], run["seed"]): run["config_hash"] for run in listed}


def recorded_keys():
    """Keys of a config.json, in its order: those that `list settings` calls recorded."""
    listed = json.loads(halfscope("list", "settings", "--json").stdout)
    settings = [setting["recorded"] for setting in listed["settings"]]
    return list(dict.fromkeys(["format_version", "experiment", "arm", *settings]))


def hash_of(config, keys):
    text = json.dumps({key: config[key] for key in keys if key in config}, indent=2, ensure_ascii=False) + "\n"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


def one_of_each(runs):
    """Arm and seed of a run for each set of settings: seeds of one version differ in nothing else."""
    settings = {(run["arm"], json.dumps({**run["config"], "seed": 0}, sort_keys=True)): run["seed"] for run in runs}
    return [(arm, seed) for (arm, _), seed in settings.items()]


class Recorded(WithFolder):
    def listed(self, name, *options):
        """The runs that the program would train today."""
        return json.loads(self.run_ok("run", name, *options, "--out", self.folder, "--list-runs", "--json"))["runs"]

    def write_runs(self, name, runs):
        for run in runs:
            folder = self.folder / name / run["arm"] / f"seed{run['seed']}"
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(json.dumps(run["config"]))
            (folder / "summary.json").write_text(json.dumps(run["summary"]))
            (folder / "status").write_text("DONE\n")

    def test_settings_are_those_of_todays_arms(self):
        experiments = [path for path in sorted(RECORDED.glob("*/*")) if path.name not in WITHOUT_RUNS]
        self.assertGreater(len(experiments), 20)
        keys = recorded_keys()
        for experiment in experiments:
            with self.subTest(experiment.name):
                runs = read_runs(experiment)
                self.write_runs(experiment.name, runs)
                # Undecided arms have more seeds than the others.
                listed = self.listed(experiment.name, "--arms", names(runs, "arm"), "--seed-list", names(runs, "seed"))
                recorded = {(run["arm"], run["seed"]) for run in runs}
                today = [run for run in listed if (run["arm"], run["seed"]) in recorded]
                self.assertEqual([run["state"] for run in today], ["done"] * len(runs))
                self.assertEqual({run["state"] for run in listed if run not in today} - {"new"}, set())
                hashes = hash_of_runs(today)
                self.assertEqual(hashes, {(run["arm"], run["seed"]): hash_of(run["config"], keys) for run in runs})
                self.assertEqual(len(set(hashes.values())), len(runs))
                for arm, seed in one_of_each(runs):
                    config = self.folder / experiment.name / arm / f"seed{seed}/config.json"
                    # A run that starts from another's weights brings it along.
                    read = hash_of_runs(self.listed(experiment.name, "--arms", arm, "--config", config))
                    self.assertEqual(read[arm, seed], hashes[arm, seed], config)

    def test_summaries_and_reports_are_made_of_the_runs(self):
        experiments = sorted(path.parent for path in RECORDED.glob("*/*/summary.json"))
        self.assertGreater(len(experiments), 20)
        for experiment in experiments:
            if experiment.name in WITHOUT_RUNS:
                continue
            with self.subTest(experiment.name):
                made = self.folder / experiment.name
                shutil.copytree(experiment, made, ignore=shutil.ignore_patterns(*DERIVED))
                done = halfscope("report", "--save", made)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for name in DERIVED:
                    self.assertEqual((made / name).read_text(), (experiment / name).read_text(), name)


if __name__ == "__main__":
    unittest.main()

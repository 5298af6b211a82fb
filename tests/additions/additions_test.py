"""A new entry of each table is one file, and its declaration and line in the table's header; a new experiment is one file, and
a new column one line.

    additions_test.py SOURCE WORK [CMAKE-OPTION...]

Copies the tree SOURCE into the folder WORK, adds a sample of each kind, builds the program and the tests, and looks for the
samples in `halfscope list` and in the tests that loop over the tables.
"""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"


@dataclasses.dataclass(frozen=True)
class Addition:
    """One sample. `declared_before` and `line_before` say where its two lines go in `header`."""

    name: str
    header: str = ""  # empty: the file is all that it takes
    line: str = ""  # the table's line; empty where the table has declarations alone
    file: str = ""
    declaration: str = ""
    declared_before: str = ""
    table: str = ""  # how the table begins
    line_before: str = "};"  # the line goes before this one
    listed: str = ""  # its name in `halfscope list`
    tests: tuple[str, ...] = ()  # (program, test case): it loops over the table and names the entry


ADDITIONS = {
    "format": Addition(
        header="lib/halfscope/format/catalogue.hpp",
        name="sample_format",
        line='NamedFormat{"sample_format", FloatFormat{3, 5}, "a sample"},',
        table="inline constexpr std::array format_catalogue{",
        listed="formats",
        tests=("halfscope_tests", "names are the catalogue's where it has one"),
    ),
    "scaler": Addition(
        header="lib/halfscope/scaling/scalers.hpp",
        name="sample_scaler",
        file="lib/halfscope/scaling/scalers/sample.cpp",
        declaration="[[nodiscard]] std::unique_ptr<LossScaler> make_sample_scaler(const ScalerSettings& options);",
        declared_before="/// `options` are the rule's",
        line='ScalerEntry{"sample_scaler", "a sample", make_sample_scaler, {{"initial_scale", 1024}}},',
        table="inline constexpr std::array scaler_table{",
        listed="scalers",
        tests=("halfscope_tests", "a scaler restored half-way goes on as one that never stopped"),
    ),
    "log format": Addition(
        header="lib/halfscope/scaling/detail/log_formats.hpp",
        name="sample_log",
        file="lib/halfscope/scaling/logs/sample.cpp",
        declaration="LogLineReader read_sample(const LogColumns&);",
        declared_before="/// The scalars of an event file",
        line='LogFormat{"sample_log", "A log of a sample", read_sample},',
        table="inline constexpr std::array log_formats{",
        tests=("halfscope_tests", "every log format has a name of its own, and is read or named with a remedy"),
    ),
    "all-reduce order": Addition(
        header="lib/halfscope/arithmetic/all_reduce.hpp",
        name="sample_order",
        file="lib/halfscope/arithmetic/all_reduce/sample_order.cpp",
        declaration="[[nodiscard]] AddPlan plan_sample_order(const AllReduceBuffer& buffer);",
        declared_before="/// Which numbers partial sums are.",
        line='AllReduceOrder{"sample_order", "a sample", plan_sample_order},',
        table="inline constexpr std::array all_reduce_orders{",
        listed="all-reduces",
        tests=("halfscope_tests", "trees are NCCL's, and sequences have every rank once"),
    ),
    "tracker": Addition(
        header="lib/halfscope/stats/trackers.hpp",
        name="sample_tracker",
        file="lib/halfscope/stats/sample_tracker.cpp",
        declaration="[[nodiscard]] std::unique_ptr<Tracker> make_sample_tracker(const TrackerOptions& options = {});",
        declared_before="struct TrackerEntry {",
        line='TrackerEntry{"sample_tracker", "a sample", make_sample_tracker},',
        table="inline constexpr std::array tracker_table{",
        listed="trackers",
        tests=("halfscope_tests", "every tracker of the table can be made and ignores what is not its business"),
    ),
    "update rule": Addition(
        header="lib/nn/update_rules.hpp",
        name="SampleStep",
        file="lib/nn/update_rules/sample.hpp",
        declaration='#include "lib/nn/update_rules/sample.hpp"',
        declared_before='#include "lib/nn/update_rules/sgd.hpp"',
        line="SampleStep,",
        table="using UpdateRule",
        line_before="AdamStep,",
    ),
    "optimizer": Addition(
        header="sim/optim/optimizers.hpp",
        name="sample_optimizer",
        file="sim/optim/sample_optimizer.cpp",
        declaration="extern const OptimizerKind sample_optimizer_kind;",
        declared_before="struct OptimizerEntry {",
        line='OptimizerEntry{"sample_optimizer", "a sample", sample_optimizer_kind},',
        table="inline constexpr std::array optimizer_table{",
        listed="optimizers",
        tests=("sim_tests", "every optimizer lowers the loss, alike on the CPU and on the device"),
    ),
    "layer": Addition(
        header="sim/layers/layers.hpp",
        name="sample_layer",
        file="sim/layers/sample_layer.cpp",
        declaration="TensorRef sample_layer(Tape& tape, const std::string& name, TensorRef x);",
        declared_before="}  // namespace halfscope",
        tests=("sim_tests", "every layer's forward equals the naive double loop"),
    ),
    "model": Addition(
        header="sim/models/models.hpp",
        name="sample_model",
        file="sim/models/sample_model.cpp",
        declaration="extern const ModelKind sample_model_kind;",
        declared_before="struct ModelEntry {",
        line='ModelEntry{"sample_model", "a sample", sample_model_kind},',
        table="inline constexpr std::array model_table{",
        listed="models",
        tests=("sim_tests", "every model trains on a data set of the table, and each data set has a model"),
    ),
    "data set": Addition(
        header="sim/data/datasets.hpp",
        name="sample_dataset",
        file="sim/data/sample_dataset.cpp",
        declaration="extern const DatasetKind sample_dataset_kind;",
        declared_before="struct DatasetEntry {",
        line='DatasetEntry{"sample_dataset", "a sample", sample_dataset_kind},',
        table="inline constexpr std::array datasets{",
        listed="datasets",
        tests=("sim_tests", "every model trains on a data set of the table, and each data set has a model"),
    ),
    "analysis": Addition(
        header="experiments/analyses/analyses.hpp",
        name="sample_analysis",
        file="experiments/analyses/sample_analysis.cpp",
        declaration="[[nodiscard]] AnalysisResult find_sample(const AnalysisInput& input);",
        declared_before="inline bool is_every(",
        line='AnalysisEntry{"sample_analysis", "a sample", find_sample},',
        table="inline constexpr std::array analyses{",
    ),
    "column": Addition(
        header="experiments/results/arm_columns.cpp",
        name="sample_column",
        line='ArmColumn{"sample_column", "sample", [](Runs runs) { return mean_of(numbers(runs, "steps")); }, InTable::always},',
        table="constexpr std::array columns{",
    ),
    "experiment": Addition(name="sample-experiment", file="experiments/definitions/sample-experiment.toml", listed="experiments"),
}
# A layer is tested by a case of its own.
TEST_FILES = ("tests/sim/layers/sample_layer_cases.cpp",)


def insert_before(text, begin, marker, line):
    """`line` before the first line that begins with `marker`, at or behind the place where `begin` stands."""
    start = text.index(begin)
    at = re.compile(rf"^\s*{re.escape(marker)}", re.MULTILINE).search(text, start).start()
    return text[:at] + line + "\n" + text[at:]


def add(tree, addition):
    """Puts the sample into the tree: its file, and at most two lines of its table's header."""
    if addition.file:
        shutil.copy(SAMPLES / addition.file, tree / addition.file)
    if not addition.header:
        return
    header = tree / addition.header
    before = text = header.read_text()
    if addition.declaration:
        text = insert_before(text, addition.declared_before, addition.declared_before, addition.declaration)
    if addition.line:
        text = insert_before(text, addition.table, addition.line_before, addition.line)
    assert text.count("\n") - before.count("\n") <= 2
    header.write_text(text)


def leave_out_other_tests(tree):
    """Removes the tests of the programs built here that no addition names: a copy compiles the looping ones alone."""
    named = {case for addition in ADDITIONS.values() for _, case in filter(None, [addition.tests])}
    for file in tree.glob("tests/**/*_test.cpp"):
        is_built = not file.is_relative_to(tree / "tests/experiments") and not file.stem.endswith("_exhaustive_test")
        if is_built and not any(case in file.read_text() for case in named):
            file.unlink()


def generated_in(source):
    """The ignore function of a copy of the tree: the top level's generated folders, and compiled Python anywhere."""
    compiled = shutil.ignore_patterns("__pycache__", "*.pyc")
    at_top = {"build", ".git", ".venv", "results"}  # experiments/results is source
    return lambda folder, names: compiled(folder, names) | (at_top & set(names) if Path(folder) == source else set())


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}")
    return done.stdout


class Additions(unittest.TestCase):
    """The tree with every sample in it, built once."""

    source: Path
    work: Path
    options: list[str]

    @classmethod
    def setUpClass(cls):
        tree = cls.work / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(cls.source, tree, ignore=generated_in(cls.source))
        leave_out_other_tests(tree)
        for addition in ADDITIONS.values():
            add(tree, addition)
        for file in TEST_FILES:
            shutil.copy(SAMPLES / file, tree / file)
        cls.build = tree / "build/release"
        run("cmake", "-S", tree, "-B", cls.build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D", "HALFSCOPE_CUDA=OFF",
            "-D", "HALFSCOPE_TESTS=ON", *cls.options)
        run("cmake", "--build", cls.build, "--target", "halfscope_program", "halfscope_tests", "sim_tests")
        cls.program = cls.build / "experiments/halfscope"

    def test_the_program_lists_every_sample(self):
        listed = json.loads(run(self.program, "list", "--json"))
        for kind, addition in ADDITIONS.items():
            if addition.listed:
                with self.subTest(kind):
                    self.assertIn(addition.name, [entry["name"] for entry in listed[addition.listed]])

    def test_the_looping_tests_come_by_every_sample(self):
        for kind, addition in ADDITIONS.items():
            if addition.tests:
                with self.subTest(kind):
                    program, case = addition.tests
                    # -s also prints the checks that hold, with the entry that they are of.
                    seen = run(self.build / "tests" / program, "-s", case.replace(",", "\\,"))
                    self.assertRegex(seen, rf"\b{addition.name}\b")

    def test_the_experiment_runs(self):
        out = self.work / "results"
        shutil.rmtree(out, ignore_errors=True)
        report = run(self.program, "run", "sample-experiment", "--size", "smoke", "--seeds", 1, "--out", out)
        self.assertIn("fp16_s1024", report)
        self.assertRegex(report, r"arm .* sample\b")  # the column's title
        self.assertRegex(report, r"a sample finding\n\n  what +count\n  arms +4\n")
        summary = json.loads((out / "sample-experiment/summary.json").read_text())
        self.assertEqual(summary["sample"], [{"what": "arms", "count": 4}])
        self.assertEqual([arm["sample_column"] for arm in summary["arms"]], [4, 4, 4, 4])

    def test_the_program_trains_with_the_samples(self):
        out = self.work / "results"
        shutil.rmtree(out, ignore_errors=True)
        settings = {"model": "sample_model", "dataset": "sample_dataset", "optimizer": "sample_optimizer",
                    "sample_option": 0.25, "sample_gain": 0.5, "sample_examples": 24, "steps": 4, "batch": 8,
                    "trackers": "sample_tracker", "activation": "sample_format"}
        chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        run(self.program, "run", "sample-experiment", "--arms", "fp16_sample_scaler", "--seeds", 1, "--out", out, *chosen)
        (config,) = (json.loads(path.read_text()) for path in out.rglob("config.json"))
        self.assertLessEqual(settings.items(), config.items())
        self.assertEqual(config["loss_scale"], "sample_scaler")
        self.assertNotIn("label_smoothing", config)  # cnn_bn's
        (metrics,) = (path.read_text() for path in out.rglob("metrics.jsonl"))
        self.assertIn('"fc.weight"', metrics)  # seen by the tracker


if __name__ == "__main__":
    arguments = sys.argv[1:]
    Additions.source, Additions.work, Additions.options = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    unittest.main(argv=sys.argv[:1])

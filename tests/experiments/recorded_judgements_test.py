"""Judgements of the recorded claims, made again from the recorded runs by code of its own: Student's quantiles by
integration, pairs by seed, chance of divergence by binomial coefficients."""

import functools
import json
import math
import unittest
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "experiments/recorded/cpu"
DEFINITIONS = ROOT / "experiments/definitions"
UNTRAINED = 10  # times its metric: a run that ends beyond has diverged


@functools.cache
def student_quantile(freedom):
    """97.5 %: the density integrated by Simpson's rule over the tail's angle, x = sqrt(freedom) tan(angle)."""

    def share_within(angle, steps=400):
        width = angle / steps
        values = [math.cos(i * width / 2) ** (freedom - 1) for i in range(2 * steps + 1)]
        area = sum(values[i] + 4 * values[i + 1] + values[i + 2] for i in range(0, 2 * steps, 2)) * width / 6
        norm = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
        return 2 * norm * area

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if share_within(middle) < 0.95 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def chance_of(alone, seeds):
    """The chance of so many or more in a binomial of 1/4."""
    return sum(math.comb(seeds, k) * 3 ** (seeds - k) for k in range(alone, seeds + 1)) / 4**seeds


def value_of(summary, metric):
    """The metric of a run; None where it diverged."""
    key = metric.get("key", "metric")
    value = summary[key]
    initial = summary.get("initial_metric" if key == "metric" else "initial_loss")
    if summary["diverged"] or value is None:
        return None
    if metric.get("lower_is_better") and initial and initial > 0 and value > UNTRAINED * initial:
        return None
    return value


def values_by_seed(folder, metric, summary):
    """By arm, then by seed; of a record without runs from its summary."""
    if not (folder / "runs.jsonl").exists():
        return {arm["arm"]: dict(zip(arm["seed_list"], arm["values"])) for arm in summary["arms"]}
    values = {}
    for line in (folder / "runs.jsonl").read_text().splitlines()[1:]:
        run = json.loads(line)
        values.setdefault(run["arm"], {})[run["seed"]] = value_of(run["summary"], metric)
    return values


def interval(pairs, metric):
    """How far the first of each pair is behind: the 95 % interval, None below two pairs."""
    if len(pairs) < 2:
        return None
    lower_is_better, by_ratio = metric.get("lower_is_better", False), metric.get("comparison") == "ratio"
    ours, theirs = zip(*pairs)
    by_logarithm = by_ratio and min(ours + theirs) > 0
    if by_logarithm:
        gaps = [math.log(a) - math.log(b) for a, b in pairs]
    else:
        unit = abs(sum(theirs) / len(theirs)) if by_ratio else 1
        gaps = [(a - b) / unit for a, b in pairs]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
    reach = student_quantile(len(gaps) - 1) * deviation / math.sqrt(len(gaps))
    ends = [math.exp(end) - 1 if by_logarithm else end for end in (mean - reach, mean + reach)]
    return tuple(ends) if lower_is_better else (-ends[1], -ends[0])


def judge(ours, theirs, expectation, metric):
    """The judgement, and the interval."""
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) < 2:
        return "not_judged", None
    pairs = [(ours[seed], theirs[seed]) for seed in seeds]
    alone = [sum(a is None and b is not None for a, b in pairs), sum(b is None and a is not None for a, b in pairs)]
    found = interval([pair for pair in pairs if None not in pair], metric)
    expected, margin = expectation["expected"], expectation["margin"]
    too_often = [count > 0 and chance_of(count, len(seeds)) <= 0.025 for count in alone]
    if expected == "as_good":
        outside = found is not None and (found[0] > margin or found[1] < -margin)
        if outside or any(too_often):
            return "does_not_hold", found
        inside = found is not None and -margin <= found[0] and found[1] <= margin and not any(alone)
        return ("holds" if inside else "undecided"), found
    low, high = found or (None, None)
    if expected == "better":
        alone.reverse()
        too_often.reverse()
        low, high = (None, None) if found is None else (-high, -low)
    speaks_for = too_often[0] or (low is not None and low > margin and alone[1] == 0)
    speaks_against = too_often[1] or (high is not None and high <= margin and alone[0] == 0)
    if speaks_for == speaks_against:
        return "undecided", found
    return ("holds" if speaks_for else "does_not_hold"), found


class Judgements(unittest.TestCase):
    def test_quantiles_are_the_tables(self):
        for freedom, quantile in ((1, 12.7062), (2, 4.30265), (4, 2.77645), (9, 2.26216), (19, 2.09302)):
            self.assertAlmostEqual(student_quantile(freedom), quantile, delta=1e-4)
        self.assertEqual(chance_of(3, 3), 1 / 64)

    @unittest.skipIf(tomllib is None, "needs tomllib, Python 3.11")
    def test_every_recorded_claim_is_judged_by_its_runs(self):
        outcomes = {}
        for path in sorted(RECORDED.glob("*/summary.json")):
            with self.subTest(path.parent.name):
                outcomes[path.parent.name] = self.check_claim(path.parent)
        self.assertGreater(len(outcomes), 40)
        self.assertGreater(len(set(outcomes.values())), 1)

    def check_claim(self, folder):
        summary = json.loads((folder / "summary.json").read_text())
        definition = tomllib.loads((DEFINITIONS / f"{folder.name}.toml").read_text())
        metric, claim = definition.get("metric", {}), definition["claim"]
        written = [
            (entry["arm"], entry["expected"], entry.get("margin", claim.get("margin", 0))) for entry in claim["expect"]
        ]
        recorded = summary["claim"]["expectations"]
        self.assertEqual([(entry["arm"], entry["expected"], entry["margin"]) for entry in recorded], written)
        values = values_by_seed(folder, metric, summary)
        outcomes = [self.check_expectation(values, entry, metric) for entry in recorded]
        together = next((word for word in ("does_not_hold", "not_judged", "undecided") if word in outcomes), "holds")
        self.assertEqual(summary["claim"]["judgement"], together)
        return together

    def check_expectation(self, values, entry, metric):
        outcome, found = judge(values[entry["arm"]], values[entry["baseline"]], entry, metric)
        self.assertEqual(entry["judgement"], outcome, entry)
        self.assertEqual(entry["holds"], {"holds": True, "does_not_hold": False}.get(outcome))
        for end, key in zip(found or (None, None), ("low", "high")):
            if end is None:
                self.assertIsNone(entry["difference"][key])
            else:
                self.assertAlmostEqual(entry["difference"][key], end, delta=1e-6 * (1 + abs(end)))
        return outcome


if __name__ == "__main__":
    unittest.main()

"""halfscope replay: traces whose outcome is known, its contract, and traces that are none."""

import json
import math
import os
import subprocess
import unittest

from program import PROGRAM, OnTerminal, WithFolder, halfscope


def step(number, max_abs, scale=1.0, **more):
    return {"step": number, "scale": scale, "gradients": {"finite": True, "max_abs": max_abs, **more}}


def overflow(number, scale):
    return {"step": number, "scale": scale, "gradients": {"finite": False, "max_abs": None}}


def operand_step(number, amax, largest=448.0, operand="forward.left"):
    return {"step": number, "operands": [{"layer": "fc", "operand": operand, "amax": amax, "largest": largest}]}


class Scalings(WithFolder):
    """Scales of operands over recorded largest magnitudes."""

    AMAX = [1, 4, 0, 2, None, 2, 2, 2, 0.5, 0.5, 0.5, 0.5]  # null: infinite

    def trace(self, *records):
        path = self.folder / "metrics.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def replay(self, trace, rules):
        answer = json.loads(self.run_ok("replay", trace, "--scaling", rules, "--json"))
        return {entry["scaling"]: entry for entry in answer["scalings"]}

    def test_known_answers(self):
        """TransformerEngine's fused kernel over these magnitudes, E4M3, three steps of history."""
        trace = self.trace(*[operand_step(i + 1, amax) for i, amax in enumerate(self.AMAX)])
        found = self.replay(trace, "delayed(history=3),delayed(history=3, most_recent),current")
        after = {
            "delayed(history=3)": [448, 112, 112, 112, 112, 112, 112, 224, 224, 224, 896, 896],
            "delayed(history=3, most_recent)": [448, 112, 112, 224, 224, 224, 224, 224, 896, 896, 896, 896],
        }
        for name, scales in after.items():
            (operand,) = found[name]["operands"]
            self.assertEqual([*operand["scales"][1:], operand["next_scale"]], scales)
            self.assertEqual((operand["scales"][0], operand["not_finite"]), (1, 1))
        self.assertEqual(found["current"]["operands"][0]["scales"], [448, 112, 1, 224, 1, 224, 224, 224, 896, 896, 896, 896])
        # Beyond E4M3's 448: 4 at the scale 448, by two binades; 2 at 448 never.
        self.assertEqual((found["delayed(history=3)"]["clipped"], found["delayed(history=3)"]["beyond_log2"]), (1, 2))
        self.assertEqual((found["current"]["clipped"], found["current"]["mean_unused_log2"]), (0, 0))
        # Unused: log2(448) in the first step, then the binades between amax and what the scale is made of.
        unused = [math.log2(448), 1, 1, 1, 1, 2, 2, 2, 0]
        self.assertAlmostEqual(found["delayed(history=3)"]["mean_unused_log2"], sum(unused) / len(unused))

    def test_margin_and_other_formats(self):
        trace = self.trace(*[operand_step(i + 1, 4.0, 57344.0, "weight_gradient.left") for i in range(3)])
        found = self.replay(trace, "delayed(history=16, margin=2)")["delayed(history=16, margin=2)"]
        self.assertEqual(found["operands"][0]["scales"], [1, 3584, 3584])
        self.assertEqual(found["operands"][0]["operand"], "fc.weight_gradient.left")

    def test_a_recorded_run_replays_to_its_own_scales(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--arm", "own:policy=fp8_delayed", "--seeds", "1",
                                "--set", "observe_every=1"))
        path = self.folder / "out/master-copy/own/seed0/metrics.jsonl"
        recorded = {}
        for line in path.read_text().splitlines():
            for entry in json.loads(line).get("operands", ()):
                recorded.setdefault(f"{entry['layer']}.{entry['operand']}", []).append(entry)
        self.assertGreater(len(recorded), 6)
        rules = "delayed,delayed(history=16),delayed(history=1),current"
        found = self.replay(path, rules)
        for name, key in (("delayed", "scale"), ("current", "own_scale")):
            for operand in found[name]["operands"]:
                self.assertEqual(operand["scales"], [entry[key] for entry in recorded[operand["operand"]]], operand)
        table = self.run_ok("replay", path, "--scaling", rules)
        self.assertIn(f"{len(recorded)} operands over", table)
        self.assertEqual([line.split()[0] for line in table.splitlines()[1:5]],
                         ["delayed", "delayed(history=16)", "delayed(history=1)", "current"])

    def test_what_cannot_be_replayed(self):
        steps = self.trace(operand_step(1, 1.0), {"step": 2, "loss": 1.0}, operand_step(3, 1.0))
        self.refuse("replay", steps, "--scaling", "current", says=["step 3 follows step 1", "observe_every=1"])
        self.refuse("replay", self.trace({"step": 1, "loss": 1}), "--scaling", "current", says=["no step has operands"])
        self.refuse("replay", self.trace(operand_step(1, -2)), "--scaling", "current", says=["record 1", "amax = -2"])
        trace = self.trace(operand_step(1, 1.0))
        self.refuse("replay", trace, "--scaling", "latest", says=["'latest'", "delayed(history=N"])
        self.refuse("replay", trace, "--scaling", "delayed(history=0)", says=["history", "1 to"])
        self.refuse("replay", "no-such-file", "--scaling", "latest", says=["'latest'"])  # before a long file is read
        self.refuse("replay", trace, "--scaling", "current", "--set", "growth_interval=2", says=["--scaler"])
        self.refuse("replay", trace, "--scaler", "all", "--scaling", "current", says=["give --scaler", "--scaling"])


class ReplayAlone(WithFolder):
    def test_a_log_without_scalers_begins_with_its_verdict(self):
        path = self.folder / "train.log"
        path.write_text("".join(f"step={step} loss_scale={2.0 ** max(12, 17 - step)}\n" for step in range(1, 40)))
        lines = halfscope("replay", path).stdout.splitlines()
        self.assertRegex(lines[0] + lines[1], "^ *4 steps skipped at the start, while the scale fell from 2")
        rows = [line.split()[0] for line in lines if line.startswith("  recorded ") or "least" in line]
        self.assertEqual(rows, ["recorded"])
        told = json.loads(halfscope("replay", path, "--json").stdout)
        self.assertEqual(told["scalers"], [])
        self.assertIn("4 steps skipped at the start", told["verdict"])

    def test_a_trace_without_scalers_is_refused(self):
        path = self.folder / "trace.jsonl"
        gradients = {"finite": True, "max_abs": 12.5}
        path.write_text(json.dumps({"step": 1, "scale": 65536, "gradients": gradients}) + "\n")
        self.refuse("replay", path, says=["give --scaler"])


class Replay(WithFolder):
    def trace(self, *records):
        path = self.folder / "trace.jsonl"
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
        return path

    def replay(self, trace, scaler, *more):
        answer = json.loads(self.run_ok("replay", trace, "--scaler", scaler, "--json", *more))
        return {entry["scaler"]: entry for entry in answer["scalers"]}

    def test_contract_and_prediction(self):
        trace = self.trace(step(1, 2.0), step(2, 2.0), step(3, 2.0), overflow(4, 32768.0), step(5, 1.0))
        found = self.replay(trace, "dynamic,1024", "--set", "growth_interval=2")
        self.assertEqual(found["dynamic"]["scale_log2"], [16, 15, 14, 14, 15])
        self.assertEqual(found["dynamic"]["skipped"], 2)  # 2^16 and 2^15 times 2; 2^14 is below the recorded 2^15
        self.assertEqual(found["dynamic"]["overflow_steps"], [1, 2])
        self.assertEqual(found["dynamic"]["final_scale_log2"], 15)
        self.assertEqual(found["dynamic"]["first_at_final_scale"], 2)
        self.assertEqual((found["1024"]["skipped"], found["1024"]["scale_log2"]), (0, [10] * 5))
        self.assertIsNone(found["dynamic"]["flushed"])

    def test_gradients_that_are_all_zero_and_scales_without_a_limit(self):
        trace = self.trace(*[step(number, 0.0, 65536.0) for number in range(1, 120)])
        text = " ".join(self.run_ok("replay", trace, "--scaler", "dynamic,apex_amp", "--set", "growth_interval=1").split())
        self.assertIn("119 of them have gradients that are all 0, which no scale changes: look for a loss that is cut off", text)
        self.assertIn("Nothing limits the growth of dynamic, which ends at 2^127 with FP32's range", text)
        self.assertIn("apex_amp ends at 2^24.", text)
        text = self.run_ok("replay", self.trace(step(1, 1.0)), "--scaler", "dynamic")
        self.assertNotIn("Nothing limits", text)

    def test_all_scalers_on_a_recorded_run(self):
        self.run_ok(*self.words("out", "--arms", "fp16_mixed", "--seeds", "1", "--set", "record_gradients=histogram"))
        trace = self.folder / "out/master-copy/fp16_mixed/seed0/metrics.jsonl"
        found = self.replay(trace, "all")
        listed = json.loads(self.run_ok("list", "scalers", "--json"))["scalers"]
        self.assertEqual(list(found), [entry["name"] for entry in listed if entry["name"] != "layerwise"])
        for entry in found.values():
            self.assertEqual(len(entry["scale_log2"]), 30)
            self.assertTrue(0 <= entry["flushed"] <= 1)
        self.assertGreaterEqual(found["none"]["flushed"], found["headroom"]["flushed"])
        # The run's own scale replays to what the run did.
        records = [json.loads(line) for line in trace.read_text().splitlines()]
        own = records[0]["scale"]
        self.assertEqual({record["scale"] for record in records}, {own})
        same = self.replay(trace, f"{own:g}")[f"{own:g}"]
        shares = []
        for record in records:
            h = record["gradients"]["histogram"]
            flushed = sum(h["pow2"][i] if h["first_exponent"] + i == -25 else count if h["first_exponent"] + i < -25 else 0
                          for i, count in enumerate(h["counts"]))
            shares.append(flushed / sum(h["counts"]))
        self.assertTrue(math.isclose(same["flushed"], sum(shares) / len(shares), abs_tol=1e-12))
        text = self.run_ok("replay", trace, "--scaler", "all")
        self.assertIn("headroom", text)
        self.assertIn("30 steps", text)

    def test_replay_equals_training_under_another_scaler(self):
        """In FP32 a scale changes no gradient, so what replay says is what a run does, as long as nothing overflows."""
        words = ("--arms", "fp32", "--seeds", "1", "--set", "record_gradients=histogram")
        self.run_ok(*self.words("plain", *words))
        trace = self.folder / "plain/master-copy/fp32/seed0/metrics.jsonl"
        for scaler, *options in (("headroom",), ("popart",), ("openseq2seq_logmax",),
                                 ("dynamic", "--set", "initial_scale=1", "--set", "growth_interval=7")):
            self.run_ok(*self.words(scaler, *words, "--set", f"scaler={scaler}", *options))
            run = self.folder / scaler / "master-copy/fp32/seed0/metrics.jsonl"
            scales = [math.log2(json.loads(line)["scale"]) for line in run.read_text().splitlines()]
            replayed = self.replay(trace, scaler, *options)[scaler]["scale_log2"]
            for ours, theirs in zip(replayed, scales, strict=True):
                self.assertTrue(math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-9), (scaler, ours, theirs))

    def test_scalers_that_give_up(self):
        trace = self.trace(*(overflow(i, 0.5) for i in range(1, 40)))
        found = self.replay(trace, "deepspeed,headroom,dynamic")
        self.assertIn("minimum of 1", found["deepspeed"]["stopped"])
        self.assertIn("not a scaling problem", found["headroom"]["stopped"])
        self.assertIsNone(found["dynamic"]["stopped"])
        self.assertIn("ends the run at step", self.run_ok("replay", trace, "--scaler", "deepspeed"))

    def test_missing_histograms(self):
        trace = self.trace(step(1, 2.0))
        self.refuse("replay", trace, "--scaler", "popart", says=["trace.jsonl: line 1", "record_gradients=histogram"])
        self.assertNotIn("popart", self.replay(trace, "all"))

    def test_the_table_fits_the_terminal(self):
        trace = self.trace(*(step(i, 2.0) for i in range(1, 40)), overflow(40, 32768.0))
        for columns in (64, 80):
            shown = OnTerminal([PROGRAM, "replay", trace, "--scaler", "deepspeed,deepspeed_consecutive,none,1024"], columns)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertLessEqual(max(map(len, shown.text.splitlines())), columns)
        self.assertIn("left out, the terminal is too narrow: last skip, first at final", " ".join(shown.text.split()))

    def test_sources_that_are_no_file(self):
        self.refuse("replay", "/dev/zero", "--scaler", "all", says=["/dev/zero", "neither a file nor a pipe"])
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        text = json.dumps(step(1, 2.0)) + "\n"
        with subprocess.Popen(["sh", "-c", 'printf %s "$1" > "$2"', "sh", text, pipe]):
            self.assertIn("1024", self.run_ok("replay", pipe, "--scaler", "1024"))

    def test_bad_traces_and_words(self):
        good = step(1, 2.0)
        histogram = {"first_exponent": 0, "counts": [1], "pow2": [1], "top": [0]}
        whole = {"first_exponent": 0, "counts": [3] * 3, "pow2": [0] * 3, "top": [0] * 3, "subnormal_carry": [0] * 3,
                 "zeros": 0, "negative_zeros": 0, "infinities": 0, "nans": 0}
        for line, says in (('{"step": 2', ["line 2", "JSON"]), ("[1]", ["line 2", "expected an object with step"]), ("5", ["line 2", "expected an object"]),
                           (step(1, 1.0), ["line 2", "step 1 after step 1", "ascend"]),
                           (step(0, 1.0), ["line 2", "step 0 after step 1", "ascend"]),
                           (step(1e300, 1.0), ["line 2", "step = 1e+300"]), (step(1.5, 1.0), ["line 2", "step = 1.5"]),
                           (step(2, 1.0, histogram="x"), ["line 2", "histogram record"]),
                           (step(2, 1.0, histogram={**whole, "counts": [2**62] * 3}), ["line 2", "64 bits"]),
                           (step(2, 1.0, histogram={**whole, "counts": [1e300] * 3}), ["line 2", "counts", "integers"]),
                           (step(2, 1.0, histogram={**whole, "counts": [-1] * 3}), ["line 2", "counts"]),
                           (step(2, 1.0, histogram={**whole, "pow2": [9] * 3}), ["line 2", "pow2: 9 of 3"]),
                           (step(2, 1.0, histogram={**whole, "infinities": -3}), ["line 2", "infinities"]),
                           (step(2, 1.0, histogram={**whole, "counts": [2**64 - 1] * 3}), ["line 2", "counts"]),
                           ('{"step": 2, "scale": 1}', ["line 2", "gradients", "record_gradients"]),
                           (step(2, -1.0), ["line 2", "max_abs"]), (step(2, 1.0, scale=0), ["line 2", "scale"]),
                           ({"step": 2, "scale": 1, "gradients": {"finite": 1}}, ["line 2", "finite"]),
                           ({"step": 2, "scale": 1, "gradients": 5}, ["line 2", "finite"]),
                           (step(2, None), ["line 2", "max_abs"]), (step("two", 1.0), ["line 2", "step"]),
                           (step(2, 1.0, histogram=histogram), ["line 2", "subnormal_carry"]),
                           (step(2, 1.0, histogram={"first_exponent": "x", "counts": []}), ["line 2"])):
            with self.subTest(line):
                self.refuse("replay", self.trace(good, line), "--scaler", "dynamic", says=says)
        trace = self.trace(good)
        self.refuse("replay", trace, "--scaler", "dynamc", says=["dynamc", "did you mean 'dynamic'"])
        self.refuse("replay", trace, "--scaler", "dynamic,layerwise", says=["layerwise", "inside the backward pass"])
        for word in ("nan", "-1", "1e39", "0"):
            self.refuse("replay", trace, "--scaler", word, says=[f"'{word}'", "a positive number", "list scalers"])
        self.refuse("replay", trace, "--scaler", "dynamic", "--set", "margin=2", says=["margin", "none of the scalers"])
        self.refuse("replay", trace, "--scaler", "dynamic", "--set", "steps=2", says=["scaler option", "steps"])
        self.refuse("replay", trace, "--scaler", "dynamic", "--set", "growth_interval", says=["KEY=VALUE"])
        self.refuse("replay", self.trace(""), "--scaler", "dynamic", says=["the file is empty;"])
        self.refuse("replay", self.folder / "none.jsonl", "--scaler", "dynamic", says=["none.jsonl"])


if __name__ == "__main__":
    unittest.main()

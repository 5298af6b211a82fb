"""halfscope replay over logs of DeepSpeed and Megatron-LM, written by trainings whose skipped steps are known."""

import json
import random
import subprocess
import unittest
from pathlib import Path

from program import PROGRAM, OnTerminal, WithFolder

LOGS = Path(__file__).with_name("logs")
LIMIT = 65520  # FP16's
INTERVAL = 20  # good steps before a scale grows


class DeepSpeed:
    """Its rule: hysteresis 2 that growth refills, growth where the good steps before are a multiple of INTERVAL."""

    scaler, options = "deepspeed", ["initial_scale=65536", f"growth_interval={INTERVAL}"]

    def __init__(self):
        self.scale, self.hysteresis, self.last_overflow, self.step = 65536.0, 2, -1, 0

    def update(self, overflows):
        line = None
        if overflows:
            before = f"{self.scale:.0f}"
            if self.hysteresis == 1:
                self.scale /= 2
                rest = f", reducing to {self.scale:.0f}"
            else:
                rest = f", but hysteresis is {self.hysteresis}. Reducing hysteresis to {self.hysteresis - 1}"
                self.hysteresis -= 1
            self.last_overflow = self.step
            line = (
                "[INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
                f"Attempted loss scale: {before}{rest}"
            )
        elif (good := self.step - self.last_overflow - 1) > 0 and good % INTERVAL == 0:
            self.scale, self.hysteresis = 2 * self.scale, 2
        self.step += 1
        return line


class Megatron:
    """Its rule: hysteresis 2 that growth refills, growth after INTERVAL steps without overflow."""

    scaler, options = "megatron", ["initial_scale=65536", f"growth_interval={INTERVAL}"]

    def __init__(self):
        self.scale, self.hysteresis, self.good = 65536.0, 2, 0

    def update(self, overflows):
        if overflows:
            self.good, self.hysteresis = 0, self.hysteresis - 1
            if self.hysteresis <= 0:
                self.scale /= 2
        else:
            self.good += 1
            if self.good == INTERVAL:
                self.good, self.hysteresis, self.scale = 0, 2, 2 * self.scale


def largest_gradients(steps, seed):
    noise = random.Random(seed)
    return [2.0 ** noise.uniform(1, 4) for _ in range(steps)]


def deepspeed_log(gradients, every):
    """The log's lines, and the truth: the skipped steps and each step's scale."""
    rule, lines, skipped, scales = DeepSpeed(), [], [], []
    for step, largest in enumerate(gradients, 1):
        scales.append(rule.scale)
        overflows = largest * rule.scale >= LIMIT
        lines.append(f" {step % 100}%|##   | {step - 1}/{len(gradients)} [00:0{step % 9}<00:10, 2.4it/s]\r")
        line = rule.update(overflows)
        if overflows:
            skipped.append(step)
            lines[-1] += line + "\n" + line.replace("Rank 0", "Rank 1") + "\n"
        if step % every == 0:
            lines.append(
                f"\n[INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={len(skipped)}, lr=[1e-05]\n"
            )
    lines.append(f"100%|#####| {len(gradients)}/{len(gradients)} [00:09<00:00, 2.4it/s]\n")
    return "".join(lines), skipped, scales


def megatron_log(gradients, every, norms=False):
    rule, lines, skipped, scales, since = Megatron(), [], [], [], 0
    for step, largest in enumerate(gradients, 1):
        scales.append(rule.scale)
        overflows = largest * rule.scale >= LIMIT
        rule.update(overflows)
        since += overflows
        if overflows:
            skipped.append(step)
        if step % every == 0:
            norm = f" grad norm: {1.25 * largest:.3f} |" if norms and not overflows else ""
            lines.append(
                f" iteration {step:8d}/{len(gradients):8d} | consumed samples: {8 * step} | elapsed time per "
                f"iteration (ms): 12.3 | lm loss: 7.1E+00 | loss scale: {rule.scale:.1f} |{norm} number of "
                f"skipped iterations: {since:3d} | number of nan iterations:   0 |\n"
            )
            lines.append("time (ms) | forward-compute: 193.77\n")
            since = 0
    return "".join(lines), skipped, scales


class ReplayOfLogs(WithFolder):
    def log(self, text):
        path = self.folder / "train.log"
        path.write_text(text)
        return path

    def replay(self, log, scalers, options=()):
        words = [word for option in options for word in ("--set", option)]
        return json.loads(self.run_ok("replay", log, "--scaler", scalers, "--json", *words))

    def test_the_scaler_that_wrote_a_log_does_the_same_again(self):
        for seed in range(3):
            gradients = largest_gradients(300, seed)
            gradients[0] = 2**-20  # no line of Megatron-LM tells the scale of a first step that was skipped
            for rule, (text, skipped, scales) in (
                (DeepSpeed, deepspeed_log(gradients, 1)),
                (DeepSpeed, deepspeed_log(gradients, 1000)),
                (Megatron, megatron_log(gradients, 1)),
            ):
                self.assertGreater(len(skipped), 10)
                found = self.replay(self.log(text), rule.scaler, rule.options)
                self.assertEqual(
                    (found["log"], found["steps"], found["not_finite"]), (rule.__name__.lower(), 300, len(skipped))
                )
                self.assertEqual((found["unsure_steps"], found["missing"]), (0, 0))
                self.assertEqual(found["step_numbers"], list(range(1, 301)))
                run = found["scalers"][0]
                self.assertEqual(run["overflow_steps"][: len(skipped)], skipped)
                self.assertEqual([2**scale for scale in run["scale_log2"]], scales)

    def test_the_gradients_lie_between_the_least_and_the_greatest(self):
        """At a constant scale c the steps with max|g| c beyond FP16 lie between those of `least` and of `greatest`."""
        gradients = largest_gradients(300, 7)
        unsure = {}
        for norms in (False, True):
            text, skipped, _ = megatron_log(gradients, 1, norms)
            log = self.log(text)
            unsure[norms] = 0
            for scale in (1024, 2048, 4096, 8192, 16384):
                truth = {step for step, largest in enumerate(gradients, 1) if largest * scale >= LIMIT}
                runs = self.replay(log, str(scale))["scalers"]
                self.assertEqual(
                    [run["gradients"] for run in runs], ["any"] if len(runs) == 1 else ["least", "greatest"]
                )
                least, greatest = set(runs[0]["overflow_steps"]), set(runs[-1]["overflow_steps"])
                self.assertLessEqual(least, truth)
                self.assertLessEqual(truth, greatest)
                self.assertEqual(min(greatest - least, default=None), runs[0]["first_unsure"])
                unsure[norms] += len(greatest - least)
        self.assertGreater(unsure[False], unsure[True])
        self.assertGreater(unsure[True], 0)

    def test_lines_for_several_steps(self):
        gradients = largest_gradients(300, 1)
        for rule, write in ((DeepSpeed, deepspeed_log), (Megatron, megatron_log)):
            text, skipped, _ = write(gradients, 10)
            found = self.replay(self.log(text), "none," + rule.scaler, rule.options)
            self.assertEqual((found["steps"], found["not_finite"]), (300, len(skipped)))
            self.assertGreater(found["unsure_steps"], 0)
            self.assertEqual(found["scalers"][0]["skipped"], 0)

    def test_the_table_says_what_is_unsure_and_who_is_left_out(self):
        log = LOGS / "deepspeed.log"
        done = subprocess.run([PROGRAM, "replay", log, "--scaler", "all"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 3)
        for name in ("openseq2seq_logmax", "popart", "headroom"):
            self.assertIn(f"leaving out {name}: a log of skipped steps does not hold", done.stderr)
            self.assertNotIn(name, done.stdout)
        words = " ".join(done.stdout.split())
        for part in (
            "gradients",
            "unsure from",
            "recorded - 7",
            "harmless",
            "A log of DeepSpeed: 40 steps, 7 of them skipped",
            "The place of 7 of the skipped steps is not known",
            "'least' takes its gradients as zero",
        ):
            self.assertIn(part, words)
        for columns in (64, 100):
            shown = OnTerminal([PROGRAM, "replay", log, "--scaler", "dynamic,1024"], columns)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertLessEqual(max(map(len, shown.text.splitlines())), columns)

    def test_a_scale_that_falls_further_than_the_steps_can_lower_it(self):
        line = " iteration {}/ 9 | loss scale: {} | grad norm: 0.000 | number of skipped iterations:   0 |\n"
        log = self.log(line.format(1, 65536.0) + line.format(2, 8192.0))
        words = " ".join(self.run_ok("replay", log, "--scaler", "dynamic").split())
        for part in (
            "recorded - 1 to 3 2 16 16 16 16 16, then 13 ",
            "1 to 3 steps skipped at the start, while the scale fell from 2^16 to 2^13",
            "No scaler of 'halfscope list scalers' does what the run did",
            "up to 2 more were skipped that no line counts, or the scaler lowers its scale by more than half at once",
        ):
            self.assertIn(part, words)
        found = self.replay(log, "dynamic")
        self.assertEqual((found["hidden_skips"], found["recorded"]["next_scale_log2"]), (2, 13))

    def test_skips_in_holes_are_in_the_count(self):
        line = " iteration {}/ 5000 | loss scale: {} | grad norm: 1.000 | number of skipped iterations:   0 |\n"
        before = "".join(line.format(n, 65536.0) for n in range(10, 60, 10))
        for scale, row, note in (
            (8192.0, "recorded - at least 3 -", "At least 3 steps were skipped in holes"),
            (65536.0, "recorded - unknown -", "No step that the log tells of was skipped."),
        ):
            log = self.log(before + "".join(line.format(n, scale) for n in range(4060, 4110, 10)))
            words = " ".join(self.run_ok("replay", log, "--scaler", "dynamic").split())
            least = 3 if scale < 65536 else 0
            for part in (row, note, f"4100 steps, at least {least} of them skipped", "4000 steps lie in holes"):
                self.assertIn(part, words)

    def test_a_file_of_each_kind(self):
        for name, steps, skipped in (("deepspeed", 40, 7), ("megatron", 60, 8)):
            found = self.replay(LOGS / f"{name}.log", "dynamic")
            self.assertEqual((found["log"], found["steps"], found["not_finite"]), (name, steps, skipped))

    def test_a_log_that_is_none(self):
        text, _, _ = megatron_log(largest_gradients(30, 1), 1)
        deepspeed, _, _ = deepspeed_log(largest_gradients(30, 1), 100)
        for content, says in (
            ("", ["is empty"]),
            ("epoch 1, loss 2.5\n" * 9, ["no line of it names a step", "DeepSpeed", "Megatron-LM"]),
            ("step=10, skipped=0, lr=[0]\n", ["none of a skipped step"]),
            ("\0" * 1000, ["no line of it names a step", '"max_abs": 12.5']),
        ):
            with self.subTest(content[:40]):
                self.refuse("replay", self.log(content), "--scaler", "all", says=["train.log", *says])
        log = self.log(text)
        self.refuse("replay", log, "--scaler", "dynamic,headroom", says=["headroom", "largest magnitude"])
        self.refuse("replay", log, "--scaler", "layerwise", says=["layerwise", "inside the backward pass"])
        far = " iteration 9000000000000000/ 1 | loss scale: 1.0 | number of skipped iterations: 0 |\n"
        self.refuse("replay", self.log(text + far), "--scaler", "dynamic", says=["train.log", "at most 1000000 apart"])


if __name__ == "__main__":
    unittest.main()

"""Networks, optimizers and operands of the experiments after 2018: the same bytes wherever and however they train."""

import json
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, WithFolder, halfscope

# Arms that store weights and moments in other ways, and those with operands of few bits.
ARMS = {
    "weights-without-master": ["stochastic", "kahan", "two_components", "moments_bf16_stochastic", "moments_fp8_scaled"],
    "muon-loss-scale": ["fp32", "fp16_s1024"],
    "fp4-components": ["recipe", "mxfp4"],
    "zero-gradients": ["nvfp4_tiles"],
    "softmax-collapse": ["bf16"],
    "two-executions": ["fp32", "bf16_sums"],
}
SIZES = {"embedding_size": 32, "hidden_size": 48, "layers": 1, "batch": 4}
TEXT = {"vocabulary": 64, "sequence_length": 16, "evaluate_examples": 3}
ISAS = ("baseline", "avx2", "avx512")


class SameBytes(WithFolder):
    def words(self, name, out, *more, steps=6):
        """A request for the experiment's arms, small."""
        computed = name == "softmax-collapse"
        settings = {**SIZES, **({} if computed else TEXT), "checkpoint_every": 2, "observe_every": 2}
        if name == "two-executions":  # its steps are its own: the first arm trains, the others compare
            steps = 0
        if steps:
            settings["steps"] = steps
        given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        data = [] if computed else ["--data", self.text()]
        return ["run", name, "--arms", ",".join(ARMS[name]), "--seeds", "1", "--out", self.folder / out, *data, *given, *more]

    def results(self, out):
        """Every record, and every summary without what a clock tells."""
        found = self.records(out)
        for path in sorted((self.folder / out).glob("*/*/seed*/summary.json")):
            summary = json.loads(path.read_text())
            for key in ("seconds", "seconds_per_step"):
                summary.pop(key)
            found[str(path.relative_to(self.folder / out))] = json.dumps(summary)
        return found

    def test_on_any_number_of_threads_and_with_any_instructions(self):
        known = [isa for isa in ISAS if halfscope("list", "formats", env={**os.environ, "HALFSCOPE_ISA": isa}).returncode == 0]
        self.assertIn("baseline", known)
        for name in ARMS:
            with self.subTest(name):
                self.run_ok(*self.words(name, "one", "--threads", 1))
                expected = self.results("one")
                self.run_ok(*self.words(name, "three", "--threads", 3))
                self.assertEqual(self.results("three"), expected)
                for isa in known:
                    done = halfscope(*self.words(name, isa, "--threads", 1), env={**os.environ, "HALFSCOPE_ISA": isa})
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(self.results(isa), expected, isa)

    def test_killed_and_resumed(self):
        for name in ("weights-without-master", "muon-loss-scale", "softmax-collapse"):
            with self.subTest(name):
                words = [*self.words(name, "broken", "--threads", 1, steps=60), "--resume"]
                process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                saved = self.folder / "broken" / name / ARMS[name][0] / "seed0/checkpoint/state.safetensors"
                while process.poll() is None and not saved.exists():
                    time.sleep(0.001)
                self.assertIsNone(process.poll(), "the run ended before it could be killed")
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.run_ok(*words)
                self.run_ok(*self.words(name, "whole", "--threads", 1, steps=60))
                for out in ("broken", "whole"):
                    self.assertTrue(self.results(out))
                self.assertEqual(self.results("broken"), self.results("whole"))


if __name__ == "__main__":
    unittest.main()

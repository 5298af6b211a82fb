"""Runs whose files something else has changed: one line, status 3, and how to go on."""

import json
import shutil
import signal
import subprocess
import unittest

from program import PROGRAM, WithFolder, halfscope

RUN = "master-copy/fp32/seed0"


class DamagedRuns(WithFolder):
    def words(self, out, *more, steps=4000):
        return super().words(out, "--arms", "fp32", "--seeds", "1", "--set", "checkpoint_every=50", *more, steps=steps)

    def stopped(self, out):
        """The folder of a run that a signal has stopped after a checkpoint."""
        run = self.folder / out / RUN
        process = subprocess.Popen([PROGRAM, *map(str, self.words(out))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True)
        while not (run / "checkpoint/state.safetensors").exists():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertIn("stopped by SIGTERM", process.communicate(timeout=60)[1])
        return run

    def test_four_changed_bytes_of_a_checkpoint(self):
        self.run_ok(*self.words("whole"))
        run = self.stopped("out")
        checkpoint = run / "checkpoint/state.safetensors"
        content = checkpoint.read_bytes()
        middle = len(content) // 2
        checkpoint.write_bytes(content[:middle] + b"\x3f\x3e\x3d\x3c" + content[middle + 4:])
        self.refuse(*self.words("out", "--resume"), status=3,
                    says=[f"{checkpoint}: damaged: the checksum", f"remove the run's folder {run} and start again"])
        self.assertTrue((run / "status").read_text().startswith("FAILED: "))
        shutil.rmtree(run)  # as it says
        self.run_ok(*self.words("out", "--resume"))
        self.assertEqual(self.records("out"), self.records("whole"))

    def test_files_that_are_gone_or_empty_have_a_remedy(self):
        run = self.stopped("out")
        for name in ("metrics.jsonl", "checkpoint/state.safetensors"):
            content = (run / name).read_bytes()
            for change in ((run / name).unlink, lambda: (run / name).write_bytes(b"")):
                change()
                if name.startswith("checkpoint") and not (run / name).exists():
                    continue  # a run without a checkpoint begins again
                self.refuse(*self.words("out", "--resume"), status=3, says=[name, "remove the run's folder"])
                (run / name).write_bytes(content)

    def test_runs_that_are_done_are_compared(self):
        self.run_ok(*self.words("out", steps=60))
        run = self.folder / "out" / RUN
        content = (run / "metrics.jsonl").read_bytes()
        (run / "metrics.jsonl").write_bytes(content[:-200])
        for more in ((), ("--resume",)):
            result = halfscope(*self.words("out", *more, steps=60))
            self.assertEqual(result.returncode, 3)
            (line,) = result.stderr.splitlines()
            self.assertIn("metrics.jsonl: it is shorter than its checkpoint says; remove the run's folder", line)
            self.assertEqual((run / "status").read_text(), "DONE\n")
        (run / "metrics.jsonl").write_bytes(content)
        self.assertIn("done before", halfscope(*self.words("out", steps=60)).stderr)

    def test_weights_that_another_arm_starts_from(self):
        words = (*super().words("out", "--seeds", "1", steps=20), "--arm", "tuned:start_from=arm:fp32")
        self.run_ok(*words, "--arms", "fp32")
        run = self.folder / "out" / RUN
        shutil.rmtree(run.parent.parent / "tuned")
        checkpoint = run / "checkpoint/state.safetensors"
        content = bytearray(checkpoint.read_bytes())
        content[-5] ^= 1
        checkpoint.write_bytes(content)
        result = halfscope(*words, "--arms", "fp32")
        self.assertEqual(result.returncode, 3)
        self.assertIn(f"{checkpoint}: damaged", result.stderr)
        self.assertFalse((run.parent.parent / "tuned/seed0/summary.json").exists())

    def test_a_run_made_by_an_earlier_revision_goes_on(self):
        self.run_ok(*self.words("whole"))
        run = self.stopped("out")
        checkpoint = run / "checkpoint/state.safetensors"
        content = checkpoint.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + length])
        self.assertRegex(header["__metadata__"].pop("checkpoint_crc32"), "^[0-9a-f]{8}$")
        text = json.dumps(header).encode()
        checkpoint.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length:])
        result = halfscope(*self.words("out", "--resume"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("checksum", result.stderr)
        self.assertEqual(self.records("out"), self.records("whole"))


if __name__ == "__main__":
    unittest.main()

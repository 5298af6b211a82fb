"""Training in several processes of an mpirun: the bytes of one, after a kill too, and refusals in one line.

    mpi_test.py MPIRUN FAILING_STEP PROGRAM
"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from program import PROGRAM, WithFolder

FAILING_STEP, MPIRUN = sys.argv.pop(), sys.argv.pop()
# As root OpenMPI wants to be told so, and so it does of more processes than cores.
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
# The loss scale overflows at first, so that the steps have a first overflow too.
SETTINGS = {"batch": 16, "observe_every": 2, "checkpoint_every": 2, "observe_roles": "all", "loss_scale": "dynamic"}


class Mpi(WithFolder):
    def words(self, out, *more, arm=("--arms", "fp16_mixed"), steps=8, threads=1):
        chosen = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        arms = (*arm, "--seeds", "1", "--ranks", "8", "--all-reduce", "nccl_ring")
        return super().words(str(out), *arms, *chosen, *more, steps=steps, threads=threads)

    def command(self, processes, *words):
        return [MPIRUN, "-n", str(processes), PROGRAM, *map(str, words)]

    def call(self, processes, *words):
        return subprocess.run(self.command(processes, *words), capture_output=True, text=True, timeout=300, env=ENVIRONMENT)

    def run_folder(self, out, arm="fp16_mixed"):
        return self.folder / str(out) / "master-copy" / arm / "seed0"

    def records_of(self, out, arm="fp16_mixed"):
        names = ("metrics.jsonl", "histograms.jsonl", "checkpoint/state.safetensors")
        return {name: (self.run_folder(out, arm) / name).read_bytes() for name in names}

    def test_any_number_of_processes_and_threads_gives_the_bytes_of_one(self):
        self.run_ok(*self.words("alone"))
        alone = self.records_of("alone")
        self.assertIn(b"first_overflow", alone["metrics.jsonl"])
        self.assertIn(b'"all_reduce"', alone["metrics.jsonl"])
        for processes, threads in ((1, 1), (2, 2), (4, 1), (8, 1)):
            with self.subTest(processes=processes):
                done = self.call(processes, *self.words(processes, threads=threads))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count("test accuracy"), 1)  # one table
                self.assertEqual(self.records_of(processes), alone)
                environment = json.loads((self.run_folder(processes) / "environment.json").read_text())
                self.assertEqual(environment.get("processes", 1), processes)

    def test_recipes_of_block_formats_and_delayed_scales_give_the_bytes_of_one(self):
        for recipe in ("fp8_delayed", "nvfp4"):
            with self.subTest(recipe=recipe):
                arm = ("--arm", f"own:policy={recipe}")
                self.run_ok(*self.words(f"{recipe}-alone", arm=arm))
                alone = self.records_of(f"{recipe}-alone", "own")
                self.assertIn(b'"operands"', alone["metrics.jsonl"])
                done = self.call(2, *self.words(recipe, arm=arm))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.records_of(recipe, "own"), alone)

    def test_a_killed_process_ends_all_and_resume_goes_on_with_the_same_bytes(self):
        steps = 100
        self.run_ok(*self.words("whole", steps=steps))
        process = subprocess.Popen(self.command(2, *self.words("killed", steps=steps)), env=ENVIRONMENT,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        saved = self.run_folder("killed") / "checkpoint/state.safetensors"
        while process.poll() is None and not saved.exists():
            time.sleep(0.001)
        self.assertIsNone(process.poll(), "the run ended before it could be killed")
        started = self.started_by(process.pid)
        os.kill(self.second_of(process.pid), signal.SIGKILL)
        self.assertNotEqual(process.wait(timeout=60), 0)
        while any(map(self.is_running, started)):  # mpirun does not wait for the others' end
            time.sleep(0.001)
        self.assertEqual((self.run_folder("killed") / "status").read_text(), "RUNNING\n")
        resumed = self.call(2, *self.words("killed", "--resume", steps=steps))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(self.records_of("killed"), self.records_of("whole"))

    def test_a_step_that_fails_in_one_process_alone_ends_all_with_its_reason(self):
        waits, results = [FAILING_STEP, str(self.data)], self.folder / "failed"
        labels, lost = "model unet wants a label for each pixel", "the examples are lost"
        for first, second, failing, reason in ((waits, [PROGRAM], 2, labels), ([*waits, str(results)], waits, 1, lost)):
            with self.subTest(failing=failing):
                done = subprocess.run([MPIRUN, "-n", "1", *first, ":", "-n", "1", *second], capture_output=True,
                                      text=True, timeout=60, env=ENVIRONMENT)
                self.assertNotEqual(done.returncode, 0)
                said = [line for line in done.stderr.splitlines() if reason in line]
                self.assertEqual(len(said), 1, done.stderr)
                self.assertTrue(said[0].startswith(f"halfscope: process {failing} of 2: {reason}"), said)
        self.assertEqual((results / "failing/fp32/seed0/status").read_text(), f"FAILED: {lost}\n")

    @staticmethod
    def started_by(launcher):
        return Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()

    @staticmethod
    def is_running(process):
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    def second_of(self, launcher):
        """The process that mpirun has started as number 1."""
        children = self.started_by(launcher)
        for child in children:
            variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            if b"OMPI_COMM_WORLD_RANK=1" in variables:
                return int(child)
        self.fail(f"mpirun has no process of number 1 among {children}")

    def test_what_processes_cannot_do_is_refused_in_one_line(self):
        for processes, words, says in (
            (3, (), "3 processes of mpirun and ranks = 8; give a multiple of 3 as ranks"),
            (2, ("--jobs", "2"), "--jobs 2 and 2 processes of mpirun"),
            (2, ("--set", "fp32_reference_every=2"), "fp32_reference_every"),
            (2, ("--set", "all_reduce=ring"), "mpi_ring"),
        ):
            with self.subTest(says):
                done = self.call(processes, *self.words("refused", *words))
                self.assertNotEqual(done.returncode, 0)
                ours = [line for line in done.stderr.splitlines() if line.startswith("halfscope: ")]
                self.assertEqual(len(ours), 1, done.stderr)
                self.assertIn(says, ours[0])
                self.assertFalse((self.folder / "refused").exists())

    def test_other_commands_run_once(self):
        done = self.call(2, "list", "divisions")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("PyTorch DDP: times 1/N"), 1)


if __name__ == "__main__":
    unittest.main()

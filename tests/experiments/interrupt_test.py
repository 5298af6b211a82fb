"""Runs that are interrupted by signals or meet another process: no record is lost, none is mixed."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from program import PROGRAM, WithFolder, halfscope

ARMS = "fp32,fp16_mixed"
STEPS = 1500  # seconds, of which a signal takes the first
RECORDS = ("metrics.jsonl", "histograms.jsonl", "checkpoint/state.safetensors")


class Interrupted(WithFolder):
    def words(self, out, *more, steps=STEPS):
        return super().words(str(out), "--arms", ARMS, "--seeds", "1", "--set", "checkpoint_every=400", *more, steps=steps)

    def run_folder(self, out, arm):
        return self.folder / str(out) / "master-copy" / arm / "seed0"

    def started(self, out, *more):
        """A process that has begun to train; `--resume` included."""
        process = subprocess.Popen([PROGRAM, *map(str, self.words(out, "--resume", *more))], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        statuses = [self.run_folder(out, arm) / "status" for arm in ARMS.split(",")]
        while process.poll() is None and not any(s.exists() and s.read_text() == "RUNNING\n" for s in statuses):
            time.sleep(0.001)
        self.assertIsNone(process.poll(), "the runs ended before they could be interrupted")
        return process

    def assert_stopped(self, process, number):
        output, errors = process.communicate(timeout=60)
        # SIGTERM is how job schedulers end what is to go on later.
        self.assertEqual(process.returncode, 3 if number == signal.SIGTERM else -number, errors)
        self.assertEqual(output, "")
        last = errors.splitlines()[-1]
        self.assertTrue(last.startswith(f"halfscope: stopped by {signal.Signals(number).name}: "), last)
        self.assertIn("--resume", last)
        return last

    def test_signals_at_random_moments_lose_no_step(self):
        self.run_ok(*self.words("whole"))
        chance = random.Random(1)
        for jobs in (1, 2):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                process = self.started(jobs, "--jobs", jobs)
                time.sleep(chance.uniform(0, 0.1))
                process.send_signal(number)
                last = self.assert_stopped(process, number)
                self.assertRegex(last, f"runs done: 0 of 2, checkpoints saved: [1-{jobs}];")
                for path in (self.folder / str(jobs)).rglob("status"):
                    self.assertRegex(path.read_text(), r"^STOPPED after step [1-9][0-9]*: terminated, resumable\n$")
                self.assertEqual(list((self.folder / str(jobs)).rglob("*run.lock*")), [])
            self.run_ok(*self.words(jobs, "--resume", "--jobs", jobs))
            self.assertEqual(self.records("whole"), self.records(str(jobs)))

    def loading(self, *before):
        """A process that waits for the images of its data set, and the pipe that it waits for."""
        images = self.data / "train-images-idx3-ubyte"
        if not images.is_fifo():
            images.unlink()
            os.mkfifo(images)
        process = subprocess.Popen([*before, PROGRAM, *map(str, self.words("out"))], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        return process, open(images, "wb")  # which waits until the program reads

    def test_signals_while_data_load_end_the_program_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process, pipe = self.loading()
            with pipe:
                process.send_signal(number)
                output, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 3 if number == signal.SIGTERM else -number, errors)
            self.assertEqual(output, "")
            self.assertEqual(errors, f"halfscope: stopped by {signal.Signals(number).name} before training: no run was "
                                     "changed; give the same command again\n")
            self.assertFalse((self.folder / "out").exists())

    def test_a_signal_that_is_ignored_stays_so_while_data_load(self):
        process, pipe = self.loading("nohup")
        with pipe:
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            self.assertIn("stopped by SIGTERM before training", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 3)

    def test_second_signal_kills_at_once(self):
        process = self.started("out")
        process.send_signal(signal.SIGSTOP)  # so that both have come before it goes on
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=60)
        self.assertIn(process.returncode, (-signal.SIGINT, -signal.SIGTERM))
        self.assertNotIn("stopped by", errors)
        self.assertEqual((self.run_folder("out", "fp32") / "status").read_text(), "RUNNING\n")

    def test_ignored_signal_stays_ignored(self):
        words = ["nohup", PROGRAM, *map(str, self.words("out", steps=300))]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (self.run_folder("out", "fp32") / "status").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(), 0)


class TwoProcesses(WithFolder):
    def words(self, out, *more, steps=60):
        return super().words(str(out), "--seeds", "1", "--set", "checkpoint_every=2", *more, steps=steps)

    def bytes_of(self, run):
        return {name: (run / name).read_bytes() for name in RECORDS}

    def test_two_at_once_leave_the_run_of_one(self):
        batches = (32, 16)
        whole = {}
        for batch in batches:
            self.run_ok(*self.words(f"whole{batch}", "--arms", "fp16_mixed", "--set", f"batch={batch}"))
            whole[batch] = self.bytes_of(self.folder / f"whole{batch}/master-copy/fp16_mixed/seed0")
        for attempt in range(12):
            same = attempt % 2 == 0
            used = (batches[0], batches[0]) if same else batches
            both = [subprocess.Popen([PROGRAM, *map(str, self.words(attempt, "--arms", "fp16_mixed", "--set", f"batch={batch}"))],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for batch in used]
            errors = [process.communicate(timeout=60)[1] for process in both]
            statuses = [process.returncode for process in both]
            self.assertIn(0, statuses, errors)
            for status, error in zip(statuses, errors):
                if status == 0:
                    continue
                self.assertRegex(error.splitlines()[-1], "is training this run|holds a run already|is asked for")
            run = self.folder / f"{attempt}/master-copy/fp16_mixed/seed0"
            batch = json.loads((run / "config.json").read_text())["batch"]
            self.assertEqual(self.bytes_of(run), whole[batch])
            if not same:
                self.assertEqual(statuses.count(0), 1, errors)
                self.assertEqual(batch, used[statuses.index(0)])
            self.assertEqual((run / "status").read_text(), "DONE\n")
            self.assertFalse((run / "run.lock").exists())

    def test_the_second_is_refused_while_the_first_trains(self):
        run = self.folder / "out/master-copy/fp32/seed0"
        words = self.words("out", "--arms", "fp32", steps=100000)
        first = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not (run / "config.json").exists():
                self.assertIsNone(first.poll())
            second = halfscope(*words, "--resume")
            self.assertEqual(second.returncode, 3, second.stderr)
            self.assertRegex(second.stderr.splitlines()[-1], f"^halfscope: .*{run}: process {first.pid} .*is training this run")
            self.assertIsNone(first.poll())
        finally:
            first.kill()
            first.wait()

    def test_other_runs_go_on_beside_a_locked_one(self):
        run = self.folder / "out/master-copy/fp32/seed0"
        (run / "run.lock").mkdir(parents=True)
        holder = {"token": "77aa", "host": "elsewhere", "machine": "another", "process": 77, "started": 0, "job": "17_2", "restarts": 0}
        lock = run / "run.lock/77aa"
        lock.write_text(json.dumps(holder))
        result = halfscope(*self.words("out", "--arms", "fp32,fp16_mixed"))
        self.assertEqual(result.returncode, 3, result.stderr)
        last = result.stderr.splitlines()[-1]
        self.assertRegex(last, f"^halfscope: master-copy fp32 seed 0: {run}: process 77 on elsewhere, job 17_2, last heard of "
                               r"\d+ s ago, is training")
        self.assertEqual([path.name for path in run.iterdir()], ["run.lock"])
        self.assertEqual((run.parent.parent / "fp16_mixed/seed0/status").read_text(), "DONE\n")
        old = time.time() - 601
        os.utime(lock, (old, old))
        self.run_ok(*self.words("out", "--arms", "fp32,fp16_mixed", "--resume"))
        self.assertFalse((run / "run.lock").exists())

    def test_the_lock_of_a_killed_process_is_no_obstacle(self):
        words = [PROGRAM, *map(str, self.words("out", "--arms", "fp32", steps=100000))]
        killed = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        status = self.folder / "out/master-copy/fp32/seed0/status"
        while not (status.parent / "config.json").exists():
            self.assertIsNone(killed.poll())
        killed.kill()
        killed.wait()
        self.assertEqual(len(list((status.parent / "run.lock").iterdir())), 1)
        # In a moment, and not when it has expired; the run itself has other settings by now.
        self.refuse(*self.words("out", "--arms", "fp32", "--resume", steps=2), says=["steps = 100000, now 2 is asked for"])
        config = json.loads((status.parent / "config.json").read_text())
        (status.parent / "config.json").write_text(json.dumps({**config, "steps": 2}))
        for name in ("metrics.jsonl", "histograms.jsonl", "checkpoint/state.safetensors"):
            (status.parent / name).unlink(missing_ok=True)
        self.run_ok(*self.words("out", "--arms", "fp32", "--resume", steps=2))


if __name__ == "__main__":
    unittest.main()

"""Limits of the machine: threads that do not start, memory that is not there, files without an end."""

import os
import resource
import subprocess
import unittest

from program import PROGRAM, WithFolder, halfscope
from tensor_files import safetensors

GIBIBYTE = 1 << 30


def address_space(size):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


def peak_kib(*words):
    """The most memory that the program had."""
    process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


class Limits(WithFolder):
    def assert_refused(self, result, status, *says):
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for text in says:
            self.assertIn(text, lines[0])

    def test_threads_that_cannot_be_started(self):
        words = self.words("few", "--arms", "fp32,fp16_mixed", "--seeds", "1", threads=1024)
        result = halfscope(*words, preexec_fn=address_space(3 * GIBIBYTE))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("note: the system does not start 1024 threads; going on with ", result.stderr)
        self.run_ok(*self.words("one", "--arms", "fp32,fp16_mixed", "--seeds", "1"))
        self.assertEqual(self.records("one"), self.records("few"))

    def test_runs_at_a_time_that_cannot_be_started(self):
        def large_stacks():  # threads get large stacks, so that memory has room for few
            resource.setrlimit(resource.RLIMIT_STACK, (GIBIBYTE // 2, GIBIBYTE // 2))
            address_space(3 * GIBIBYTE)()

        result = halfscope(*self.words("few", "--seeds", "9", "--arms", "fp32", "--jobs", "9", steps=2), preexec_fn=large_stacks)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "note: [1-5] runs at a time instead of 9: a thread cannot be started")
        statuses = [path.read_text() for path in (self.folder / "few").rglob("status")]
        self.assertEqual(statuses, ["DONE\n"] * 9)

    def test_memory_that_is_not_there(self):
        for experiment, size in (("language-model-loss-scale", "hidden_size=100000"), ("detection-loss-scale", "image_size=4096")):
            result = halfscope("run", experiment, "--size", "smoke", "--quick", "--arms", "fp32", "--set", size, "--out",
                               self.folder / "out", preexec_fn=address_space(3 * GIBIBYTE))
            self.assert_refused(result, 3, "out of memory: an array of ", " MB cannot be had; the model is ", "smaller sizes")
        self.assertFalse((self.folder / "out").exists())

    def test_a_group_of_tensors_is_held_once(self):
        count = 4000
        path = self.folder / "many.safetensors"
        path.write_bytes(safetensors({f"layer{i}": [1.0] for i in range(count)}))
        one, each = peak_kib("analyze", path, "--group", "*"), peak_kib("analyze", path, "--group", "{*}")
        self.assertLess((each - one) / count, 27)  # counts of 18 KB, and less than twice that

    def test_a_row_of_many_tensors_takes_little(self):
        count = 40000
        path = self.folder / "many.safetensors"
        path.write_bytes(safetensors({f"model.layers.{i}.weight": [1.0] for i in range(count)}))
        few = self.folder / "few.safetensors"
        few.write_bytes(safetensors({"weight": [1.0]}))
        for words in (("--quiet",), ("--json",)):
            self.assertLess((peak_kib("analyze", path, *words) - peak_kib("analyze", few, *words)) / count, 1.4)

    def test_files_without_an_end(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        words = ("run", "master-copy", "--out", self.folder / "out", "--config")
        self.assert_refused(halfscope(*words, pipe), 2, str(pipe), "a pipe that nobody has written to")
        for device in ("/dev/zero", "/dev/null"):
            result = halfscope(*words, device, preexec_fn=address_space(GIBIBYTE))
            self.assert_refused(result, 2, device, "neither a file nor a pipe")
        self.assertFalse((self.folder / "out").exists())

    def test_pipes_are_read_to_their_end(self):
        # A writer that takes its time, through /dev/fd as a shell's <(...) gives it.
        reader, writer = os.pipe()
        shell = subprocess.Popen(["sh", "-c", "sleep 0.2; printf 'steps = 0\\n'; exec 1>&-"], stdout=writer)
        os.close(writer)
        result = halfscope("run", "master-copy", "--config", f"/dev/fd/{reader}", pass_fds=[reader])
        os.close(reader)
        shell.wait()
        self.assert_refused(result, 2, "steps = '0'")


if __name__ == "__main__":
    unittest.main()

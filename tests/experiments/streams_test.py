"""Standard streams that are closed, full or a pipe without a reader, and terminals of every kind."""

import os
import re
import subprocess
import unittest

from program import PROGRAM, OnTerminal, WithFolder

WIDTH = 80


def pipe_without_reader():
    """The end for writing of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


class Streams(WithFolder):
    def start(self, *words, **options):
        return subprocess.run([PROGRAM, *map(str, words)], timeout=300, **options)

    def status(self, out):
        return (self.folder / out / "master-copy/fp32/seed0/status").read_text()

    def with_lost_stderr(self, *words):
        """The exit statuses with a stderr that is full, closed, and a pipe without a reader."""
        for kind in ("full", "closed", "pipe"):
            close = (lambda: os.close(2)) if kind == "closed" else None
            with open("/dev/full", "wb") as full:
                target = pipe_without_reader() if kind == "pipe" else full.fileno()
                done = self.start(*map(lambda word: str(word).replace("KIND", kind), words), stdout=subprocess.DEVNULL,
                                  stderr=target, preexec_fn=close)
                if kind == "pipe":
                    os.close(target)
            yield kind, done.returncode

    def test_stderr_that_cannot_be_written_changes_no_exit_status(self):
        for words in (["analyze", self.folder / "nowhere.npy"], ["bogus"], ["run", "master-cpy"]):
            for kind, status in self.with_lost_stderr(*words):
                self.assertEqual(status, 2, (words, kind))

    def test_training_goes_on_without_stderr(self):
        self.run_ok(*self.words("whole", "--arms", "fp32", "--seeds", "1"))
        for kind, status in self.with_lost_stderr(*self.words("KIND", "--arms", "fp32", "--seeds", "1")):
            self.assertEqual(status, 0, kind)
            self.assertEqual(self.status(kind), "DONE\n")
            self.assertEqual(self.records("whole"), self.records(kind))

    def test_reader_of_stderr_that_goes_away_during_training(self):
        run = subprocess.Popen([PROGRAM, *map(str, self.words("out", "--arms", "fp32", "--seeds", "2", steps=300))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertIn(b"seed 0", run.stderr.readline())
        run.stderr.close()
        self.assertEqual(run.wait(), 0)
        self.assertEqual((self.folder / "out/master-copy/fp32/seed1/status").read_text(), "DONE\n")

    def test_reader_of_stdout_that_goes_away_ends_the_program_silently(self):
        for words in (["list"], ["list", "--json"], ["--help"], self.words("out", "--arms", "fp32", "--seeds", "1")):
            target = pipe_without_reader()
            done = self.start(*words, stdout=target, stderr=subprocess.PIPE)
            os.close(target)
            self.assertEqual(done.returncode, -13, words)  # SIGPIPE, as cat and grep end
            self.assertNotIn(b"halfscope:", done.stderr)
        self.assertEqual(self.status("out"), "DONE\n")

    def test_program_that_inherits_an_ignored_signal_ends_as_silently(self):
        target = pipe_without_reader()
        done = self.start("list", stdout=target, stderr=subprocess.PIPE, restore_signals=False)  # ignored by Python
        os.close(target)
        self.assertEqual((done.returncode, done.stderr), (-13, b""))

    def test_stdout_that_is_full_or_closed_is_an_error(self):
        for words in (["list"], ["--help"], ["--version"]):
            for close in (None, lambda: os.close(1)):
                with open("/dev/full", "w") as full:
                    done = self.start(*words, stdout=full, stderr=subprocess.PIPE, preexec_fn=close)
                self.assertEqual(done.returncode, 3, words)
                self.assertEqual(done.stderr, b"halfscope: standard output cannot be written\n")

    def test_messages_never_get_into_files_that_take_the_number_of_a_closed_stream(self):
        words = self.words("out", "--arms", "fp32", "--seeds", "1")
        done = self.start(*words, stdin=subprocess.DEVNULL, preexec_fn=lambda: [os.close(n) for n in (0, 1, 2)])
        self.assertEqual(done.returncode, 3)  # the table had nowhere to go
        self.run_ok(*self.words("whole", "--arms", "fp32", "--seeds", "1"))
        self.assertEqual(self.records("whole"), self.records("out"))

    def shown_on_terminal(self, out, **variables):
        words = self.words(out, "--arms", "fp32,fp16_mixed,fp16_no_master", "--seeds", "1", "--jobs", "3", steps=60)
        shown = OnTerminal([PROGRAM, *words], WIDTH, stream="stderr", **{"TERM": "xterm", **variables})
        self.assertEqual(shown.returncode, 0, shown.text)
        return shown.text

    def test_status_line_fits_a_terminal_of_80_columns(self):
        shown = self.shown_on_terminal("out")
        updates = re.findall(r"\r\x1b\[K([^\r\n]*)", shown)
        status = [line for line in updates if " done, " in line]
        self.assertTrue(status, shown)
        self.assertEqual(max(map(len, status)), WIDTH)  # that of three runs is longer, and cut

    def test_dumb_terminal_gets_no_control_sequence(self):
        self.assertNotIn("\x1b", self.shown_on_terminal("out", TERM="dumb"))

    def test_no_colour_anywhere(self):
        for variables in ({}, {"NO_COLOR": "1"}):
            shown = self.shown_on_terminal(f"out{len(variables)}", **variables)
            self.assertEqual(set(re.findall(r"\x1b\[[0-9;]*[A-Za-z]", shown)), {"\x1b[K"})


if __name__ == "__main__":
    unittest.main()

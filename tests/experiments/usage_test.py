"""Help, versions, completion and the manual page; and what is said of words that are wrong."""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import PROGRAM, WithFolder, halfscope

COMMANDS = ["list", "run", "report", "compare", "analyze", "formats", "updates", "replay", "memory", "calc", "bench", "generate"]
EXAMPLE = re.compile(r"^  (halfscope .*)$", re.MULTILINE)
OPTION = re.compile(r"^  (?:-\w,)?(--[\w-]+)", re.MULTILINE)


class Help(WithFolder):
    def test_lines_fit_and_have_examples_and_exit_statuses(self):
        for command in COMMANDS:
            text = self.run_ok(command, "--help")
            self.assertLessEqual(max(map(len, text.splitlines())), 100, command)
            examples = EXAMPLE.findall(text)
            self.assertTrue(examples, command)
            self.assertTrue(all(example.split()[1] == command for example in examples), examples)
            self.assertRegex(text, "Exit status: 0 (done|the same)")
            self.assertEqual(self.run_ok("help", command), text)
        self.assertLessEqual(max(map(len, self.run_ok("--help").splitlines())), 100)

    def test_options_in_examples_exist(self):
        for command in COMMANDS:
            text = self.run_ok(command, "--help")
            for example in EXAMPLE.findall(text):
                for option in re.findall(r" (--[a-z][\w-]*)", example):
                    self.assertIn(option, OPTION.findall(text), example)

    def test_no_words_are_help(self):
        self.assertEqual(self.run_ok(), self.run_ok("--help"))
        self.assertEqual(self.run_ok("help"), self.run_ok("--help"))

    def test_versions(self):
        line = self.run_ok("--version")
        self.assertRegex(line, r"\Ahalfscope \d+\.\d+\.\d+\n\Z")
        details = self.run_ok("-V")
        self.assertTrue(details.startswith(line))
        for part in (r"^revision: \S+$", r"^compiler: (g\+\+|clang) \d+", r"^CUDA: (yes|no)$"):
            self.assertRegex(details, re.compile(part, re.MULTILINE))
        self.assertEqual(self.run_ok("version"), details)


class WrongWords(WithFolder):
    def test_unknown_options_get_the_nearest(self):
        for words, says in (
            (("calc", "add", "1", "1", "--sede", "3"), ["calc has no option '--sede'", "'--seed'", "halfscope calc --help"]),
            (("run", "master-copy", "--outt", "3"), ["'--outt'", "'--out'", "halfscope run --help"]),
            (("analyze", "x", "--fail-no=flushed>2%"), ["'--fail-no'", "did you mean '--fail-on'"]),
            (("--verson",), ["halfscope has no option '--verson'", "'--version'"]),
            (("list", "formats", "more"), ["'more' is one word too many for list"]),
            (("calc", "add", "1", "-.5"), ["'-.5'", "put -- before", "calc add -- 1 -.5"]),
            (("calc", "add", "inf", "-inf"), ["'-inf'", "put -- before"]),
            (("analyze", "x", "--headroom", "65"), ["--headroom", "0 to 64", "halfscope analyze --help"]),
            (("replay", "x", "--scaler=1", "--scaling=current"), ["give --scaler", "--scaling", "replay --help"]),
            (("generate", "fish"), ["unknown kind 'fish'", "bash, zsh, man"]),
            (("analyze", "a b", "--json-lines", "-q"), ["no --json-lines", "type: halfscope analyze 'a b' -q --table json"]),
            (("analyze", "--merge-shards", "--all", "x", "--group=a.*"), ["type: halfscope analyze x '--group=a.*' --group '{**}' --top all"]),
            (("formats", "--all", "x"), ["no --all", "type: halfscope formats x --top all"]),
            (("report", "a b", "--format", "csv"), ["no --format", "type: halfscope report 'a b' --table csv"]),
            (("calc", "dot", "--model", "tensor_core(hopper)", "1"), ["calc dot --order 'tensor_core(hopper)' 1"]),
            (("list", "accumulators", "--json"), ["list has no accumulators since 0.1", "type: halfscope list orders --json"]),
            (("memory", "resnet50", "--format=csv"), ["type: halfscope memory resnet50 --table=csv"]),
            (("report", "out", "--format", "table"), ["type: halfscope report out --table text"]),
            (("memory", "--format=table", "resnet50"), ["type: halfscope memory --table=text resnet50"]),
        ):
            self.refuse(*words, says=says)
        self.assertEqual(halfscope("calc", "add", "--", "1", "-.5").stdout, "0x3800 00\n")


class Generated(WithFolder):
    def complete(self, *words):
        """Bash's completions of the last word."""
        script = """
            source /dev/stdin <<<"$COMPLETION"
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _halfscope; printf '%s\\n' "${COMPREPLY[@]}"
        """
        done = subprocess.run(["bash", "-c", script, "halfscope", *words], capture_output=True, text=True,
                              cwd=self.folder, env={"COMPLETION": self.run_ok("generate", "bash"), "PATH": "/usr/bin:/bin"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def complete_word(self, *words):
        """The same without options."""
        return [word for word in self.complete("halfscope", *words) if not word.startswith("-")]

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete_word(""), COMMANDS)
        self.assertEqual(self.complete_word("an"), ["analyze"])
        self.assertEqual(self.complete("halfscope", "analyze", "--gr"), ["--group"])
        lists = json.loads(self.run_ok("list", "--json"))
        listed = {kind: [entry["name"] for entry in entries] for kind, entries in lists.items()}
        self.assertEqual(self.complete_word("analyze", "--format", ""), listed["formats"])
        self.assertEqual(self.complete_word("formats", "--format", "mxfp4"), ["mxfp4"])
        models = [name.replace(" ", "") for name in listed["orders"][:-1]]  # not the library's
        self.assertEqual(self.complete_word("calc", "dot", "--order", ""), models)
        self.assertEqual(self.complete_word("replay", "--scaler", ""), [*listed["scalers"], "all"])
        self.assertEqual(self.complete_word("calc", "add", "--rounding", ""), listed["roundings"])
        self.assertEqual(self.complete_word("report", "--table", ""), ["text", "csv", "markdown", "latex", "json"])
        self.assertEqual(self.complete_word("run", ""), listed["experiments"])
        self.assertEqual(self.complete_word("memory", ""), listed["models"])
        self.assertEqual(self.complete_word("memory", "--optimizer", ""), listed["optimizers"])
        self.assertEqual(self.complete_word("list", ""), list(listed))
        (self.folder / "grads.npz").write_bytes(b"")
        self.assertEqual(self.complete_word("analyze", "gra"), ["grads.npz"])
        self.assertEqual(self.complete_word("analyze", "--against", "gra"), ["grads.npz"])

    def test_every_option_is_in_all_of_them(self):
        bash, zsh, manual = (self.run_ok("generate", kind) for kind in ("bash", "zsh", "man"))
        for command in COMMANDS:
            for option in OPTION.findall(self.run_ok(command, "--help")):
                self.assertIn(option, bash)
                self.assertIn(f"*{option}[", zsh)
                self.assertIn(option.replace("-", "\\-"), manual)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_script(self):
        done = subprocess.run(["zsh", "-n"], input=self.run_ok("generate", "zsh"), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_manual_page_has_no_warnings(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=self.run_ok("generate", "man"),
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_install_has_them(self):
        build = Path(PROGRAM).resolve().parents[1]
        if not (build / "experiments/generated/man/halfscope.1").exists() or not (build / "tests/dump_tensors").exists():
            self.skipTest("not all targets are built")
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, capture_output=True)
            share = Path(prefix) / "share"
            for name, kind in (("bash-completion/completions/halfscope", "bash"), ("zsh/site-functions/_halfscope", "zsh"),
                               ("man/man1/halfscope.1", "man")):
                self.assertEqual((share / name).read_text(), self.run_ok("generate", kind))


if __name__ == "__main__":
    unittest.main()

"""Every kind of bad input: exit status 2 or 3, one clear line, and nothing half-written."""

import gzip
import json
import resource
import subprocess
import unittest
import wave

from program import PROGRAM, WithFolder, halfscope, idx


class BadInput(WithFolder):
    def nothing_written(self):
        self.assertFalse((self.folder / "out").exists())

    def test_unknown_names(self):
        self.refuse("ruin", says=["unknown command 'ruin'", "did you mean 'run'"])
        self.refuse("run", "master-cpy", says=["unknown experiment 'master-cpy'", "did you mean 'master-copy'"])
        self.refuse(*self.words("out", "--arms", "fp32,fp16_mixt"), says=["arm of master-copy", "'fp16_mixed'"])
        self.refuse(*self.words("out", "--set", "activation=fp61"), says=["activation", "did you mean 'fp16'"])
        self.refuse(*self.words("out", "--set", "stps=3"), says=["unknown key 'stps'", "did you mean 'steps'"])
        self.refuse("list", "formts", says=["unknown kind 'formts'", "did you mean 'formats'"])
        self.nothing_written()

    def test_arms_called_as_a_file_of_the_results(self):
        self.refuse(*self.words("out", "--arm", "summary.json:activation=fp16"), says=["arm name 'summary.json'", "another"])
        self.nothing_written()

    def test_values_out_of_range(self):
        for setting in ("steps=0", "steps=-1", "steps=ten", "learning_rate=nan", "momentum=2", "loss_scale=0", "seed=1"):
            self.refuse(*self.words("out", "--set", setting), says=[setting.split("=")[0]])
        for beta in ("beta1", "beta2"):
            for value in ("1", "0.99999999"):  # 1 in FP32
                self.refuse(*self.words("out", "--set", f"{beta}={value}"), says=[f"{beta} = '{value}'", "0 to less than 1"])
        self.refuse(*self.words("out", "--set", "steps"), says=["KEY=VALUE"])
        self.refuse(*self.words("out", "--set", "batch=97"), says=["97", "96"])
        self.refuse(*self.words("out", "--seeds", "0"), says=["--seeds"])
        self.refuse(*self.words("out", "--set", "policy=fp32"), says=["policy", "--arms"])
        self.refuse(*self.words("out", "--device", "cuda"), says=["cuda", "--device cpu"])
        self.nothing_written()

    def test_options_of_loss_scalers(self):
        words = ("run", "master-copy", "--data", self.data, "--out", self.folder / "out")
        self.refuse(*words, "--set", "scaler=megatrn", says=["megatrn", "did you mean 'megatron'"])
        self.refuse(*words, "--set", "hysteresis=2", says=["hysteresis", "none", "list scalers"])
        self.refuse(*words, "--set", "scaler=megatron", "--set", "hysteresis=1.5", says=["hysteresis", "integer"])
        self.refuse(*words, "--set", "scaler=megatron", "--set", "tolerance=0.5", says=["tolerance", "megatron"])
        self.refuse(*words, "--set", "scaler=megatron", "--set", "initial_scale=0.5", says=["initial_scale", "min_scale"])
        self.refuse(*words, "--set", "record_gradients=all", says=["record_gradients", "max_abs"])
        self.nothing_written()

    def test_missing_and_broken_data(self):
        self.refuse("run", "master-copy", "--quick", "--data", self.folder / "nowhere", "--out", self.folder / "out",
                    says=["nowhere", "dataset-fashion-mnist"])
        images = self.data / "train-images-idx3-ubyte"
        labels = self.data / "train-labels-idx1-ubyte.gz"
        good_images, good_labels = images.read_bytes(), labels.read_bytes()
        wrong = {
            "magic": (images, b"\0\0\7\3" + good_images[4:], ["train-images-idx3-ubyte"]),
            "short": (images, good_images[:-5], ["train-images-idx3-ubyte"]),
            "truncated gzip": (labels, good_labels[:-9], ["train-labels-idx1-ubyte.gz"]),
            "corrupt gzip": (labels, good_labels[:-8] + b"\xff" * 4 + good_labels[-4:], ["train-labels-idx1-ubyte.gz"]),
            "label": (labels, gzip.compress(idx([96], [0] * 50 + [11] + [0] * 45)), ["label", "11", "50"]),
            "counts": (labels, gzip.compress(idx([95], [0] * 95)), ["95", "96"]),
        }
        for name, (path, contents, says) in wrong.items():
            with self.subTest(name):
                before = path.read_bytes()
                path.write_bytes(contents)
                self.refuse(*self.words("out", "--quick"), says=says)
                path.write_bytes(before)
                self.nothing_written()

    def test_recordings(self):
        recordings = self.folder / "recordings"
        words = ("run", "speech-master-copy", "--quick", "--data", recordings, "--out", self.folder / "out")
        self.refuse(*words, says=["recordings", "No such file"])
        recordings.mkdir()
        self.refuse(*words, says=["0 recordings", "at least two"])

        def put(name, transcript, rate=16000):
            with wave.open(str(recordings / f"{name}.wav"), "wb") as file:
                file.setparams((1, 2, rate, 0, "NONE", ""))
                file.writeframes(bytes(range(250)) * 40)
            (recordings / f"{name}.txt").write_text(transcript)

        put("a", "a")
        put("b", "b", rate=22050)
        self.refuse(*words, says=["b.wav", "22050", "16000"])
        put("b", "")
        self.refuse(*words, says=["b.txt", "empty transcript"])
        put("b", "route 66")
        self.refuse(*words, says=["b.txt", "'6' is not in the alphabet"])
        (recordings / "b.txt").unlink()
        self.refuse(*words, says=["b.txt"])
        put("b", "b")
        self.refuse(*words, says=["batch size 32"])
        self.nothing_written()

    def test_texts(self):
        text = self.folder / "text"
        words = ("run", "softmax-reduction", "--quick", "--data", text, "--out", self.folder / "out")
        self.refuse(*words, says=["kjv_text", "text"])
        for contents, says in ((b"", ["no word"]), (b"a\nb\0c", ["line 2", "NUL"]), (b"caf\xe9", ["line 1", "UTF-8"]),
                               (b"a b c " * 100, ["301 tokens", "sequence_length"])):
            text.write_bytes(contents)
            self.refuse(*words, says=[*says, str(text)])
        text.write_bytes(b"a b c " * 500)
        self.refuse(*words, "--set", "batch=2000", says=["batch size 2000"])
        for vocabulary in (0, 1):
            self.refuse(*words, "--set", f"vocabulary={vocabulary}", says=["vocabulary", "2"])
        self.refuse(*words, "--set", "model=cnn_bn", says=["cnn_bn"])
        self.nothing_written()

    def test_sentence_pairs(self):
        pairs = self.folder / "pairs.tsv"
        words = ("run", "softmax-reduction", "--quick", "--arms", "fp32", "--set", "model=transformer", "--set",
                 "dataset=gettext_en_fr", "--data", pairs, "--out", self.folder / "out")
        self.refuse(*words, says=["gettext_en_fr", "pairs.tsv"])
        for contents, says in ((b"cat chat\n", ["line 1", "0 tabs"]), (b"cat\tchat\n\tchat\n", ["line 2", "empty source"]),
                               (b"cat\tcaf\xe9\n", ["line 1", "UTF-8"]), (b"cat\tch\0at\n", ["line 1", "NUL"]),
                               (b"cat\tchat\n", ["1 sentence pairs", "two or more"])):
            pairs.write_bytes(contents)
            self.refuse(*words, says=[*says, str(pairs)])
        pairs.write_bytes(b"cat\tchat\ndog\tchien\n")
        self.refuse(*words, says=["batch size", "number of examples"])
        self.refuse(*words, "--set", "vocabulary=4", says=["vocabulary = 4", "5 or more"])
        self.nothing_written()

    def test_odd_images(self):
        for split, count in (("train", 40), ("t10k", 40)):
            (self.data / f"{split}-images-idx3-ubyte").write_bytes(idx([count, 6, 6], [1] * 36 * count))
            (self.data / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx([count], [0] * count)))
        self.refuse(*self.words("out", "--quick"), says=["cnn_bn", "multiples of 4", "6"])
        self.nothing_written()

    def scene_words(self, experiment, *more, arm="fp32"):
        return ["run", experiment, "--data", self.data, "--out", self.folder / "out", "--arms", arm, "--seeds", "1",
                "--set", "steps=1", "--set", "batch=2", *more]

    def test_scenes_that_cannot_be(self):
        for experiment, model, dataset in (("detection-loss-scale", "ssd", "detection_scenes"),
                                           ("segmentation-loss-scale", "unet", "segmentation_scenes")):
            with self.subTest(experiment):
                self.refuse(*self.scene_words(experiment, "--set", "image_size=32"), says=[dataset, "32", "36 or more"])
                self.refuse(*self.scene_words(experiment, "--set", "image_size=44"), says=[model, "multiples of 8", "44"])
                self.refuse(*self.scene_words(experiment, "--set", "image_size=0"), says=["image_size", "from 1 to"])
                self.refuse(*self.scene_words(experiment, "--set", f"data={self.folder}/nowhere"),
                            says=[dataset, "nowhere", "dataset-fashion-mnist"])
                self.refuse(*self.scene_words(experiment, "--set", "batch=3001"), says=["3001", "3000"])
                self.refuse(*self.scene_words(experiment, "--set", "loss_scale=2"), says=["loss_scale", "--arms"])
                self.nothing_written()

    def test_models_on_data_of_another_kind(self):
        wrong = {
            "a detector of pixels": ("detection-loss-scale", "dataset=segmentation_scenes", ["ssd", "detection_scenes"]),
            "pixels of boxes": ("segmentation-loss-scale", "dataset=detection_scenes", ["unet", "segmentation_scenes"]),
        }
        for name, (experiment, setting, says) in wrong.items():
            with self.subTest(name):
                self.refuse(*self.scene_words(experiment, "--set", setting), says=says)
                self.nothing_written()

    def test_two_stages_on_images_that_cannot_be(self):
        cases = {"image_size=38": ["faster_rcnn", "multiples of 4 from 16 on", "38"],
                 "image_size=35": ["detection_scenes", "35", "36 or more"],
                 "dataset=segmentation_scenes": ["faster_rcnn", "wants boxes", "detection_scenes"]}
        for setting, says in cases.items():
            with self.subTest(setting):
                self.refuse(*self.scene_words("detectors", "--set", setting, arm="faster_rcnn_fp32"), says=says)
                self.nothing_written()

    def test_scenes_of_a_small_canvas(self):
        for experiment in ("detection-loss-scale", "segmentation-loss-scale"):
            self.run_ok(*self.scene_words(experiment, "--set", "image_size=40"))
            summary = json.loads((self.folder / "out" / experiment / "fp32/seed0/summary.json").read_text())
            self.assertFalse(summary["diverged"])

    def test_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("in the way")
        self.refuse(*self.words("file/out", "--quick"), says=["file"], status=3)
        self.assertEqual((self.folder / "file").read_text(), "in the way")

    def test_disk_full(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        self.refuse(*self.words("out", "--arms", "fp32", "--seeds", "1"), says=["cannot write", "seed0"], status=3,
                    preexec_fn=limit)
        run = self.folder / "out/master-copy/fp32/seed0"
        self.assertTrue((run / "status").read_text().startswith("FAILED: "))
        for path in run.rglob("*.json*"):
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
                json.loads(line)
        self.assertFalse((run / "summary.json").exists())
        self.assertEqual([p.name for p in run.rglob(".*")], [])
        # With room again the run goes on from its last whole checkpoint.
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1", "--resume"))
        self.run_ok(*self.words("whole", "--arms", "fp32", "--seeds", "1"))
        self.assertEqual(self.records("out"), self.records("whole"))

    def test_standard_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "list"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_results_are_not_overwritten(self):
        words = self.words("out", "--arms", "fp32", "--seeds", "1")
        self.run_ok(*words)
        before = self.records("out")
        status = self.folder / "out/master-copy/fp32/seed0/status"
        status.write_text("RUNNING\n")
        self.refuse(*words, says=["holds a run already", "RUNNING", "--resume", "--out"])
        status.write_text("DONE\n")
        self.refuse(*words, "--resume", "--set", "learning_rate=0.5", says=["learning_rate", "0.5"])
        self.run_ok(*words, "--resume")
        self.assertEqual(self.records("out"), before)

    def test_results_of_another_version(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1"))
        for name in ("summary.json", "config.json"):
            path = self.folder / "out/master-copy/fp32/seed0" / name
            text = path.read_text()
            path.write_text(text.replace('"format_version": 1', '"format_version": 2'))
            if name == "summary.json":
                self.refuse("report", self.folder / "out", says=["summary.json", "format 2", "format 1"])
            else:
                self.refuse(*self.words("out", "--arms", "fp32", "--seeds", "1", "--resume"), says=["config.json", "format 2"])
            path.write_text(text)

    def test_one_experiment_that_cannot_be_read_does_not_silence_the_others(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1", steps=4))
        bad = self.folder / "out/master-copy-sgd/fp32/seed0/summary.json"
        bad.parent.mkdir(parents=True)
        bad.write_text('{"format_version": 1, "seed": 0, "diverged": "false"}')
        result = halfscope("report", self.folder / "out")
        self.assertEqual(result.returncode, 2)
        self.assertIn("master-copy: ", result.stdout)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("summary.json: diverged is \"false\"; expected true or false", result.stderr)

    def test_results_go_into_a_folder_with_a_name(self):
        self.refuse("run", "master-copy", "--out", "", says=["--out", "give a folder"])

    def test_report_without_results(self):
        self.refuse("report", self.folder / "nowhere", says=["nowhere", "no such folder"])
        self.refuse("report", self.data, says=["no results"])
        self.refuse("report", says=["DIR"])

    def test_config_of_another_arm(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1"))
        config = self.folder / "out/master-copy/fp32/seed0/config.json"
        self.refuse("run", "master-copy", "--config", config, "--arms", "fp16_mixed", "--out", self.folder / "two",
                    says=["--config is of arm fp32"])
        self.refuse("run", "batchnorm-reduction", "--config", config, "--out", self.folder / "two",
                    says=["--config is of experiment master-copy"])
        broken = self.folder / "broken.json"
        broken.write_text('{"steps": ')
        self.refuse("run", "master-copy", "--config", broken, says=["broken.json"])
        self.refuse("run", "master-copy", "--config", self.folder / "none.toml", says=["none.toml"])


if __name__ == "__main__":
    unittest.main()

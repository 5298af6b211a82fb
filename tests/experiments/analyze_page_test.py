"""halfscope analyze --html: the page that shows the tensors at any loss scale."""

import json
import re
import unittest

from program import halfscope
from tensor_files import Files


class Page(Files):
    def data_of(self, page):
        return json.loads(re.search(r'<script type="application/json">(.*)</script>', page.read_text())[1])

    def test_a_page_has_the_counts_of_every_tensor(self):
        shards = self.shards(3)
        page = self.folder / "page.html"
        printed = self.run_ok("analyze", *shards, "--html", page)
        self.assertEqual(printed, self.run_ok("analyze", *shards))
        data = self.data_of(page)
        self.assertEqual([tensor["name"] for tensor in data["tensors"]],
                         [f"layers.{i}.{part}.weight" for i in range(3) for part in ("attn", "mlp")])
        zeros, nonfinite, first, counts, powers, *_ = data["tensors"][2]["cells"][0]
        self.assertEqual((zeros, nonfinite, first, counts[0], counts[-1]), (0, 0, -30, 1, 9))
        self.assertEqual(powers, [30, 9])
        self.assertEqual(data["format"], "fp16")
        self.assertIn(" ".join(data["advice"]["verdict"].split()), " ".join(printed.split()))

    def test_groups_are_rows_of_a_page(self):
        page = self.folder / "page.html"
        self.run_ok("analyze", *self.shards(3), "--group", "layers.*.{attn,mlp}", "--format", "bf16", "--html", page)
        data = self.data_of(page)
        self.assertEqual([sum(tensor["cells"][0][3]) for tensor in data["tensors"]], [30, 60])
        self.assertEqual(data["format"], "bf16")

    def test_a_page_replaces_no_other_file(self):
        tensors = self.write("a.safetensors", {"x": [1.0]})
        content, page = tensors.read_bytes(), self.folder / "page.html"
        self.refuse("analyze", tensors, "--html", tensors, says=["--html", "a.safetensors is there already and is no page"])
        self.assertEqual(tensors.read_bytes(), content)
        page.touch()
        for _ in range(2):  # an empty file and an older page are replaced
            self.run_ok("analyze", tensors, "--html", page)
            self.assertEqual([tensor["name"] for tensor in self.data_of(page)["tensors"]], ["x"])

    def test_names_are_not_run(self):
        page = self.folder / "page.html"
        name = "</script><script>alert(1)</script>"
        self.run_ok("analyze", self.write("a.safetensors", {name: [1.0], "control\x1b": [2.0]}), "--html", page)
        self.assertEqual(page.read_text().count("</script>"), 2)
        self.assertEqual({tensor["name"] for tensor in self.data_of(page)["tensors"]}, {name, "control\\x1b"})

    def test_a_page_that_cannot_be_written(self):
        (shard,) = self.shards(1)
        done = halfscope("analyze", shard, "--html", self.folder / "none" / "page.html")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("page.html", done.stderr)

    def test_a_page_of_formats_has_the_counts_that_are_printed(self):
        values = [2.0 ** -(i % 14) * (1 + i % 7 / 8) for i in range(1, 129)] + [0.0] * 64
        tensors = self.write("weights.safetensors", {"w": values, "v": [1.0] * 40})
        page, formats = self.folder / "page.html", ("--format", "fp8_e4m3,mxfp8_e4m3,nvfp4,nvfp4")
        words = ("formats", tensors, *formats, "--max-error", "3%")
        printed = self.run_ok(*words, "--html", page)
        self.assertEqual(printed, self.run_ok(*words))
        data, found = self.data_of(page), json.loads(self.run_ok(*words, "--json"))
        self.assertEqual([tensor["name"] for tensor in data["tensors"]], ["w", "v"])
        names = [choice["name"] for choice in data["formats"]]
        self.assertEqual(names[:4], ["fp8_e4m3", "mxfp8_e4m3", "nvfp4", "mxfp8_e4m3/floor"])
        self.assertEqual(len(names), len(set(names)))
        for shown, told in zip(data["tensors"], found["tensors"]):
            for name, (counts, _, _, codes, exponents, _) in zip(names, shown["cells"]):
                counts = dict(zip(data["counters"], counts))
                self.assertEqual(sum(codes[1::2]), 0 if name == "fp8_e4m3" else counts["blocks"])
                self.assertEqual(sum(exponents[1::2]), counts["elements"] - counts["zeros"])
            for name, cell, expected in zip(names, shown["cells"], told["formats"]):
                counts = dict(zip(data["counters"], cell[0]))
                for counter in ("elements", "zeros", "flushed", "subnormal", "clipped", "overflow", "blocks",
                                "zero_blocks", "blocks_at_risk"):
                    self.assertEqual(counts[counter], expected[counter], (name, counter))
                self.assertEqual((cell[1], cell[2], cell[5]),
                                 (expected["relative_error"], expected["error_db"], expected["scale_log2"]))
        self.assertEqual(data["start"], found["cheapest"])

    def test_a_page_of_formats_says_first_what_to_use(self):
        tensors = self.write("weights.safetensors", {"w": [1 + i / 64 for i in range(64)]})
        page = self.folder / "page.html"
        self.run_ok("formats", tensors, "--format", "nvfp4,mxfp8_e4m3", "--html", page)
        self.assertIn("<b>Use mxfp8_e4m3: 8.25 bits per element.</b></p>\n<p>Error ", page.read_text())
        done = halfscope("formats", tensors, "--format", "nvfp4,mxfp8_e4m3", "--max-error", "0.001%", "--html", page)
        self.assertEqual(done.returncode, 1)
        self.assertIn("<b>Add formats: none of these stays under --max-error 0.001%.</b></p>\n<p>mxfp8_e4m3 comes closest",
                      page.read_text())
        self.run_ok("formats", tensors, "--format", "mxfp4", "--html", page)
        self.assertIn("<h1>weights.safetensors in mxfp4</h1>", page.read_text())


if __name__ == "__main__":
    unittest.main()

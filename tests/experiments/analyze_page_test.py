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

    def test_a_page_needs_tensors(self):
        weights = self.write("w.safetensors", {"w": [1.0]})
        page = self.folder / "page.html"
        self.refuse("analyze", "--weights", weights, "--updates", weights, "--html", page, says=["--html", "FILE"])
        self.assertFalse(page.exists())


if __name__ == "__main__":
    unittest.main()

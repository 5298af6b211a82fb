"""halfscope analyze over every layout of quantized tensors: numbers equal to the layout's, and what is not read."""

import json
import math
import random
import struct
import unittest

from layout_files import KINDS, NF4, four_bits, gptq, model_of, words
from program import halfscope
from quantized_files import QuantizedFiles, floats, safetensors


class Layouts(QuantizedFiles):
    def write_in(self, name, tensors, config=None, file="config.json"):
        """A folder of its own, so that nothing lies beside the file."""
        folder = self.folder / name
        folder.mkdir()
        path = folder / "model.safetensors"
        path.write_bytes(safetensors(tensors))
        if config is not None:
            (folder / file).write_text(json.dumps(config))
        return path

    def test_numbers_are_those_of_the_layout(self):
        """Forty tensors of each kind, with groups, zero points, orders and names drawn at random."""
        for seed, kind in enumerate(KINDS):
            with self.subTest(kind):
                parts, weights = model_of(kind, 40, seed)
                config = None
                if kind.startswith("GPTQ"):
                    form = "gptq" if "v1" in kind else "gptq_v2"
                    config = {"quantization_config": {"quant_method": "gptq", "checkpoint_format": form}}
                path = self.write_in(f"kind{seed}", parts, config)
                original = self.write_in(f"truth{seed}", weights)
                found = {tensor["name"]: tensor for tensor in self.analyze(path, "--against", original)}
                self.assertEqual(set(found), set(weights))
                wrong = [name for name, tensor in found.items() if tensor["relative_error"] != 0]
                self.assertEqual(wrong, [])
                layouts = {
                    tensor["blocks"]["layout"].split(",")[0].split(" in ")[0]
                    for tensor in found.values()
                    if "blocks" in tensor
                }
                self.assertEqual(len(layouts), 1, layouts)

    def test_an_error_of_one_step_is_seen(self):
        """The form that the configuration states decides, and the other one gives other weights."""
        parts, weights = gptq(random.Random(1), "q.", 4, 1)
        original = self.write_in("truth", weights)
        for form, is_right in (("gptq", True), ("gptq_v2", False)):
            path = self.write_in(form, parts, {"bits": 4, "checkpoint_format": form}, "quantize_config.json")
            (found,) = self.analyze(path, "--against", original)
            self.assertEqual(found["relative_error"] == 0, is_right)

    def test_form_of_zero_points(self):
        """Symmetric zero points tell the form; others do not, and a configuration that contradicts them is named."""

        def model(zero, config=None, name=""):
            parts = {
                "q.qweight": ("I32", [1, 8], struct.pack("<8I", *range(8))),
                "q.qzeros": ("I32", [1, 1], struct.pack("<I", *words([zero] * 7 + [zero if name == "" else 3], 4))),
                "q.scales": ("F16", [1, 8], struct.pack("<8e", *[0.5] * 8)),
            }
            return self.write_in(f"form{zero}{name}", parts, config)

        for zero in (7, 8):
            (found,) = self.analyze(model(zero))
            self.assertIn(f"form v{zero - 6}", found["blocks"]["layout"])
            self.assertEqual(float(found["max_abs"]), 4)
        self.refuse("analyze", model(7, name="mixed"), says=["q.qweight", "form v2", "v1", "checkpoint_format"])
        config = {"quantization_config": {"quant_method": "gptq", "sym": True, "checkpoint_format": "gptq"}}
        parts = {
            "q.qweight": ("I32", [1, 8], bytes(32)),
            "q.qzeros": ("I32", [1, 1], b"\x88" * 4),
            "q.scales": ("F16", [1, 8], struct.pack("<8e", *[0.5] * 8)),
        }
        self.refuse(
            "analyze", self.write_in("contradiction", parts, config), says=["symmetric", "correct checkpoint_format"]
        )

    def test_codes_whose_scales_have_a_name_of_their_own(self):
        """Factors beyond 1 under an unknown name may divide; a small tensor by the payload's name may be a scale."""
        codes = ("F8_E4M3", [2, 2], b"\x7e" * 4)
        small, large = ("F32", [1], floats([1e-4])), ("F32", [1], floats([1e4]))
        for name in (
            "b.scale_weight",
            "b.qscale_weight",
            "b.weight_scale",
            "b.weight.scale",
            "b.scale",
            "b.descale_weight",
            "b.weight_scaling_factor",
        ):
            path = self.write_in(name, {"b.weight": codes, name: small})
            with self.subTest(name):
                (found,) = self.analyze(path)
            self.assertAlmostEqual(float(found["max_abs"]), 0.0448, delta=1e-7)
            self.assertTrue(json.loads(self.run_ok("analyze", path, "--json"))["quantized"])
        for name, scale, says in (
            ("b.weight_scaling_factor", large, "may multiply or divide"),
            ("b.weight_s", small, "may be its scales"),
            ("b.weight_amax", small, "may be its scales"),
            ("b.weight.inv", large, "may be its scales"),
        ):
            with self.subTest(name):
                path = self.write_in(f"not-{name}", {"b.weight": codes, name: scale})
                self.refuse("analyze", path, says=[f'"{name}"', says])
        path = self.write_in("bias", {"b.weight": codes, "b.bias": ("F32", [2], floats([1.0, 2.0]))})
        self.assertEqual({t["name"]: float(t["max_abs"]) for t in self.analyze(path)}, {"b.weight": 448, "b.bias": 2})

    def test_scales_of_the_tensor_under_other_names(self):
        """A global scale divides, as compressed-tensors has it; another one than 1 under an unknown name is named."""
        blocks = {"w": ("U8", [1, 8], b"\x22" * 8), "w_scale": ("F8_E4M3", [1, 1], b"\x38")}
        for name, value in (("w_scale_2", 4), ("w_global_scale", 0.25)):
            (found,) = self.analyze(self.write_in(name, {**blocks, name: ("F32", [], floats([4.0]))}))
            self.assertEqual(float(found["max_abs"]), value)
        path = self.write_in("unknown", {**blocks, "w_scale_global": ("F32", [], floats([4.0]))})
        self.refuse("analyze", path, says=['"w_scale_global" may multiply or divide'])

    def test_two_payloads_of_a_module_keep_their_scales(self):
        path = self.write_in(
            "two",
            {
                "m.w1": ("F8_E4M3", [1], b"\x38"),
                "m.w1_scale": ("F32", [1], floats([0.5])),
                "m.w10": ("F8_E4M3", [1], b"\x38"),
                "m.w10_scale": ("F32", [1], floats([0.25])),
                "m.scale": ("F32", [3], floats([7.0] * 3)),
            },
        )
        found = {tensor["name"]: float(tensor["max_abs"]) for tensor in self.analyze(path)}
        self.assertEqual(found, {"m.w1": 0.5, "m.w10": 0.25, "m.scale": 7})

    def test_bytes_with_a_zero_point_are_integers(self):
        scale, zero = ("F32", [1, 1], floats([0.01])), ("U8", [1, 1], b"\x80")
        path = self.write_in("u8", {"w": ("U8", [1, 32], bytes([128] * 32)), "w_scale": scale, "w_zero_point": zero})
        (found,) = self.analyze(path)
        self.assertEqual((found["elements"], found["zeros"]), (32, 32))
        path = self.write_in("no-zero", {"w": ("U8", [1, 32], bytes([128] * 32)), "w_scale": scale})
        self.refuse("analyze", path, says=["UINT8 without its zero points"])

    def test_a_scale_of_the_tensor_that_is_no_factor(self):
        for value in (math.inf, -math.inf, math.nan, 0.0, -0.5):
            with self.subTest(value):
                tensors = {
                    "w": ("U8", [1, 8], b"\x22" * 8),
                    "w_scale": ("F8_E4M3", [1, 1], b"\x38"),
                    "w_scale_2": ("F32", [], floats([value])),
                }
                first = self.run_ok("analyze", self.write_in(f"scale{value}", tensors)).splitlines()[0]
                self.assertIn("Quantize w again, with a scale of the tensor that is positive", first)
                tensors = {"w": ("F8_E4M3", [1, 8], b"\x22" * 8), "w_scale": ("F32", [], floats([value]))}
                first = self.run_ok("analyze", self.write_in(f"lone{value}", tensors)).splitlines()[0]
                self.assertIn("Quantize w again", first)

    def test_files_side_by_side_are_no_shards(self):
        """Neither an index nor numbered names: the two are read each for itself."""
        noise = random.Random(2)
        parts, _ = four_bits(noise, "w.", "nf4", False)
        first = self.write("nf4", parts)
        compressed = {
            "w.weight_packed": ("U8", [2, 16], bytes(32)),
            "w.weight_scale": ("F8_E4M3", [2, 2], b"\x38" * 4),
            "w.weight_global_scale": ("F32", [1], floats([2.0])),
        }
        second = self.write("ct23", compressed)
        for path in (first, second):
            self.assertEqual([tensor["name"] for tensor in self.analyze(path)], ["w.weight"])
        found = self.analyze(first, second)
        self.assertEqual([tensor["name"].split(":")[-1] for tensor in found], ["w.weight", "w.weight"])
        self.assertIn("NF4", found[0]["blocks"]["layout"])
        codes = self.write("codes", {"v.weight": ("F8_E4M3", [2, 2], b"\x38" * 4)})
        self.write("other", {"v.weight_scale": ("F32", [1], floats([0.5]))})
        self.refuse("analyze", codes, says=["v.weight_scale", "other.safetensors", "model-00001-of-00002"])
        result = halfscope("analyze", codes, self.folder / "other.safetensors")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "")

    def test_no_loss_scale_is_advised_on_what_quantization_leaves(self):
        """Norms beside weights that are not read."""
        tensors = {
            "q.qweight": ("I32", [8, 5], bytes(160)),
            "q.qzeros": ("I32", [1, 5], bytes(20)),
            "q.scales": ("F16", [3, 3], bytes(18)),
            "norm.weight": ("F32", [4], floats([1.0] * 4)),
        }
        result = halfscope("analyze", self.write_in("other", tensors), "--json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("neither GPTQ's nor AWQ's", result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual([tensor["name"] for tensor in found["tensors"]], ["norm.weight"])
        self.assertTrue(found["quantized"])
        self.assertIsNone(found["recommended_scale_log2"])
        self.assertIn("1 quantized tensor is not read", found["verdict"])

    def test_scales_of_layers_that_runtimes_fuse(self):
        """Gate and up, q, k and v with scales of their own; the ratio is that of the largest to the smallest."""

        def nvfp4(name, scale):
            return {
                f"{name}.weight": ("U8", [2, 16], bytes([0x22] * 32)),
                f"{name}.weight_scale": ("F8_E4M3", [2, 2], bytes([0x38] * 4)),
                f"{name}.weight_scale_2": ("F32", [], floats([scale])),
            }

        mlp, attention = "model.layers.0.mlp.experts.0.", "model.layers.0.self_attn."
        for names, scales, ratio in (
            ((mlp + "gate_proj", mlp + "up_proj"), (2.0**-12, 2.0**-14), "by 4."),
            ((mlp + "w1", mlp + "w3"), (4.83e-5, 3.864e-5), "by 1.25."),
            ((attention + "q_proj", attention + "k_proj", attention + "v_proj"), (0.5, 1.0, 0.25), "by 4."),
            ((attention + "to_q", attention + "to_k", attention + "to_v"), (0.5, 0.5, 0.5), None),
            ((mlp + "gate_proj", attention + "up_proj"), (0.5, 0.25), None),
            ((mlp + "gate_proj", mlp + "down_proj"), (0.5, 0.25), None),
        ):
            with self.subTest(names):
                tensors = {key: part for name, scale in zip(names, scales) for key, part in nvfp4(name, scale).items()}
                path = self.write_in("-".join(names) + str(scales), tensors)
                verdict = json.loads(self.run_ok("analyze", path, "--json"))["verdict"]
                self.assertEqual("that a runtime fuses" in verdict, ratio is not None)
                self.assertIn(ratio or "No block of", verdict)

    def test_single_scales_of_layers_that_runtimes_fuse(self):
        """FP8 under one scale each: a note, since a runtime can quantize again; none for other layers."""
        for layers, ratio, is_named in (
            (("gate_proj", "up_proj"), 2.0, True),
            (("w1", "w3"), 4.0, True),
            (("q_proj", "k_proj", "v_proj"), 1.25, True),
            (("w1", "w3"), 1.0, False),
            (("w1", "w2"), 4.0, False),
        ):
            parts = {}
            for i, layer in enumerate(layers):
                parts[f"m.0.{layer}.weight"] = ("F8_E4M3", [2, 2], b"\x70\x7e\x38\x01")
                scale = 0.25 * (ratio if i == len(layers) - 1 else 1)
                parts[f"m.0.{layer}.weight_scale"] = ("F32", [1], floats([scale]))
            with self.subTest(layers=layers, ratio=ratio):
                path = self.write_in(f"{layers[0]}-{layers[1]}-{ratio}", parts)
                said = " ".join(self.run_ok("analyze", path).split())
                words = f"m.0.{layers[-1]}.weight differ by {ratio:g}: a runtime that fuses them"
                self.assertEqual(words in said, is_named)

    def test_scales_that_were_rounded_up_without_their_codes(self):
        """Beside the original the factor is told; alone, that every block reaches the largest code."""
        codes = bytes([*range(1, 127), 1, 2]) * 128 * 4
        shape, blocks = [512, 128], [4, 1]
        steps = [0.00015, 0.0002, 0.00018, 0.00013]
        weights = {"w.weight": ("F8_E4M3", shape, codes)}
        sound = self.write_in("sound", {**weights, "w.weight_scale_inv": ("F32", blocks, floats(steps))})
        rounded = self.write_in("rounded", {**weights, "w.weight_scale_inv": ("F32", blocks, floats([2.0**-12] * 4))})
        verdict = json.loads(self.run_ok("analyze", rounded, "--json"))["verdict"]
        self.assertIn("Compare w.weight with --against the original", verdict)
        found = json.loads(self.run_ok("analyze", rounded, "--against", sound, "--json"))
        self.assertIn("times the original's", found["verdict"])
        self.assertAlmostEqual(found["tensors"][0]["blocks"]["growth"], 2.0**-12 / 0.00015, delta=1e-3)
        verdict = json.loads(self.run_ok("analyze", sound, "--json"))["verdict"]
        self.assertIn("No block of 1 quantized tensor is damaged", verdict)
        self.assertIn(f"up to {100 * (2.0**-12 / 0.00013 - 1):.1f} % too large", verdict)
        same = json.loads(self.run_ok("analyze", sound, "--against", sound, "--json"))
        self.assertEqual(same["tensors"][0]["blocks"]["growth"], 1)

    def test_scales_that_are_all_one(self):
        weights = {"w.weight": ("F8_E4M3", [2, 2], b"\x7e" * 4)}
        path = self.write_in("ones", {**weights, "w.weight_scale": ("F32", [2, 1], floats([1.0, 1.0]))})
        self.assertIn("Every scale of w.weight is 1, and its largest magnitude 448", self.run_ok("analyze", path))
        path = self.write_in("not", {**weights, "w.weight_scale": ("F32", [2, 1], floats([1.0, 0.5]))})
        self.assertNotIn("Every scale", self.run_ok("analyze", path))
        for block, whole, are_ones in ((0x38, 1.0, True), (0x38, 0.5, False), (0x40, 1.0, False)):
            parts = {
                "w.weight": ("U8", [2, 32], bytes([0x57] * 64)),
                "w.weight_scale": ("F8_E4M3", [2, 4], bytes([block] * 8)),
                "w.weight_scale_2": ("F32", [], floats([whole])),
            }
            said = self.run_ok("analyze", self.write_in(f"nvfp4-{block}-{whole}", parts))
            self.assertEqual("Every scale of w.weight is 1, and its largest magnitude 6" in said, are_ones)
        for exponent, are_ones in ((127, True), (126, False)):
            scale = ("F8_E8M0", [1, 1], bytes([exponent]))
            parts = {"w.weight": ("F8_E4M3", [1, 32], b"\x7e" * 32), "w.weight_scale": scale}
            said = self.run_ok("analyze", self.write_in(f"mx-{exponent}", parts))
            self.assertEqual("Every scale of w.weight is 1" in said, are_ones)

    def test_values_that_the_quantization_flushed(self):
        original = self.write_in("truth", {"w": ("F32", [1, 32], floats([1.0, 0.01, 0.0, -0.02] * 8))})
        path = self.write_in("mx", {"w": ("U8", [1, 16], bytes([0x02, 0x00] * 8)), "w_scale": ("U8", [1, 1], b"\x7f")})
        found = self.analyze(path, "--against", original)[0]["blocks"]
        self.assertEqual(found["flushed_of_original"], {"count": 16, "nonzero": 24})
        self.assertIn(
            "66.67 % of the original's nonzero values are 0", self.run_ok("analyze", path, "--against", original)
        )

    def test_a_file_beside_an_index_that_does_not_name_it(self):
        """A shard of another save: it is named, and no part of the model; by itself it is read."""
        folder = self.folder / "stray"
        folder.mkdir()
        for name in ("a", "b", "old"):
            (folder / f"{name}.safetensors").write_bytes(safetensors({f"{name[0]}.w": ("F32", [1], floats([1.0]))}))
        where = {"a.w": "a.safetensors", "b.w": "b.safetensors"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
        found = json.loads(self.run_ok("analyze", folder, "--json"))
        self.assertEqual(sorted(tensor["name"].split(":")[-1] for tensor in found["tensors"]), ["a.w", "b.w"])
        (stray,) = found["not_read"]
        self.assertTrue(stray["file"].endswith("old.safetensors"))
        self.assertIn("model.safetensors.index.json beside it does not name it", stray["reason"])
        self.assertEqual(len(self.analyze(folder / "old.safetensors")), 1)

    def test_placeholders_of_zero_are_refused(self):
        """ZeRO's third stage saves tensors of shape [0]; one with elements beside them makes a file of it."""
        empty = {f"w{i}": ("BF16", [0], b"") for i in range(3)}
        path = self.write_in("empty", empty)
        self.refuse("analyze", path, "--fail-on", "flushed>2%", says=["3 tensors", "ZeRO-3", "zero_to_fp32.py"])
        self.refuse("analyze", self.write_in("single", {"w": ("BF16", [0], b"")}), says=["1 tensor without"])
        path = self.write_in("one", {**empty, "v": ("BF16", [1], b"\x80\x3f")})
        self.assertEqual(len(self.analyze(path)), 4)

    def test_states_of_bitsandbytes_that_are_wrong(self):
        parts, _ = four_bits(random.Random(3), "w.", "nf4", True)
        state = "w.weight.quant_state.bitsandbytes__nf4"
        right = json.loads(parts[state][2])
        for change in (
            {"blocksize": 0},
            {"shape": [1 << 62, 1 << 62]},
            {"shape": "x"},
            {"quant_type": 3},
            {"nested_blocksize": -1},
            {"nested_offset": "x"},
            {"blocksize": 1.5},
            {"shape": [-2, -3]},
        ):
            text = json.dumps({**right, **change}).encode()
            with self.subTest(change):
                wrong = {**parts, state: ("U8", [len(text)], text)}
                self.refuse(
                    "analyze", self.write_in(f"bad{change}".replace("/", ""), wrong), says=["absmax", "bitsandbytes"]
                )
        for text in (b"", b"{", b"[]", b"\xff\xfe"):
            wrong = {**parts, state: ("U8", [len(text)], text)}
            self.refuse("analyze", self.write_in(f"text{text}", wrong), says=["bitsandbytes"])
        for part in (".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"):
            wrong = {name: held for name, held in parts.items() if name != "w.weight" + part}
            self.refuse("analyze", self.write_in(f"no{part}", wrong), says=["bitsandbytes"])
        self.assertEqual(len(NF4), 16)


if __name__ == "__main__":
    unittest.main()

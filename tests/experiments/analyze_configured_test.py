"""halfscope analyze: quantized tensors beside a configuration that says the same of them, or something else."""

import json
import random
import struct
import unittest

from layout_files import awq, compressed_integers, compressed_nvfp4, four_bits, gptq, integers, row_integers
from program import halfscope
from quantized_files import QuantizedFiles, floats, safetensors


def weights_of(**settings):
    """A scheme of compressed-tensors, with activations of other bits."""
    groups = {"group_0": {"weights": settings, "input_activations": {"num_bits": 8, "type": "float"}}}
    return {"quant_method": "compressed-tensors", "config_groups": groups}


class Configured(QuantizedFiles):
    def write_beside(self, config, tensors, file="config.json"):
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        path = folder / "model.safetensors"
        path.write_bytes(safetensors(tensors))
        key = "quantization" if file.startswith("hf_") else "quantization_config"
        (folder / file).write_text(json.dumps(config if file.startswith("quantize") else {key: config}))
        return path

    def test_a_configuration_that_says_what_the_bytes_say(self):
        noise = random.Random(4)
        fp8 = {"q.weight": ("F8_E4M3", [2, 4], bytes(8)), "q.weight_scale": ("F32", [1], floats([0.5]))}
        for config, tensors in (
            ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq"}, gptq(noise, "q.", 4, 1)[0]),
            ({"quant_method": "gptq", "bits": 4, "dynamic": {"q": {"bits": 8}}}, gptq(noise, "q.", 8, 1)[0]),
            ({"quant_method": "awq", "bits": 4}, awq(noise, "q.")[0]),
            ({"quant_method": "bitsandbytes", "load_in_4bit": True}, four_bits(noise, "q.", "nf4", True)[0]),
            ({"quant_method": "bitsandbytes", "load_in_8bit": True}, row_integers(noise, "q.")[0]),
            (weights_of(num_bits=4, type="int"), compressed_integers(noise, "q.", 4)[0]),
            (weights_of(num_bits=4, type="float"), compressed_nvfp4(noise, "q.")[0]),
            (weights_of(num_bits=8, type="int"), integers(noise, "q.", True)[0]),
            (weights_of(num_bits=8, type="float"), fp8),
            ({"quant_method": "fp8"}, fp8),
            ({"quant_method": "a method of tomorrow", "bits": 4.25}, fp8),
        ):
            with self.subTest(config=config):
                self.assertEqual(len(self.analyze(self.write_beside(config, tensors))), 1)

    def test_a_configuration_that_contradicts_the_bytes(self):
        """Method, kind and bits of the codes."""
        noise = random.Random(5)
        fp8 = {"q.weight": ("F8_E4M3", [2, 4], bytes(8)), "q.weight_scale": ("F32", [1], floats([0.5]))}
        wide = {"q.weight": ("I8", [2, 4], bytes([127, 1, 2, 3] * 2)), "q.weight_scale": ("F32", [2, 1], floats([1, 1]))}
        for config, tensors, says in (
            ({"quant_method": "gptq", "bits": 8}, gptq(noise, "q.", 4, 1)[0], "8 bits"),
            ({"quant_method": "awq", "bits": 4}, gptq(noise, "q.", 4, 1)[0] | {}, 'quant_method "awq"'),
            ({"quant_method": "gptq", "bits": 4}, awq(noise, "q.")[0], 'quant_method "gptq"'),
            ({"quant_method": "bitsandbytes"}, wide, 'quant_method "bitsandbytes"'),
            ({"quant_method": "bitsandbytes", "load_in_8bit": True}, four_bits(noise, "q.", "nf4", False)[0], "8 bits"),
            ({"quant_method": "fp8"}, wide, 'quant_method "fp8"'),
            (weights_of(num_bits=4, type="int"), wide, "4 bits"),
            (weights_of(num_bits=8, type="float"), wide, "says floats"),
            (weights_of(num_bits=8, type="int"), fp8, "says integers"),
            (weights_of(num_bits=4), fp8, "4 bits"),
            ({"bits": 4}, wide, "4 bits"),
        ):
            with self.subTest(config=config):
                if "awq" in config.values():
                    tensors["q.qzeros"] = (*tensors["q.qzeros"][:2], b"\x77" * len(tensors["q.qzeros"][2]))
                path = self.write_beside(config, tensors)
                self.refuse("analyze", path, says=["its codes are", "config.json says", says])

    def test_other_files_state_settings_too(self):
        wide = {"q.weight": ("I8", [2, 4], bytes([127, 1, 2, 3] * 2)), "q.weight_scale": ("F32", [2, 1], floats([1, 1]))}
        for file, config in (
            ("quantize_config.json", {"bits": 4, "group_size": 2}),
            ("hf_quant_config.json", {"quant_algo": "INT4_AWQ"}),
            ("hf_quant_config.json", {"quant_algo": "MIXED", "layers": {"q": {"quant_algo": "NVFP4"}}}),
            ("hf_quant_config.json", {"quant_algo": "FP8", "kv_cache_quant_algo": "INT8"}),
        ):
            with self.subTest(config=config):
                self.refuse("analyze", self.write_beside(config, wide, file), says=[f"{file} says"])
        path = self.write_beside({"quant_algo": "W8A8_SQ_PER_CHANNEL"}, wide, "hf_quant_config.json")
        self.assertEqual(len(self.analyze(path)), 1)

    def test_integers_of_few_bits_in_bytes(self):
        """As compressed-tensors saves them unpacked: every code has so many bits."""
        scale = ("F32", [2, 1], floats([0.5, 0.5]))
        for codes, bits, fits in (
            ([-8, 7, 0, 3] * 2, 4, True),
            ([-8, 8, 0, 3] * 2, 4, False),
            ([-9, 7, 0, 3] * 2, 4, False),
            ([-2, 1, 0, 1] * 2, 2, True),
        ):
            tensors = {"q.weight": ("I8", [2, 4], struct.pack("<8b", *codes)), "q.weight_scale": scale}
            path = self.write_beside(weights_of(num_bits=bits, type="int"), tensors)
            with self.subTest(codes=codes):
                if fits:
                    self.assertEqual(float(self.analyze(path)[0]["max_abs"]), max(map(abs, codes)) / 2)
                else:
                    self.refuse("analyze", path, says=[f"{bits} bits"])

    def test_groups_that_are_others_are_read_and_named(self):
        """The scales tell how many there are."""
        parts = {
            "q.qweight": ("I32", [8, 8], bytes(range(256))),
            "q.qzeros": ("I32", [2, 1], b"\x77" * 8),
            "q.scales": ("F16", [2, 8], struct.pack("<16e", *[0.5] * 16)),
        }
        for size, fits in ((32, True), (16, False), (64, False), (-1, False), (None, True)):
            path = self.write_beside({"bits": 4, "group_size": size}, parts, "quantize_config.json")
            with self.subTest(size=size):
                result = halfscope("analyze", path, "--json")
                self.assertEqual(len(json.loads(result.stdout)["tensors"]), 1)
                self.assertEqual(result.returncode, 0 if fits else 2)
                self.assertEqual(f"quantize_config.json says groups of {size}" in result.stderr, not fits)


if __name__ == "__main__":
    unittest.main()

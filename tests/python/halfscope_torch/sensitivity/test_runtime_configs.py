"""Configs of mixtures for runtimes: read back by the packages themselves, and by a few lines without them."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn

from halfscope.torch import sensitivity
from halfscope.torch.sensitivity.operand_images import RIGHT, SIDES, OperandFormat
from halfscope.torch.sensitivity.runtime_configs import KEPT, RUNTIMES, runtime_config

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

# Exponent and mantissa bits of the elements, elements of a block, exponent and mantissa bits of its scale.
KINDS: dict[str, tuple[tuple[int, int], int | None, tuple[int, int] | None]] = {
    "nvfp4": ((2, 1), 16, (4, 3)),
    "mxfp4": ((2, 1), 32, (8, 0)),
    "mxfp6_e2m3": ((2, 3), 32, (8, 0)),
    "mxfp6_e3m2": ((3, 2), 32, (8, 0)),
    "mxfp8_e4m3": ((4, 3), 32, (8, 0)),
    "mxfp8_e5m2": ((5, 2), 32, (8, 0)),
    "fp8_e4m3+current": ((4, 3), None, None),
}
NAMES = ("Linear", "lm_head", "q", "q2", "a*", "[b]", "c?", "0", "(d)", "e+")
Operands = dict[str, str]
"""Format by operand: "weight", "input"."""


class Network(nn.Module):
    """Linear layers by name, of the model itself and of modules in it, some with the name of another's class."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        for name in names:
            parent, _, own = name.rpartition(".")
            if parent and parent not in dict(self.named_children()):
                self.add_module(parent, nn.Module())
            self.get_submodule(parent).add_module(own, nn.Linear(64, 64, bias=False, dtype=torch.bfloat16))


def generated(seed: int, runtime: str) -> tuple[nn.Module, dict[str, OperandFormat]]:
    """A network, and formats that the runtime has for most of its layers."""
    random = Random(seed)
    names = [f"{random.choice(('', 'block.', 'Block.'))}{name}" for name in random.sample(NAMES, random.randint(1, 8))]
    sides = random.choice((SIDES, (RIGHT,)))
    has = [*(RUNTIMES[runtime].both if sides == SIDES else RUNTIMES[runtime].weights), KEPT]
    units = [name for name in names if random.random() < 0.8]
    return Network(names), {name: OperandFormat(random.choice(has), sides) for name in units}


def expected(model: nn.Module, formats: dict[str, OperandFormat]) -> dict[str, Operands]:
    """Operands of each linear layer."""
    found: dict[str, Operands] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            format = formats.get(name)
            operands = ("weight", "input")[: len(format.sides)] if format and format.name != KEPT else ()
            found[name] = dict.fromkeys(operands, DYNAMIC.get(format.name, format.name)) if format else {}
    return found


def kind_name(element: Any, block: Any, scale: Any) -> str:
    return next(name for name, kind in KINDS.items() if kind == (element, block, scale))


def read_modelopt(config: dict[str, Any], model: nn.Module) -> dict[str, Operands]:
    """Entries in their order, the last one that matches a quantizer holding."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            last = {operand: [entry for entry in config["quant_cfg"]
                              if fnmatch.fnmatchcase(f"{name}.{operand}_quantizer", entry["quantizer_name"])][-1]
                    for operand in ("weight", "input")}  # fmt: skip
            found[name] = {operand: modelopt_name(entry["cfg"]) for operand, entry in last.items() if "cfg" in entry}
    return found


def modelopt_name(cfg: dict[str, Any]) -> str:
    blocks = cfg.get("block_sizes") or {}
    return kind_name(cfg["num_bits"], blocks.get(-1), blocks.get("scale_bits"))


DYNAMIC = {"nvfp4+static": "nvfp4", "fp8_e4m3+static": "fp8_e4m3+current"}  # formats of the same numbers
SCHEME = (("weight", "weights"), ("input", "input_activations"))


def read_compressed_tensors(config: dict[str, Any], model: nn.Module) -> dict[str, Operands]:
    """Exactly one group of each layer, or its name in the list of ignored ones."""

    def matches(name: str, targets: list[str]) -> bool:
        return any(re.match(each[3:], name) if each.startswith("re:") else each == name for each in targets)

    found = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            groups = [group for group in config["config_groups"].values() if matches(name, group["targets"])]
            assert len(groups) + matches(name, config["ignore"]) == 1
            operands = [(operand, group[key]) for group in groups for operand, key in SCHEME if key in group]
            found[name] = {operand: compressed_tensors_name(arguments) for operand, arguments in operands}
    targets = [target for group in config["config_groups"].values() for target in group["targets"]]
    assert not {type(module).__name__ for module in model.modules()} & {*targets, *config["ignore"]}
    return found


def compressed_tensors_name(arguments: dict[str, Any]) -> str:
    """Floats of 4, 6 and 8 bits are E2M1, E2M3 and E4M3 there."""
    element = {4: (2, 1), 6: (2, 3), 8: (4, 3)}[arguments["num_bits"]]
    scale = {None: None, "torch.uint8": (8, 0), "torch.float8_e4m3fn": (4, 3)}[arguments.get("scale_dtype")]
    return kind_name(element, arguments.get("group_size"), scale)


TORCHAO = {
    "NVFP4WeightOnlyConfig": "nvfp4",
    "NVFP4DynamicActivationNVFP4WeightConfig": "nvfp4",
    "Float8DynamicActivationFloat8WeightConfig": "fp8_e4m3+current",
}
TORCHAO_ELEMENTS = {"float4_e2m1fn_x2": "mxfp4", "float8_e4m3fn": "mxfp8_e4m3"}


def read_torchao(config: dict[str, Any], model: nn.Module) -> dict[str, Operands]:
    own = config["_data"]["fqn_to_config"]
    found: dict[str, Operands] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            each = own.get(name)
            operands = () if each is None else ("weight",) if "WeightOnly" in each["_type"] else ("weight", "input")
            found[name] = dict.fromkeys(operands, torchao_name(each)) if each else {}
    return found


def torchao_name(each: dict[str, Any]) -> str:
    if each["_type"] in TORCHAO:
        return TORCHAO[each["_type"]]
    assert each["_type"] == "MXDynamicActivationMXWeightConfig"
    weight, activation = (each["_data"][f"{operand}_dtype"]["_data"] for operand in ("weight", "activation"))
    assert weight == activation
    return TORCHAO_ELEMENTS[weight]


Reader = Callable[[dict[str, Any], nn.Module], dict[str, Operands]]
READERS: dict[str, Reader] = {
    "modelopt": read_modelopt,
    "compressed-tensors": read_compressed_tensors,
    "torchao": read_torchao,
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_layers_have_their_formats_and_no_other_layer_one(runtime: str) -> None:
    for seed in range(200):
        model, formats = generated(seed, runtime)
        config = runtime_config(model, formats, runtime)
        plain = config if runtime == "modelopt" else json.loads(json.dumps(config))
        assert plain == config
        assert READERS[runtime](plain, model) == expected(model, formats), seed


def modelopt_itself(config: dict[str, Any], model: nn.Module) -> dict[str, Operands]:
    mtq = pytest.importorskip("modelopt.torch.quantization", reason="nvidia-modelopt is not installed")
    formatted = mtq.quantize(model, config, lambda each: None)
    found: dict[str, Operands] = {}
    for name, module in formatted.named_modules():
        if isinstance(module, nn.Linear):
            quantizers = {operand: getattr(module, f"{operand}_quantizer") for operand in ("weight", "input")}
            assert not module.output_quantizer.is_enabled
            found[name] = {
                operand: modelopt_name({"num_bits": each.num_bits, "block_sizes": each.block_sizes})
                for operand, each in quantizers.items() if each.is_enabled
            }  # fmt: skip
    return found


PRESETS = {"nvfp4": "NVFP4", "mxfp4": "MXFP4", "mxfp8_e4m3": "MXFP8"}
PRESETS_ALONE = {"nvfp4": "NVFP4A16", "mxfp4": "MXFP4A16", "mxfp6_e2m3": "MXFP6A16", "mxfp8_e4m3": "MXFP8A16"}


def compressed_tensors_itself(config: dict[str, Any], model: nn.Module) -> dict[str, Operands]:
    """The schemes of its own presets too, but for the type of zero points, which symmetric schemes have not."""
    package = pytest.importorskip("compressed_tensors.quantization", reason="compressed-tensors is not installed")
    parsed = package.QuantizationConfig.model_validate(json.loads(json.dumps(config)))
    package.apply_quantization_config(model, parsed)
    found: dict[str, Operands] = {}
    for name, module in model.named_modules():
        scheme = getattr(module, "quantization_scheme", None)
        assert scheme is None or isinstance(module, nn.Linear)
        if isinstance(module, nn.Linear):
            given = {} if scheme is None else {"weight": scheme.weights, "input": scheme.input_activations}
            shown = {operand: json.loads(each.model_dump_json()) for operand, each in given.items() if each is not None}
            found[name] = {operand: compressed_tensors_name(each) for operand, each in shown.items()}
            format = found[name].get("weight")
            if format not in (None, "fp8_e4m3+current"):
                preset = (PRESETS if "input" in shown else PRESETS_ALONE)[format]
                whole = package.preset_name_to_scheme(preset, scheme.targets)
                assert json.loads(scheme.model_dump_json()) == json.loads(whole.model_dump_json())
    return found


def torchao_itself(config: dict[str, Any], model: nn.Module) -> dict[str, Operands]:
    """Layers as `quantize_` hands them out; kernels of these formats want a GPU, so that the last step is a list."""
    pytest.importorskip("torchao", reason="torchao is not installed")
    from torchao.core.config import config_from_dict, config_to_dict
    from torchao.quantization import quant_api, quantize_

    parsed = config_from_dict(json.loads(json.dumps(config)))
    handed: list[tuple[nn.Module, Any]] = []

    def note(module: nn.Module, each: Any, **_: Any) -> nn.Module:
        handed.append((module, each))
        return module

    own = {type(each) for each in parsed.fqn_to_config.values()}
    with pytest.MonkeyPatch.context() as patch:
        for kind in own:
            patch.setitem(quant_api._QUANTIZE_CONFIG_HANDLER, kind, note)
        quantize_(model, parsed, filter_fn=None)
    names = {module: name for name, module in model.named_modules()}
    whole = {"_data": {"fqn_to_config": {names[module]: config_to_dict(each) for module, each in handed}}}
    assert all(isinstance(module, nn.Linear) for module, _ in handed)
    return read_torchao(whole, model)


THEMSELVES: dict[str, Reader] = {
    "modelopt": modelopt_itself,
    "compressed-tensors": compressed_tensors_itself,
    "torchao": torchao_itself,
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_package_itself_gives_each_layer_its_format(runtime: str) -> None:
    for seed in range(30):
        model, formats = generated(seed, runtime)
        config = runtime_config(model, formats, runtime)
        assert THEMSELVES[runtime](config, model) == expected(model, formats), seed


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_chosen_mixture_has_a_config(runtime: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    found = sensitivity(model, [torch.randn(16, 32)], ["mxfp4", "nvfp4", "mxfp8_e4m3", "bf16"])
    chosen = found.choose(bytes=3500)
    written = {name: {} if format == KEPT else {"weight": format, "input": format}
               for name, format in chosen.formats.items()}  # fmt: skip
    assert READERS[runtime](chosen.config(runtime), model) == written


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.conv = nn.Linear(8, 8), nn.Conv1d(8, 8, 1)


FC_MXFP6 = (
    "config: 'fc' has mxfp6_e2m3; compressed-tensors has nvfp4, mxfp4, mxfp8_e4m3, fp8_e4m3+current, nvfp4+static, "
    "fp8_e4m3+static, bf16"
)
FC_FLOOR = "config: 'fc' has mxfp4/floor; torchao has nvfp4,"
REFUSED: dict[str, tuple[str, dict[str, OperandFormat], str]] = {
    "runtime": ("vllm", {}, "config: runtime 'vllm'; give one of modelopt, compressed-tensors, torchao"),
    "format": ("compressed-tensors", {"fc": OperandFormat("mxfp6_e2m3")}, FC_MXFP6),
    "rule of scales": ("torchao", {"fc": OperandFormat("mxfp4/floor")}, FC_FLOOR),
    "weight alone": (
        "torchao", {"fc": OperandFormat("mxfp4", (RIGHT,))},
        "config: 'fc' has mxfp4 for weights alone; torchao has nvfp4, bf16 for weights alone",
    ),
    "layer": (
        "modelopt", {"conv": OperandFormat("nvfp4")},
        "config: 'conv' is a Conv1d in nvfp4; modelopt is told formats of linear layers in a model, and bf16 of others",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_mixtures_that_are_refused(case: str) -> None:
    runtime, formats, words = REFUSED[case]
    with pytest.raises(ValueError, match=f"^{re.escape(words)}") as raised:
        runtime_config(Mixed(), formats, runtime)
    assert "\n" not in str(raised.value)


def test_a_model_that_is_a_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="^config: 'the model' is the model itself in nvfp4; "):
        runtime_config(nn.Linear(8, 8), {"": OperandFormat("nvfp4")}, "torchao")


def test_other_layers_may_stay() -> None:
    config = runtime_config(Mixed(), {"fc": OperandFormat("nvfp4"), "conv": OperandFormat(KEPT)}, "compressed-tensors")
    assert [group["targets"] for group in config["config_groups"].values()] == [["re:fc$"]] and config["ignore"] == []

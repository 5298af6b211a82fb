"""Settings of a policy mean the same in TOML, `--set` and Python, and the same ones are refused in the same words."""

from __future__ import annotations

import json
import random
import subprocess
from fnmatch import fnmatchcase

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from exported_training import ROOT
from halfscope import _core
from halfscope.torch.policy import ROLES, TENSOR_ROLES, Policy

PROGRAM = ROOT / "build/release/tests/halfscope_print_policy"
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
]

LAYERS = ("fc1", "fc2", "block.0.fc1", "output", "head*[1]", "masked_words2")
GLOBS = ("*", "fc1", "fc?", "block.*", "*fc[12]", "[!f]*", "none", "[[:alpha:]]*1", "fc\\1", "head\\*[[]1]")
POLICIES = [row["policy"] for row in _core.policy_table()]
FORMATS = ("fp32", "fp16", "bf16", "fp8_e4m3", "e3m4/toward_zero", "bf16/stochastic", "fp16/nearest_even/saturate")
BLOCKS = ("mxfp8_e4m3", "nvfp4_16x16", "mxfp4/floor", "fp8_e4m3+current", "fp8_e5m2+delayed(history=4, most_recent)")
PRODUCTS = ("forward", "data_gradient", "weight_gradient")
PLACES = [f"{product}.{side}" for product in PRODUCTS for side in ("left", "right")]
SUMS = ("fp32_chunked(256)", "fp16_sequential", "bf16_pairwise", "fp32_chunked(7)@fc*", "fp16_sequential@block.*")
ORDERS = ("fp32_fused", "fp32_sequential", "fp32_chunked(128)", "fp16_sequential", "tensor_core(ampere)", "bf16_fused")
WRONG = {
    "policy": ("", "bf61", "fp16_mixd", "fp16/upwards", "mxfp8_e4m3"),
    **dict.fromkeys(ROLES, ("bf61", "fp16/", "fp16/nearest/none", "mxfp4", "e9m23", " fp16")),
    "order": ("fp32", "fp16_pairwise", "tensor_core(hoper)", "fp32_chunked(0)", "e4m3_fused()"),
    "sum_order": ("tensor_core(hopper)", "fp16_kahan", "fp16_sequential@@", "fp99_sequential@fc1", "@fc1"),
    "operands": ("fc1=fp16", "*", "forward.up=mxfp4", "*=mxfp9", "*=mxfp4@", "*=mxfp4+current", "matmul=x,", "=fp16"),
}
WRONG["optimizer_state"] += ("fp16/stochastic",)


def operand_rule(draw: random.Random) -> str:
    what = draw.choice(["*", "forward", "linear", "linear.data_gradient", "matmul", "conv2d.forward.left", *PLACES])
    glob = draw.choice(GLOBS)
    format = draw.choice([*BLOCKS, *FORMATS, "role"])
    return f"{what}={format}" if glob == "*" and draw.random() < 0.8 else f"{what}={format}@{glob}"


def right(key: str, draw: random.Random) -> str:
    if key == "policy":
        return draw.choice([*POLICIES, *FORMATS])
    if key == "operands":
        return draw.choice([", ", ","]).join(operand_rule(draw) for _ in range(draw.randint(1, 4)))
    if key == "optimizer_state":
        return draw.choice([format for format in FORMATS if "stochastic" not in format])
    return draw.choice({"order": ORDERS, "sum_order": SUMS}.get(key, FORMATS))


def drawn(seed: int) -> dict[str, str]:
    """Settings, a third of them with one text that is none."""
    draw = random.Random(seed)
    keys = draw.sample(_core.policy_keys(), draw.randint(1, 5))
    settings = {key: right(key, draw) for key in keys}
    if draw.random() < 0.33:
        key = draw.choice(keys)
        settings[key] = draw.choice(WRONG[key])
    return settings


def of_program(asked: list[dict[str, str]]) -> list[dict]:
    lines = [json.dumps({"settings": list(settings.items()), "layers": LAYERS}) for settings in asked]
    done = subprocess.run([PROGRAM], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_python(settings: dict[str, str]) -> dict:
    try:
        policy = Policy(settings, None, {})
        base, at = policy.base, {layer: policy.at(layer) for layer in LAYERS}
        operands = {layer: _core.layer_operands(formats.operands, "linear", layer) for layer, formats in at.items()}
    except ValueError as error:
        return {"error": str(error).removeprefix("emulate: ")}
    return {
        "roles": {role: getattr(base, role) for role in ROLES},
        "order": base.products,
        "sum_orders": {layer: formats.sum_order for layer, formats in at.items()},
        "operands": operands,
    }


def is_narrow(roles: dict[str, str]) -> bool:
    return any(roles[role] != "fp32" for role in TENSOR_ROLES)


def test_hundreds_of_policies_are_the_same_by_both_doors() -> None:
    asked = [drawn(seed) for seed in range(600)]
    refused = 0
    for settings, theirs in zip(asked, of_program(asked), strict=True):
        ours = of_python(settings)
        if "error" not in theirs and not is_narrow(theirs["roles"]):  # in FP32, PyTorch's own sums
            assert ours["order"] in ((theirs["order"],) if "order" in settings else (None, theirs["order"])), settings
            ours["order"] = theirs["order"]
            if "sum_order" not in settings:
                assert set(ours["sum_orders"].values()) == {None}
                ours["sum_orders"] = theirs["sum_orders"]
        assert ours == theirs, settings
        refused += "error" in theirs
    assert 150 < refused < 450


def naive_operands(rules: list[str], layer: str) -> dict[str, str]:
    """The rules of a linear layer's operands, one after the other, globs by Python."""
    formats: dict[str, str] = {}
    for rule in rules:
        what, _, rest = rule.partition("=")
        format, _, glob = rest.partition("@")
        words = what.split(".")
        if fnmatchcase(layer, glob or "*") and words[0] in ("*", "linear", *PRODUCTS):
            wanted = [word for word in words if word not in ("*", "linear")]
            for place in PLACES:
                if place.split(".")[: len(wanted)] == wanted:
                    formats[place] = format
    return {place: format for place, format in formats.items() if format != "role"}


@pytest.mark.parametrize("seed", range(40))
def test_a_later_rule_holds_in_texts_and_in_exceptions(seed: int) -> None:
    draw = random.Random(seed)
    texts = ("mxfp8_e4m3", "nvfp4", "bf16", "role")
    globs = draw.sample(("*", "fc?", "block.*", "*fc[12]", "[!f]*", "*1", "out*"), 6)
    rules = [f"{draw.choice(['*', 'linear', 'forward', *PLACES])}={draw.choice(texts)}@{glob}" for glob in globs]
    text = Policy({"weight": "bf16", "operands": ", ".join(rules)}, None, {})
    exceptions = {glob: {"operands": rule.rpartition("@")[0]} for glob, rule in zip(globs, rules, strict=True)}
    apart = Policy({"weight": "bf16"}, None, exceptions)
    for layer in ("fc1", "block.0.fc1", "output"):
        expected = naive_operands(rules, layer)
        for policy in (text, apart):
            assert _core.layer_operands(policy.at(layer).operands, "linear", layer) == expected

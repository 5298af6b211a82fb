"""Constants that are recovered from the products of models are those of the models."""

from __future__ import annotations

import subprocess
import sys

import pytest

from characterise import INPUTS, Constants, constants_of, main, order_dot
from recording.source_tree import ROOT

CUT, NEAREST, UNSEEN = "toward_zero", "nearest", "unseen"
KNOWN = {
    "tensor_core(volta)": ("fp16", Constants(4, 23, CUT, 23, UNSEEN)),
    "tensor_core(ampere)": ("fp16", Constants(8, 24, CUT, 23, CUT)),
    "tensor_core(hopper)": ("fp16", Constants(16, 25, CUT, 23, CUT)),
    "bf16_tensor_core(ampere)": ("bf16", Constants(8, 24, CUT, 23, CUT)),
    "fp8_e4m3_tensor_core(ada)": ("fp8_e4m3", Constants(16, 13, CUT, 13, UNSEEN)),
    "fp8_e5m2_tensor_core(hopper)": ("fp8_e5m2", Constants(32, 13, CUT, 13, UNSEEN)),
    "fp8_e4m3_tensor_core(blackwell)": ("fp8_e4m3", Constants(32, 25, CUT, 23, CUT)),
    "matrix_core(cdna1)": ("fp16", Constants(4, None, "exact", 23, NEAREST)),
    "fp32_fused": ("fp16", Constants(2, 23, NEAREST, 23, UNSEEN)),
}


@pytest.mark.parametrize("model", KNOWN)
def test_constants_of_known_units(model: str) -> None:
    input, constants = KNOWN[model]
    assert constants_of(order_dot(model), INPUTS[input]) == constants


@pytest.mark.parametrize("products", [3, 8, 13, 16, 64])
@pytest.mark.parametrize("bits", [11, 23, 24, 25, 30])
@pytest.mark.parametrize(("result", "rounding"), [("fp32/toward_zero", CUT), ("fp32/nearest_even", NEAREST)])
def test_constants_of_units_that_nobody_built(products: int, bits: int, result: str, rounding: str) -> None:
    model = f"tensor_core(products={products}, bits={bits}, zero=-133, result={result})"
    seen = rounding if bits > 23 else UNSEEN
    expected = Constants(products, bits, CUT, min(bits, 23), seen)
    assert constants_of(order_dot(model), INPUTS["fp16"]) == expected


def test_results_in_fp16() -> None:
    model = "tensor_core(products=16, bits=25, zero=-21, result=fp16/nearest_even)"
    assert constants_of(order_dot(model), INPUTS["fp16"]) == Constants(16, 25, CUT, 10, NEAREST)


def test_the_command_prints_a_line_and_names_what_it_cannot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["--order", "tensor_core(turing)"]) == 0
    line = "8 products a step; 24 bits, cut toward_zero; results of 23 fraction bits, rounded toward_zero\n"
    assert capsys.readouterr().out == line
    assert main(["--order", "tensor_core(pascal)"]) == 2
    assert "characterise: " in capsys.readouterr().err
    assert main(["--cuda"]) == 2
    assert "--order asks an order of" in capsys.readouterr().err
    done = subprocess.run([sys.executable, ROOT / "tools/characterise.py", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "terms a step" in done.stdout

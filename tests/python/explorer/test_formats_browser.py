"""The explorer of formats in a browser: the program's page, beside what the program prints as JSON."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from command import command
from hostile_names import HOSTILE
from recording.source_tree import PROGRAM

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
]
FORMATS = "fp8_e4m3,mxfp8_e4m3,nvfp4"
COUNTERS = ("elements", "zeros", "nonfinite", "flushed", "flushed_by_scale", "subnormal", "clipped", "overflow", "lost")
OF_BLOCKS = ("blocks", "zero_blocks", "clipped_blocks", "overflow_blocks", "nonfinite_blocks", "blocks_at_risk")


def write(path: Path, tensors: dict[str, np.ndarray]) -> Path:
    """A safetensors file, whose names may be any text."""
    header, data = {}, b""
    for name, array in tensors.items():
        place = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": place}
        data += array.astype(np.float32).tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    noise = np.random.default_rng(4)
    q = noise.standard_normal((64, 128), np.float32)
    q[:5] = 0
    down = q * np.exp2(noise.standard_normal((64, 128), np.float32) * 3)
    return write(tmp_path_factory.mktemp("weights") / "weights.safetensors", {"q": q, "down": down})


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[..., str]:
    def page(path: Path, *words: str) -> str:
        html = tmp_path / "written.html"
        subprocess.run([PROGRAM, "formats", path, "--format", FORMATS, *words, "--html", html], check=True,
                       capture_output=True)  # fmt: skip
        return html.read_text(encoding="utf-8")

    return page


def counted(path: Path, *formats: str) -> dict[tuple[str, str], dict]:
    """By tensor and format, what --json prints."""
    found = json.loads(command("formats", path, "--format", ",".join(formats)))
    return {(tensor["name"], entry["name"]): entry for tensor in found["tensors"] for entry in tensor["formats"]}


@pytest.mark.parametrize("rule", ["", "/floor", "/nearest"])
def test_counts_of_the_chosen_tensor_and_rule(
    open_tab: Callable, page_of: Callable[..., str], weights: Path, rule: str
) -> None:
    tab = open_tab(page_of(weights))
    name = f"mxfp8_e4m3{rule}"
    tab.page.get_by_role("radio", name="mxfp8_e4m3", exact=True).check()
    if rule:
        tab.page.get_by_role("radio", name=rule[1:], exact=True).check()
    tab.page.locator("select").select_option("down")
    assert tab.page.url.endswith("&tensor=down")
    expected = counted(weights, name)["down", name]
    for counter in (*COUNTERS, *OF_BLOCKS):
        shown = tab.page.locator(f"[data-counter={counter}]").inner_text()
        assert int(shown.replace(",", "")) == expected[counter], counter
    sentence = tab.page.locator(".sentence").inner_text()
    assert sentence.startswith(f"{name}, 8.25 bits per element, blocks of 1 x 32 with an E8M0 scale, errs by ")
    assert f"({expected['error_db']:.1f} dB) on down" in sentence
    shown = tab.page.locator(".codes").text_content()  # zeros are told below: their scale is far off
    assert "code 0, 2^-127: 20 blocks" in shown
    assert sum(map(int, re.findall(r": (\d+) blocks", shown))) == expected["blocks"]
    assert tab.page.locator(".histogram .band").count() == 4


def test_rows_choose_and_headings_sort(open_tab: Callable, page_of: Callable[..., str], weights: Path) -> None:
    tab = open_tab(page_of(weights))
    names = tab.page.locator(".formats tbody th").all_inner_texts()
    assert names[:2] == ["fp8_e4m3", "mxfp8_e4m3"] and names.index("mxfp8_e4m3/nearest") < names.index("nvfp4")
    tab.page.locator(".formats").get_by_role("button", name="error dB", exact=True).click()
    shown = [row.locator("td").nth(2).inner_text() for row in tab.page.locator(".formats tbody tr").all()]
    assert len(shown) == len(names) and shown == sorted(shown, key=float)  # the largest error first
    tab.page.locator(".formats").get_by_role("button", name="nvfp4/torchao").click()
    assert tab.page.get_by_role("radio", name="torchao").is_checked()
    tab.page.locator(".tensors").get_by_role("button", name="down").click()
    assert tab.page.locator("select").input_value() == "down"
    shown = tab.page.locator(".sentence").inner_text()
    assert "with a UE4M3 scale and an FP32 scale for the tensor" in shown and "on down" in shown
    tab.page.reload()
    assert tab.page.locator(".sentence").inner_text() == shown


def test_what_to_choose_stands_first(open_tab: Callable, page_of: Callable[..., str], weights: Path) -> None:
    tab = open_tab(page_of(weights, "--max-error", "3%"))
    advice = tab.page.locator(".advice p").all_inner_texts()
    assert advice[0] == "Use fp8_e4m3: 8.00 bits per element."
    assert advice[1].startswith("Error ") and "the cheapest of 3 formats under --max-error 3%." in advice[1]
    assert tab.page.get_by_role("radio", name="fp8_e4m3", exact=True).is_checked()
    assert tab.page.locator(".codes svg").count() == 0


@pytest.mark.parametrize("state", ["#tensors?format=x&tensor=y", "#tensors?format=", "#%", "#no"])
def test_an_address_of_something_else(
    open_tab: Callable, page_of: Callable[..., str], weights: Path, state: str
) -> None:
    tab = open_tab(page_of(weights), state)
    assert tab.page.locator(".sentence").inner_text().startswith("fp8_e4m3, 8.00 bits per element, errs by ")


def test_names_are_shown_and_not_run(open_tab: Callable, page_of: Callable[..., str], tmp_path: Path) -> None:
    row = np.linspace(0.5, 2, 64, dtype=np.float32)
    tab = open_tab(page_of(write(tmp_path / "x.safetensors", dict.fromkeys(HOSTILE, row))))
    shown = tab.page.locator(".tensors tbody th").all_inner_texts()
    assert len(shown) == len(HOSTILE) and set(HOSTILE[:3]) <= set(shown)
    tab.page.locator("select").select_option(index=1)
    assert tab.page.evaluate("window.harmed") is None
    assert tab.page.locator(".explorer img, th svg, option *").count() == 0


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_fits_the_screen(
    open_tab: Callable, page_of: Callable[..., str], weights: Path, colours: str, width: int
) -> None:
    tab = open_tab(
        page_of(weights), "#tensors?format=nvfp4", color_scheme=colours, viewport={"width": width, "height": 900}
    )
    assert tab.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    for text in tab.page.locator(".explorer svg text").all():
        box = text.bounding_box()
        assert box["height"] >= 10 and box["x"] >= 0 and box["x"] + box["width"] <= width, text.text_content()


def test_without_scripts(open_tab: Callable, page_of: Callable[..., str], weights: Path) -> None:
    tab = open_tab(page_of(weights), java_script_enabled=False)
    assert "nvfp4/torchao" in tab.page.locator(".explorer table").inner_text()

"""The explorer in a browser, headless Chromium: what a reader sees, moves and sends on."""

from __future__ import annotations

import json

import numpy as np
import pytest

import halfscope
from halfscope import _core
from halfscope.plotting.drawings import draw
from halfscope.report import report_page
from halfscope.report.section import section_of
from halfscope.results import Experiment, read_experiment
from hostile_names import HOSTILE
from recording.source_tree import RECORDED

pytestmark = pytest.mark.browser


def percent(count: int, whole: int) -> str:
    share = 100 * count / whole
    if share in (0, 100):
        return f"{share:g} %"
    if share < 0.01:
        return "< 0.01 %"
    return "> 99.9 %" if share > 99.9 else f"{share:.{2 if share < 1 else 1}f} %"


@pytest.fixture(scope="module")
def gradients() -> dict[str, halfscope.Histogram]:
    noise = np.random.default_rng(3)
    arrays = {f"layer{i}": noise.standard_normal(999).astype(np.float32) * 2.0 ** (5 * i - 32) for i in range(6)}
    return {name: halfscope.Histogram(array) for name, array in arrays.items()}


@pytest.mark.parametrize("scale", [-10, 0, 13, 32])
def test_the_table_says_what_if(open_tab: object, gradients: dict, scale: int) -> None:
    tab = open_tab(halfscope.explore(gradients).page())
    tab.set_scale(scale)
    expected = {}
    for name, histogram in gradients.items():
        cast = histogram.what_if(2.0**scale)
        counts = (cast.flushed, cast.subnormal, cast.overflow)
        expected[name] = [percent(count, cast.nonzero) for count in counts]
    assert tab.rows() == expected
    assert f"2^{scale}" in tab.page.locator("output").inner_text()


def test_the_worst_come_first_and_headings_sort(open_tab: object, gradients: dict) -> None:
    tab = open_tab(halfscope.explore(gradients).page())
    assert list(tab.rows()) == [f"layer{i}" for i in range(6)]
    tab.set_scale(25)  # layer5 overflows most
    assert next(iter(tab.rows())) == "layer5"
    tab.page.locator("thead button").first.click()
    assert list(tab.rows()) == [f"layer{i}" for i in range(6)]
    assert tab.page.locator("th[aria-sort=ascending]").inner_text().startswith("tensor")
    tab.page.locator("thead button").first.click()
    assert next(iter(tab.rows())) == "layer5"


def test_bands_move_and_bars_stay(open_tab: object, gradients: dict) -> None:
    tab = open_tab(halfscope.explore(gradients).page())

    def edges() -> tuple[list, float]:
        bars = [bar.get_attribute("x") for bar in tab.page.locator(".bar").all()]
        return bars, float(tab.page.locator(".band.flushed").get_attribute("width"))

    bars, flushed = edges()
    tab.page.locator("input[type=range]").focus()
    for _ in range(8):
        tab.page.keyboard.press("ArrowRight")
    moved_bars, moved = edges()
    assert moved_bars == bars
    binade = float(bars[1]) - float(bars[0])
    assert flushed - moved == pytest.approx(8 * binade)


def test_the_address_keeps_the_state(open_tab: object, gradients: dict) -> None:
    tab = open_tab(halfscope.explore(gradients).page())
    tab.set_scale(9)
    tab.page.get_by_label("BF16").check()
    tab.page.get_by_role("button", name="layer2").click()
    shown = tab.page.locator(".sentence").inner_text()
    assert "BF16" in shown
    assert "layer2" in shown
    tab.page.reload()
    assert tab.page.locator(".sentence").inner_text() == shown
    assert tab.page.url.endswith("#tensors?scale=9&format=bf16&tensor=layer2")


def test_the_address_of_any_name(open_tab: object, gradients: dict) -> None:
    """A folder's name is an experiment's, and that names its explorer."""
    page = halfscope.explore(gradients).page().replace('id="tensors"', 'id="my m\u00f6del #1 100%?-scales"')
    tab = open_tab(page)
    tab.set_scale(9)
    shown = tab.page.locator(".sentence").inner_text()
    tab.page.reload()
    assert tab.page.locator(".sentence").inner_text() == shown


@pytest.mark.parametrize(
    "state", ["#tensors?scale=1e9&format=x&role=y&tensor=z&sort=w", "#tensors?scale=", "#%", "#no"]
)
def test_an_address_of_something_else(open_tab: object, gradients: dict, state: str) -> None:
    tab = open_tab(halfscope.explore(gradients).page(), state)
    assert "FP16 flushes" in tab.page.locator(".sentence").inner_text()
    assert len(tab.rows()) == 6


def test_names_are_shown_and_not_run(open_tab: object) -> None:
    tensors = {name: np.float32([1e-7, 1.0]) for name in HOSTILE}
    tab = open_tab(halfscope.explore(tensors, title=HOSTILE[2]).page())
    assert tab.page.evaluate("window.harmed") is None
    shown = list(tab.rows())
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[5], HOSTILE[6], HOSTILE[7]} <= set(shown)
    assert "tab\\u0009and\\u001b[31mescape" in shown
    assert "\\u202eright to left" in shown
    assert tab.page.locator("h1").inner_text() == HOSTILE[2]
    assert tab.page.locator(".advice img, th img, th svg").count() == 0


def test_arms_and_tensors_of_a_report_are_not_run(open_tab: object) -> None:
    data = _core.ExplorerData()
    for step, name in enumerate(HOSTILE):
        data.add(name, "activation_gradient", step, halfscope.Histogram(np.float32([2**-20])))
        data.mark(name, step)
    page = f'<div class="explorer" id="x"><script type="application/json">{data.json()}</script></div>'
    script = f'<script type="module">{_core.explorer_script()}start();</script>'
    tab = open_tab(f"<!DOCTYPE html><meta charset=utf-8>{page}{script}")
    tab.set_scale(3)
    tab.page.locator(".map rect[x]").first.hover()
    assert tab.page.evaluate("window.harmed") is None
    assert len(tab.rows()) == len(HOSTILE)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_fits_the_screen(open_tab: object, gradients: dict, detection: Experiment, colours: str, width: int) -> None:
    for html in (halfscope.explore(gradients).page(), report_page([section_of(detection, draw(detection))])):
        tab = open_tab(html, color_scheme=colours, viewport={"width": width, "height": 900})
        assert tab.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        ground, text = tab.page.evaluate(
            "(({ backgroundColor: back, color }) => [back, color])(getComputedStyle(document.body))"
        )
        brightness = [sum(map(int, colour[4:-1].split(","))) for colour in (ground, text)]
        assert (brightness[0] < brightness[1]) == (colours == "dark")
        letters = tab.page.locator(".explorer .histogram text").first.evaluate("e => e.getBoundingClientRect().height")
        assert letters >= 10


@pytest.mark.parametrize("name", ["bert-finetuning", "detection-loss-scale", "scaler-comparison", "where-master-copy"])
def test_the_first_table_of_a_report_fits_1280_pixels(open_tab: object, name: str) -> None:
    """Recorded experiments with the most columns, the longest names and the most arms."""
    recorded = read_experiment(RECORDED / "cpu" / name)
    tab = open_tab(report_page([section_of(recorded, [])]), viewport={"width": 1280, "height": 900})
    table = tab.page.locator(".scroll").first
    assert table.locator("thead th").count() >= 7
    assert table.evaluate("e => e.scrollWidth <= e.clientWidth && e.getBoundingClientRect().right <= innerWidth")


def test_a_report_moves(open_tab: object, detection: Experiment) -> None:
    tab = open_tab(report_page([section_of(detection, draw(detection))]))
    explorer = "#detection-loss-scale-scales"
    before = tab.rows(explorer)
    tab.set_scale(10, explorer)
    assert tab.rows(explorer) != before
    assert tab.page.url.endswith(f"{explorer}?scale=10")
    cells = tab.page.locator(f"{explorer} .map rect[x]")
    assert cells.count() > len(before)
    cells.last.hover()
    assert "step" in tab.page.locator(f"{explorer} .readout").inner_text()
    tab.page.get_by_role("button", name="fp16_s8:").click()
    assert "2^3 = 8" in tab.page.locator(f"{explorer} output").inner_text()
    assert tab.page.locator(f"{explorer} .window").count() == 1


def test_without_scripts(open_tab: object, gradients: dict, detection: Experiment) -> None:
    tab = open_tab(halfscope.explore(gradients).page(), java_script_enabled=False)
    assert "layer3" in tab.page.locator(".explorer table").inner_text()
    tab = open_tab(report_page([section_of(detection, draw(detection))]), java_script_enabled=False)
    assert tab.page.locator("figure").count() >= 5
    assert tab.page.locator("figure").first.is_visible()


def test_a_notebooks_widget(open_tab: object, gradients: dict) -> None:
    widget = halfscope.explore(gradients).widget()
    data = json.dumps(widget.data)
    script = (
        _core.explorer_script()
        + f"""
const model = {{ get: () => {data}, on: () => {{}} }};
render({{ model, el: document.querySelector("main") }});"""
    )
    style = _core.explorer_style()
    tab = open_tab(f"<!DOCTYPE html><style>{style}</style><main></main><script type=module>{script}</script>")
    tab.set_scale(5)
    assert len(tab.rows()) == 6
